"""The answers of a group of people through OLH: the support of candidates, simulated or counted from reports."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import bucket, hash32
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.baselines.heavy_hitters.population import Extensions


class GroupAnswers(ABC):
    """The answers of n people, each of whom holds a code.

    `people` has, for each person, the index in `codes` of the code that they hold.
    """

    def __init__(self, codes: NDArray[Any], people: NDArray[np.int64], epsilon: float, rng: Random) -> None:
        self.codes, self.people, self.n = codes, people, people.size
        self.oracle = OLH(epsilon=epsilon, domain=2)
        self.p, self.q = (float(rate) for rate in self.oracle.rates)

    @abstractmethod
    def support(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The number of reports that support each of these different codes."""

    @abstractmethod
    def best(self, candidates: Extensions, most: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The `most` candidates of the largest support, the largest first, and their supports."""

    @abstractmethod
    def best_of_each(self, candidates: Extensions) -> NDArray[Any]:
        """For each prefix of the candidates, the extension of the largest support."""

    @abstractmethod
    def supporters(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each report (column) supports each code (row); codes must have been returned by `best`."""

    def shares(self, supports: NDArray[np.int64]) -> NDArray[np.float64]:
        """The estimated shares of codes with such supports (Eq 3.1)."""
        return np.asarray((supports / max(1, self.n) - self.q) / (self.p - self.q))


class DrawnAnswers(GroupAnswers):
    """Answers whose support counts are drawn from their exact distribution."""

    def __init__(self, codes: NDArray[Any], people: NDArray[np.int64], epsilon: float, rng: Random) -> None:
        super().__init__(codes, people, epsilon, rng)
        self._rng = generator(rng)
        self._codes, places = np.unique(codes, return_inverse=True)
        holders = np.bincount(people, minlength=len(codes))
        self._counts = np.bincount(places, weights=holders, minlength=len(self._codes)).astype(np.int64)
        self._drawn: dict[int, tuple[int, int]] = {}

    def support(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        places = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        holders = np.where(self._codes[places] == codes, self._counts[places], 0)
        return np.asarray(sum(self._supports(holders)))

    def best(self, candidates: Extensions, most: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        within = candidates.within(self._codes)
        present = self._codes[within]
        true, false = self._supports(self._counts[within])
        absent = candidates.size - present.size
        largest = self._largest(absent, min(most, absent))
        codes = np.concatenate([present, candidates.drawn(len(largest), present, self._rng)])
        true, false = np.concatenate([true, np.zeros_like(largest)]), np.concatenate([false, largest])
        order = np.lexsort((self._rng.random(len(codes)), -true - false))[:most]
        codes, true, false = codes[order], true[order], false[order]
        self._drawn |= dict(zip(codes.tolist(), zip(true.tolist(), false.tolist(), strict=True), strict=True))
        return codes, true + false

    def best_of_each(self, candidates: Extensions) -> NDArray[Any]:
        rows = candidates.rows(self._codes)
        present, rows, counts = self._codes[rows >= 0], rows[rows >= 0], self._counts[rows >= 0]
        supports = sum(self._supports(counts))
        absent = (1 << candidates.bits) - np.bincount(rows, minlength=len(candidates.prefixes))
        best = np.concatenate([supports, self._largest_of_each(absent)])
        order = np.lexsort((self._rng.random(len(best)), best))  # the best of each row comes last
        winner = np.full(len(candidates.prefixes), -1)
        winner[np.concatenate([rows, np.arange(len(absent))])[order]] = order
        not_held = winner >= len(present)
        codes = np.empty(len(winner), dtype=candidates.prefixes.dtype)
        codes[~not_held] = present[winner[~not_held]]
        for row in np.flatnonzero(not_held):
            extensions = Extensions(candidates.prefixes[row : row + 1], candidates.bits)
            codes[row] = extensions.drawn(1, present[rows == row], self._rng)[0]
        return codes

    def supporters(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Given the numbers of holders and others that support a code, all sets of these sizes are equally likely."""
        chosen = np.zeros((len(codes), self.n), dtype=np.bool_)
        for row, code in enumerate(codes.tolist()):
            true, false = self._drawn[code]
            holds = (self.codes == code)[self.people]
            for people, number in ((np.flatnonzero(holds), true), (np.flatnonzero(~holds), false)):
                chosen[row, self._rng.choice(people, number, replace=False, shuffle=False)] = True
        return chosen

    def _supports(self, holders: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The supports, by holders and by others, of codes with these numbers of holders."""
        return self._rng.binomial(holders, self.p), self._rng.binomial(self.n - holders, self.q)

    def _largest(self, absent: int, most: int) -> NDArray[np.int64]:
        """The largest supports, in falling order, of `absent` candidates that nobody holds."""
        logs = np.cumsum(np.log(self._rng.random(most)) / (absent - np.arange(most, dtype=np.float64)))
        return self._quantiles(logs)

    def _largest_of_each(self, absent: NDArray[np.int64]) -> NDArray[np.int64]:
        with np.errstate(divide="ignore"):
            logs = np.log(self._rng.random(len(absent))) / absent
        return np.where(absent > 0, self._quantiles(logs), -1)

    def _quantiles(self, logs: NDArray[np.float64]) -> NDArray[np.int64]:
        """The quantiles at e^log of the support of a candidate that nobody holds."""
        from scipy.stats import binom

        return np.asarray(binom.isf(-np.expm1(logs), self.n, self.q), dtype=np.int64)


_BLOCK = 1 << 20


class ReportedAnswers(GroupAnswers):
    """The answers of a group as real reports, of codes of at most 64 bits."""

    def __init__(self, codes: NDArray[Any], people: NDArray[np.int64], epsilon: float, rng: Random) -> None:
        super().__init__(codes, people, epsilon, rng)
        if codes.dtype == object:
            raise InvalidValue("codes", codes.dtype, "codes of 64 bits: longer ones are drawn")
        self._olh = OLH(epsilon=epsilon, domain=BitStrings(64))
        self._reports = self._olh.randomize(codes[people], rng)

    def support(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        return self._olh.supports(self._reports, codes)

    def best(self, candidates: Extensions, most: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        codes = candidates.listed()
        supports = self._listed(codes)
        order = np.argsort(-supports, kind="stable")[:most]
        return codes[order], supports[order]

    def best_of_each(self, candidates: Extensions) -> NDArray[Any]:
        codes = candidates.listed().reshape(len(candidates.prefixes), -1)
        supports = self._listed(codes.ravel()).reshape(codes.shape)
        return np.asarray(codes[np.arange(len(codes)), supports.argmax(axis=1)])

    def supporters(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        seeds, buckets = self._reports.public["seed"], self._reports.private["bucket"]
        return np.array([bucket(hash32(seeds, code), self._olh.buckets) == buckets for code in codes])

    def _listed(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        return np.concatenate([self.support(codes[at : at + _BLOCK]) for at in range(0, len(codes), _BLOCK)])
