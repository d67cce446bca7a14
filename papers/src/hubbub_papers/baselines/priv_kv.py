"""PrivKV: report on one position, whose key and value are flipped at random."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hubbub.core.errors import InvalidValue
from hubbub.random.integers import ceil_div, exp_floor
from hubbub_papers.baselines.one_key import OneKey, SignWeights

__all__ = ["PrivKV"]

WHOLE = 1 << 32
_DIGITS = 1 << 100  # of the square root, rounded down


@dataclass(frozen=True, kw_only=True)
class PrivKV(OneKey):
    """Means and frequencies of ternary vectors, of any sparsity: one position, its key and then its value flipped.

    A position is drawn, publicly. Its sign is kept with probability a = r/(1+r) and else turned; where the entry is 0,
    the sign is a fair coin. Then the bit that says whether the entry differs from 0 is kept with probability a and
    else turned; a report with the bit 0 has no sign. The worst ratio of probabilities is 2 r^2/(1+r), of a sign
    against a 0, so that r = (e^eps + sqrt(e^(2 eps) + 8 e^eps))/4 spends eps exactly. The error of the mean is about
    18 d^2 / (n eps^2), whatever s is.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries of one may differ from 0 (it changes nothing but clipping).
    flip
        Of 2^32, how often a key, and a value, is turned; 0 chooses it.

    Example:
        >>> from hubbub import Random
        >>> privkv = PrivKV(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = privkv.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> privkv.estimate(privkv.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Ye et al., 2019 (Algorithm 2); S. Wang, Li, Li et al., 2023, section 3.1. There the key and the value spend half of
    eps each, r = e^(eps/2): the two are not lost together, and r is raised here until eps is used up.
    """

    flip: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        if self.flip == 0:
            self._set("flip", ceil_div(WHOLE, 1 + largest_odds(self.epsilon)))
        if 2 * self.flip == WHOLE:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 32-bit probabilities can tell from 0")
        self._integer("flip", 1, WHOLE // 2 - 1)

    @cached_property
    def shares(self) -> SignWeights:
        turned, kept = self.flip, WHOLE - self.flip
        return SignWeights(kept * kept, kept * turned, turned * WHOLE // 2)


def largest_odds(epsilon: float) -> Fraction:
    """The largest r with 2 r^2/(1+r) at most e^eps, rounded down."""
    power = exp_floor(epsilon)
    square = math.floor((power**2 + 8 * power) * _DIGITS**2)
    return (power + Fraction(math.isqrt(square), _DIGITS)) / 4
