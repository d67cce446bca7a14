"""Claims of papers on privacy amplification, for comparison; never a guarantee."""

import math
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.mechanisms.frequency.unary import SUE
from hubbub.mechanisms.weights import Blanket, choice_rates
from hubbub.privacy.amplify import Amplified
from hubbub.privacy.binomial_tails import blocks, smallest_epsilon
from hubbub.privacy.shuffle_bounds import ahead, binomial_epsilon
from hubbub.random.integers import exp_floor

_BLOCKS = 2000


def variation_claim(mechanism: Mechanism, *, n: int, delta: float) -> Amplified:
    """Clones of the mechanism's own chance, below an arbitrary one's (S. Wang, Li, Li et al., 2023, Theorem 5).

    The reduction to such clones is no upper bound: the true delta of GRR with three values, two reports and epsilon 0.5
    is .01943 at 0.4, and the claim is .01179.
    """
    blanket = mechanism.blanket()
    if blanket is None:
        raise InvalidValue("mechanism", type(mechanism).__name__, "one whose blanket is known")
    bound = partial(variation_delta, blanket, n)
    epsilon = smallest_epsilon(bound, bound, delta, mechanism.effective_epsilon)
    return Amplified(
        mechanism.effective_epsilon if epsilon is None else epsilon,
        delta,
        "S. Wang, Li, Li et al., 2023, Theorem 5",
        False,
    )


def unary_claim(mechanism: SUE, *, n: int, delta: float) -> Amplified:
    """Theorem 9.3.1 of T. Wang, 2021: unary encoding as two binomial counts, each with half of epsilon and delta.

    It holds for the sums of the bits alone. Whoever sees shuffled reports sees which bits stand together: most others
    show their own value next to a false bit, so that few of those hide anybody. With three values, a local epsilon of
    13.8 and a million reports it says .92 at a delta of 1e-6; the true delta there is above .06.
    """
    weight = math.exp(mechanism.effective_epsilon / 2) + 1
    half = binomial_epsilon(weight, n, delta / 2)
    epsilon = mechanism.effective_epsilon if half is None else 2 * half
    return Amplified(epsilon, delta, "T. Wang, 2021, Theorem 9.3.1", False)


def variation_delta(blanket: Blanket, n: int, epsilon: float) -> float:
    """The delta that the claim states at an epsilon."""
    ratio, factor = float(blanket.ratio), math.exp(epsilon)
    chance = float(blanket.mass * (blanket.preferred - blanket.shared))  # alpha
    if factor >= ratio:
        return 0.0
    telling = blocks(n, 2 * chance, _BLOCKS)
    rest = (1 - (ratio + 1) * chance) / (1 - 2 * chance) if 2 * chance < 1 else 0.0
    gain, cost = (ratio - 1) * (factor + 1) / 2, factor - 1
    penalty = (ratio + 1) / 2 * telling.low + rest * (n - telling.low)
    return float((telling.chance * ahead(telling.high, cost * penalty / gain)).sum()) * gain / n


def clones_closed_form(epsilon: float, clones: float, delta: float) -> float:
    """The epsilon with this number of clones; infinite if that is too small (S. Wang, Li, Xin et al., 2023, Lemma 3.4).

    The "+ 1" stands outside of the root.
    """
    root = math.sqrt(math.log(4 / delta) * clones / 2) if clones > 0 else 0.0
    if clones / 2 <= root:
        return math.inf
    power = math.exp(epsilon)
    return math.log1p((power - 1) / (power + 1) * (2 * root + 1) / (clones / 2 - root))


