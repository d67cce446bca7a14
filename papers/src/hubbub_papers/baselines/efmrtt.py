"""EFMRTT: one entry is sampled and reported by randomised response; all other positions are fair coins."""

from dataclasses import dataclass
from functools import cached_property

from hubbub.mechanisms.weights import resolve_two_weights
from hubbub_papers.baselines.signs import SignVector


@dataclass(frozen=True, kw_only=True)
class EFMRTT(SignVector):
    """Means of sparse ternary vectors, in d signs: one entry of s is sampled, every other position is a fair coin.

    The sampled entry's sign is said with probability e^eps/(e^eps + 1) and else its opposite; the others of the s are
    treated as zeros. A pattern that disagrees h times has the weight (s-h) e^eps + h, and the worst ratio is e^eps, of
    a vector that agrees everywhere against its opposite. The error of the mean is d s^2 ((e^eps+1)/(e^eps-1))^2 / n:
    s times that of Collision and ExSub.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    bits, least
        The weight of the sampled sign if it is turned is `least`, and 2^bits if it is kept; `least` is at least e^-eps
        times 2^bits. If 0, they are chosen.

    Example:
        >>> from hubbub import Random
        >>> efmrtt = EFMRTT(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = efmrtt.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> efmrtt.estimate(efmrtt.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Erlingsson et al., 2019 (the randomiser of one level of its tree); S. Wang, Li, Xin et al., 2023, section 2.1. Two
    vectors differ in two positions, for each of which the paper sets aside half of eps: exactly accounted, both can
    have all of it.
    """

    bits: int = 0
    least: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        resolve_two_weights(self, self.epsilon)
        self._check_weights(self.bits + 13)

    @cached_property
    def weights(self) -> list[int]:
        s = self.sparsity
        return [(s - h << self.bits) + h * self.least for h in range(s + 1)]
