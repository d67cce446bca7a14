"""Answers as in deployment: everyone's OLH report is made, and every candidate's support is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import bucket, hash32
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import GroupAnswers
from hubbub_papers.baselines.heavy_hitters.candidates import Extensions

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
