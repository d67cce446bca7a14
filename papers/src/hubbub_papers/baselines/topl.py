"""ToPL's randomiser of clipped values, on ternary vectors: stochastic rounding of every entry."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hubbub.mechanisms.weights import resolve_two_weights
from hubbub_papers.baselines.signs import SignVector


@dataclass(frozen=True, kw_only=True)
class ToPLClipped(SignVector):
    """Means of sparse ternary vectors, in d signs: each entry says its sign for itself, with its part of epsilon.

    An entry of -1 or 1 says its sign with probability e^(eps/s)/(e^(eps/s) + 1), a zero is a fair coin: stochastic
    rounding of a number in [-1, 1]. Two vectors that differ lose at most s times eps/s: a position that only one of
    them holds tells the two apart by no more than half as well as one that they hold with opposite signs. A pattern
    that disagrees h times has the weight e^(-h eps/s). The error of the mean is d ((e^(eps/s)+1)/(e^(eps/s)-1))^2 / n,
    about 4 d s^2 / (n eps^2).

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    bits, least
        The weight of a sign that is turned is `least`, and 2^bits if it is kept; `least` is at least e^(-eps/s) times
        2^bits. If 0, they are chosen.

    Example:
        >>> from hubbub import Random
        >>> topl = ToPLClipped(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = topl.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> topl.estimate(topl.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    T. Wang et al., 2021, section 4.2 and appendix E.2; S. Wang, Li, Xin et al., 2023, section 2.1. The threshold is 1.
    The paper's hybrid mechanism is stochastic rounding alone up to a budget of 0.61; here it is so at any, because the
    piecewise half of it would have to make do with eps/(2 s) an entry.
    """

    bits: int = 0
    least: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        resolve_two_weights(self, Fraction(self.epsilon) / self.sparsity, precision=48)
        self._check_weights(self.bits * self.sparsity)

    @cached_property
    def weights(self) -> list[int]:
        s = self.sparsity
        return [self.least**h << self.bits * (s - h) for h in range(s + 1)]
