"""What no mechanism for sparse vectors, or for shares, can do better than: floors of the error, with their constants.

A vector has d entries of -1, 0 or 1, of which s are not 0. A floor is of the worst population, and of an estimate of
the mean of those whom the people who report were drawn from: what drawing them adds is in it (`sampling_error`).

All follow from two lemmas of Duchi, Jordan and Wainwright (2018) for epsilon-LDP, with E = e^eps - 1:

- Assouad: if each of d signs that an estimate gets wrong costs 2 tau, the error is at least
  d tau (1 - sqrt(n E^2 F/2d)).
- Fano: a choice among N hypotheses is told by at most I = 4 n E^2 F/N nats, so it is wrong with a probability of at
  least 1 - (I + log 2)/log N.

F bounds the sum over the hypotheses of the squared differences that they make to the mean of any function into [-1, 1].
Entries are dealt to s buckets of d/s, with one entry that is not 0 in each, independently and evenly. A hypothesis that
shifts one entry of one bucket shifts the mean of a function g by a difference of two of its conditional means, given
the bucket; and the variances of these means over all buckets add up to at most that of g (Hoeffding): at most 1.
"""

import math

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.mechanisms.ternary.ternary import TernaryMechanism

__all__ = ["absolute_floor", "entry_floor", "largest_floor", "sampling_error", "shares_floor", "squared_floor"]


def squared_floor(*, epsilon: float, dimension: int, sparsity: int, n: int) -> float:
    """The least squared error, summed over the entries: min(s^2 / 4d, d s / (32 n E^2)), with E = e^eps - 1.

    Each entry is +1 or -1 a little more often, by b s/d in the mean; a wrong sign costs (b s/d)^2 = 2 tau, and F is at
    most 4 b^2 s/d. With b^2 = min(1, d^2 / (8 n s E^2)) the root is 1/2. The text has half of the second constant.

    Example:
        >>> squared_floor(epsilon=1.0, dimension=128, sparsity=8, n=10_000)
        0.0010838...

    References
    ----------
    S. Wang, Li, Li et al., 2023, Theorem 2 and appendix A, whose tau is twice, and whose F is twice, what follows.
    """
    growth = _growth(epsilon, dimension, sparsity, n)
    return min(sparsity**2 / (4 * dimension), dimension * sparsity / (32 * n * growth**2))


def entry_floor(mechanism: TernaryMechanism, n: int) -> float:
    """The least error of an entry at a mechanism's setting: the root of the mean squared error over the entries.

    Example:
        >>> from hubbub import NetSub
        >>> net = NetSub(epsilon=1.0, dimension=128, sparsity=8)
        >>> round(entry_floor(net, 10_000), 4), round((net.mse(10_000) / 128) ** 0.5, 4)
        (0.0029, 0.0691)
    """
    setting = {"dimension": mechanism.dimension, "sparsity": mechanism.sparsity, "n": n}
    return math.sqrt(squared_floor(epsilon=mechanism.epsilon, **setting) / mechanism.dimension)


def shares_floor(*, epsilon: float, size: int, n: int, most: int = 1) -> float:
    """The least squared error, summed over the shares of `size` values of which a person has at most `most`.

    Two values can be the two signs of an entry that is not 0: its mean is then the difference of two shares, and the
    square of an error of it is at most twice the sum of theirs. So half of `squared_floor` for half as many entries
    is a floor for shares. A single value that people have or not is one sign, whose share is (1 + mean)/2.

    Example:
        >>> shares_floor(epsilon=1.0, size=64, n=10_000)
        1.693...e-05
        >>> from hubbub import OUE
        >>> 64 * OUE(epsilon=1.0, domain=64).noise(10_000).variance(1 / 64) > _
        True
    """
    if size == 1:
        return squared_floor(epsilon=epsilon, dimension=1, sparsity=1, n=n) / 4
    held = min(most, size // 2)
    return squared_floor(epsilon=epsilon, dimension=size // 2 // held * held, sparsity=held, n=n) / 2


def absolute_floor(*, epsilon: float, dimension: int, sparsity: int, n: int) -> float:
    """The least absolute error, summed over the entries: min(s/4, d sqrt(s / (128 n)) / E).

    As `squared_floor`; a wrong sign costs b s/d = 2 tau.

    Example:
        >>> absolute_floor(epsilon=1.0, dimension=128, sparsity=8, n=10_000)
        0.186...

    References
    ----------
    S. Wang, Li, Li et al., 2023, Theorem 3, which prints min(s/2, d sqrt(s / (64 n)) / E) by a tau that is twice too
    large.
    """
    growth = _growth(epsilon, dimension, sparsity, n)
    return min(sparsity / 4, dimension * math.sqrt(sparsity / (128 * n)) / growth)


def largest_floor(*, epsilon: float, dimension: int, sparsity: int, n: int) -> float:
    """The least error of the worst entry: min(1/4, sqrt(s log d / (512 n)) / E), for d of at least 16; 0 below.

    One of d entries is +1 in a part b of the people, and all others even: d hypotheses, of which two differ by b in
    some entry, and F is at most 2 b^2 d/s. With b^2 = min(1, s log d / (32 n E^2)) Fano's lemma says that the choice is
    wrong at least half of the time, where log 2 is at most log d / 4; a wrong choice costs b/2.

    Example:
        >>> largest_floor(epsilon=1.0, dimension=128, sparsity=8, n=10_000)
        0.00160...

    References
    ----------
    S. Wang, Li, Li et al., 2023, Theorem 9, which leaves the constant open and has log(d/s).
    """
    growth = _growth(epsilon, dimension, sparsity, n)
    if dimension < 16:
        return 0.0
    return min(0.25, math.sqrt(sparsity * math.log(dimension) / (512 * n)) / growth)


def sampling_error(*, sparsity: int, n: int) -> float:
    """The most that drawing the people adds to the squared error: an entry's variance is at most its part of people."""
    return sparsity / n


def _growth(epsilon: float, dimension: int, sparsity: int, n: int) -> float:
    check_integer("dimension", dimension, 1)
    check_integer("sparsity", sparsity, 1, dimension)
    check_integer("n", n, 1)
    if not epsilon > 0:
        raise InvalidValue("epsilon", epsilon, "above 0")
    return math.expm1(min(epsilon, 300.0))