def collaborative_clones(
    *, epsilon: float, positions: int, sparsity: int, n: int, delta: float, online: bool = True
) -> tuple[float, Amplified]:
    """The clones that symbols of two people are said to make (S. Wang, Li, Xin et al., 2023, Theorem 6.2).

    Returns the stated lower end of the number of clones, and the epsilon. Its Lemma D.1 is false: of symbols that are
    shuffled one by one the bounds of whole reports hold, and nothing more is proved. With `online=False`, Lemma 3.4,
    which is valid.
    """
    power, d = math.exp(epsilon), positions
    omega = 4 * math.comb(d, 2) - (1 - 1 / power) * sum(
        math.comb(sparsity, j) * math.comb(d - sparsity, 2 - j) * 2 ** (2 - j) for j in range(3)
    )
    together = (sparsity + (2 * d - sparsity - power - 2) * (1 / power - 1 / power**2)) / omega
    clones = n / power - math.sqrt(3 * n / power * math.log(4 / delta))
    if not online:
        return clones, Amplified(
            clones_closed_form(epsilon, clones, delta), delta, "S. Wang, Li, Xin et al., 2023, Lemma 3.4"
        )
    clones += n * d * (d - 1) / (2 * power) * together**2
    return clones, Amplified(
        clones_closed_form(epsilon, clones, delta), delta, "S. Wang, Li, Xin et al., 2023, Theorem 6.2", False
    )


class LimitedAmplification(NamedTuple):
    """OLH's epsilon and buckets, how many elements may fall in one bucket, and the chance that more do."""

    epsilon: float
    buckets: int
    together: int
    delta: float


def limited_amplification(epsilon: float, length: int, delta: float) -> LimitedAmplification:
    """The epsilon' that OLH may use so that padding and sampling over it is (epsilon, delta)-LDP, by Theorem 5.5.1.

    e^eps' = (l/l') (e^eps - 1) + 1, with the smallest l' for which C(l, l'+1) g^-l' <= delta over g = ceil(e^eps' + 1)
    buckets: more than l' of l elements then fall in one bucket with no larger probability. It holds for sets of at most
    l items: cut longer ones first. A device accounts for pure epsilon only, so that no mechanism is built from this;
    `hashing_delta` has the exact delta, which is smaller.

    References
    ----------
    T. Wang, 2021, Theorem 5.5.1. About a dozen cells of Table 5.2 do not follow from it.
    """
    check_integer("length", length, 1, 1 << 20)
    if not epsilon > 0:
        raise InvalidValue("epsilon", epsilon, "a number above 0")
    if not 0 < delta < 1:
        raise InvalidValue("delta", delta, "a probability between 0 and 1")
    gain = Fraction(math.expm1(epsilon))
    for together in range(1, length + 1):
        power = Fraction(length, together) * gain + 1
        buckets = math.ceil(power + 1)
        chance = Fraction(math.comb(length, together + 1), buckets**together)
        if chance <= delta:
            break
    return LimitedAmplification(math.log(power), buckets, together, float(chance))


def hashing_delta(oracle: LocalHashing, length: int, epsilon: float) -> float:
    """The exact delta at which padding and sampling over a local hashing oracle is (epsilon, delta)-LDP.

    Of two sets of l elements that have none in common, A and B are in a bucket, each Binomial(l, 1/g) over a random
    hash, and delta = g E[(q + A (p-q)/l - e^eps (q + B (p-q)/l))_+]. Sets that have elements in common, and longer
    ones, give no more (larger samples are less variable). Rounded up.
    """
    check_integer("length", length, 1, 1 << 10)
    truth, other = choice_rates(oracle.other, oracle.buckets)
    power, g = exp_floor(epsilon), oracle.buckets
    step = (truth - other) / length
    ways = [math.comb(length, held) * (g - 1) ** (length - held) for held in range(length + 1)]  # of g^length
    above = Fraction(0)
    for first, count in enumerate(ways):
        gain = other + first * step
        if gain <= power * other:
            continue
        rest = sum(
            (many * (gain - power * (other + second * step)))
            for second, many in enumerate(ways)
            if gain > power * (other + second * step)
        )
        above += count * rest
    exact = g * above / Fraction(g) ** (2 * length)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
