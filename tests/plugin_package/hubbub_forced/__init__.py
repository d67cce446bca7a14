"""Forced response: tell the truth, or let a die speak. A mechanism as another package would write it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec, fractions
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.random.integers import ceil_div, exp_floor, log_fraction

ALL = 1 << 64


@dataclass(frozen=True, kw_only=True)
class ForcedResponse(FrequencyOracle):
    """Shares of a domain of 2, 4, 8 ... values. A report is the truth, or with `forced` of 2^64 any value, drawn alike.

    Boruch, "Assuring confidentiality of responses in social research", 1971.
    """

    forced: int = 0

    def _resolve(self):
        self._resolve_domain()
        if self.size & (self.size - 1):
            raise InvalidValue("domain", self.size, "a power of two")
        if self.forced == 0:
            self._set("forced", ceil_div(ALL * self.size, exp_floor(self.epsilon) - 1 + self.size))
        self._integer("forced", 1, ALL - 1)

    @cached_property
    def rates(self):
        any_value = Fraction(self.forced, ALL * self.size)
        return Fraction(ALL - self.forced, ALL) + any_value, any_value

    def ratio(self):
        p, q = self.rates
        return p / q

    @property
    def columns(self):
        return (ColumnSpec("private", "value", unsigned(self.size), below=self.size),)

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        die = (draws[:, 1] & np.uint64(self.size - 1)).astype(np.int64)
        return {"value": np.where(draws[:, 0] < np.uint64(ALL - self.forced), codes, die)}

    def _same(self, reports, values):
        return reports.private["value"][:, None] == self.encode(values)[None, :]

    def prob(self, reports, values):
        p, q = self.rates
        return fractions([q, p], self._same(reports, values).astype(int))

    def log_prob(self, reports, values):
        p, q = self.rates
        return np.where(self._same(reports, values), log_fraction(p), log_fraction(q))

    def outputs(self, public=None):
        return Reports(self.spec_id, private={"value": np.arange(self.size, dtype=unsigned(self.size))})

    def _fold(self, reports):
        return np.bincount(reports.private["value"], minlength=self.size)

    def _support(self, reports, candidates, weights):
        counts = np.zeros(self.size, dtype=np.int64)
        np.add.at(counts, reports.private["value"], 1 if weights is None else weights)
        return counts[candidates]

    def _supported(self, values):
        return int(values == self.size), 1

    def pair_covariance(self):
        p, q = (float(rate) for rate in self.rates)
        return -p * q, -q * q

    @classmethod
    def examples(cls):
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d"])
