"""DDRM's ternary randomiser: PCKV-UE with k sampled entries, each with a k-th part of epsilon."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from hubbub_papers.baselines.three_way import ThreeWay


@dataclass(frozen=True, kw_only=True)
class DDRM(ThreeWay):
    """Means and frequencies of sparse ternary vectors: +, - or nothing at every position, k entries of s sampled.

    Each of k sampled entries is said as in PCKV-UE with eps/k, and every other position likewise; the worst ratio of
    probabilities is exactly e^eps. The error of the mean is about 8 d s^2 / (n eps^2) at any k while eps is small;
    beyond that k = 1 is best, which is PCKV-UE itself.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    selected
        How many entries are sampled, k; 0 chooses the number with the smallest error of the mean.
    false, reverse, true
        As in `PCKVUE`, at eps/k; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> ddrm = DDRM(epsilon=2.0, dimension=4, sparsity=2, selected=2)
        >>> reports = ddrm.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> ddrm.estimate(ddrm.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Xue et al., 2022, as S. Wang, Li, Xin et al., 2023, sections 2.1 and 2.2, describes it: k of s changes with eps/k
    each, an extension of PCKV-UE. The probabilities for eps/k, and that they spend eps exactly, are ours.
    """

    selected: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        if self.selected == 0:
            self._set("selected", best_selection(self.epsilon, self.dimension, self.sparsity))
        self._integer("selected", 1, self.sparsity)
        self._resolve_shares()

    @property
    def entries(self) -> int:
        return self.selected

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2, selected=2)
        yield cls(epsilon=1.0, dimension=4, sparsity=3, selected=2)
        yield cls(epsilon=2.0, dimension=19, sparsity=4)


def best_selection(epsilon: float, dimension: int, sparsity: int) -> int:
    """How many entries to sample for the smallest error of the mean, by trying all numbers."""
    k = np.arange(1, sparsity + 1)
    odds = np.exp(np.clip(epsilon / k, 1e-9, 14.0))
    sampled, false = k / sparsity, 1 / (odds + 3)
    gap = sampled * (odds - 1) / (odds + 1) / 2
    held = sampled / 2 + (1 - sampled) * 2 * false - gap**2
    return int(k[np.argmin((sparsity * held + (dimension - sparsity) * 2 * false) / gap**2)])
