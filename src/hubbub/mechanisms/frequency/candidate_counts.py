"""Mechanisms whose reports support values, and how supports of candidates are counted, with weights or without."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.domain import Domain, as_domain
from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports, Sketch
from hubbub.core.spec import spec_id
from hubbub.mechanisms.base import Linkable, Mechanism

DomainLike: TypeAlias = Domain | int | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class CandidateCounts(Mechanism):
    """A mechanism over a domain whose reports each support some of its values."""

    linkable: ClassVar[Linkable] = "never"
    domain: DomainLike
    takes_open: ClassVar[bool] = False
    """Whether the domain may be open (`BitStrings`). A sketch then holds n alone: `support` counts candidates."""

    @abstractmethod
    def _support(
        self, reports: Reports, candidates: NDArray[np.uint64], weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """For each candidate, the number (or total weight) of reports that support it."""

    def _support_sums(
        self, reports: Reports, candidates: NDArray[np.uint64], weights: NDArray[np.int64], powers: int
    ) -> NDArray[np.int64]:
        """The weight of the reports that support each candidate, then of all; for 2 powers, the same of squares."""
        columns = [weights**power for power in range(1, powers + 1)]
        return np.array([np.append(self._support(reports, candidates, row), row.sum()) for row in columns])

    @cached_property
    def _domain(self) -> Domain:
        """The domain of what is counted."""
        return as_domain("domain", self.domain)

    @cached_property
    def size(self) -> int:
        """How many values there are."""
        domain = self._domain
        if isinstance(domain, BitStrings):
            return 1 << domain.bits
        assert domain.size is not None
        return domain.size

    @property
    def is_open(self) -> bool:
        """Whether the values are too many to list: then only candidates are estimated, by `support`."""
        return self._domain.size is None

    def support(self, reports: Reports, candidates: Any, weights: ArrayLike | None = None) -> Sketch:
        """Count supports of some candidates only, each report counting as its integer weight.

        The sketch's id covers the candidates, so that sketches of different candidates do not merge. With weights
        (fixed-point numbers), the counts have a row for weights and one for squared weights, each with its total last.
        """
        self.check(reports)
        codes = self._codes(candidates)
        if weights is None:
            return Sketch(self._support_id(codes, False), len(reports), self._support(reports, codes, None))
        return Sketch(self._support_id(codes, True), len(reports), self.weighted_supports(reports, codes, weights))

    def supports(self, reports: Reports, codes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many reports support each code; codes may repeat. The fast form of `support` for millions of
        candidates.
        """
        self.check(reports)
        return self._support(reports, codes, None)

    def weighted_supports(self, reports: Reports, codes: NDArray[np.uint64], weights: ArrayLike) -> NDArray[np.int64]:
        """The weight of the reports that support each code, then of all reports; in the second row, of squared
        weights.
        """
        self.check(reports)
        return self._support_sums(reports, codes, _weights(weights, len(reports)), 2)

    def support_sketch(self, candidates: Any, n: int, counts: ArrayLike) -> Sketch:
        """The sketch that `support` returned for n reports, with or without weights, rebuilt from its counts."""
        codes = self._codes(candidates)
        array = np.asarray(counts, dtype=np.int64)
        if array.shape not in ((codes.size,), (2, codes.size + 1)):
            raise InvalidValue("counts", array.shape, f"{codes.size} counts, one per candidate")
        return Sketch(self._support_id(codes, array.ndim == 2), n, array)

    def _codes(self, candidates: Any) -> NDArray[np.uint64]:
        codes = self._domain.encode(candidates).astype(np.uint64)
        if np.unique(codes).size < codes.size:
            raise InvalidValue("candidates", candidates, "candidates that differ from each other")
        return codes

    def _support_id(self, codes: NDArray[np.uint64], weighted: bool) -> str:
        digest = hashlib.sha256(codes.astype("<u8").tobytes()).hexdigest()
        return spec_id({"support": self.spec_id, "candidates": digest, "weighted": weighted})


def _weights(weights: ArrayLike, n: int) -> NDArray[np.int64]:
    array = np.asarray(weights)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise InvalidValue("weights", array, f"{n} integers, one per report")
    most = max(abs(int(array.min(initial=0))), int(array.max(initial=0)))
    if most * most * max(n, 1) >= 1 << 63:
        raise InvalidValue("weights", most, "weights whose squares sum to less than 2^63")
    return array.astype(np.int64, copy=False)
