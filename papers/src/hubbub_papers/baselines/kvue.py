"""KVUE: report on one position by three-valued randomised response."""

from dataclasses import dataclass
from functools import cached_property

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.weights import TWO_64, other_weight, truth_weight
from hubbub_papers.baselines.one_key import OneKey, SignWeights


@dataclass(frozen=True, kw_only=True)
class KVUE(OneKey):
    """Means and frequencies of ternary vectors, of any sparsity: one position, and +, - or nothing.

    A position is drawn, publicly; what is held there is said with probability e^eps/(e^eps + 2), each of the two other
    answers with 1/(e^eps + 2). The error of the mean is about 6 d^2 / (n eps^2), whatever s is.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries of one may differ from 0 (it changes nothing but clipping).
    other
        Of 2^64, the share of each false answer; 0 chooses it.

    Example:
        >>> from hubbub import Random
        >>> kvue = KVUE(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = kvue.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> kvue.estimate(kvue.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Sun et al., 2019; S. Wang, Li, Xin et al., 2023, section 2.2.
    """

    other: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        if self.other == 0:
            self._set("other", other_weight(self.epsilon, 3))
        self._integer("other", 1, TWO_64 // 3)
        if truth_weight(self.other, 3) <= self.other:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    @cached_property
    def shares(self) -> SignWeights:
        return SignWeights(truth_weight(self.other, 3), self.other, self.other)
