"""Mechanisms with a planted bug in `prob`, `ratio` or the spec."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import GRR, OLH, SUE
from hubbub.core.event import Event
from hubbub.mechanisms.weights import TWO_64
from hubbub.random.integers import log_upper
from tests.checks.planted import found_by

SMALL: dict[str, Any] = {"epsilon": 1.0, "domain": 5}


@found_by("check_exact_epsilon", **SMALL)
class OneTooGreedy(GRR):
    """Uses an integer that is one smaller than the one its epsilon is computed from."""

    @property
    def rates(self):
        other = self.other - 1
        return Fraction(TWO_64 - (self.size - 1) * other, TWO_64), Fraction(other, TWO_64)

    def ratio(self):
        return Fraction(TWO_64 - (self.size - 1) * self.other, self.other)


@found_by("check_tight_epsilon", **SMALL)
class TooModest(GRR):
    """States a bound that no report reaches."""

    @property
    def rates(self):
        p, q = super().rates
        return p - (self.size - 1) * q / 1000, q + q / 1000

    def ratio(self):
        return super().ratio() * Fraction(1001, 1000)


@found_by("check_normalised", **SMALL)
class DoesNotAddUp(GRR):
    """Probabilities whose sum is not 1."""

    def prob(self, reports, values):
        return super().prob(reports, values) * Fraction(TWO_64 - 1, TWO_64)


@found_by("check_log_prob", **SMALL)
class RoundedLogarithm(GRR):
    """A log_prob that is right to nine digits."""

    def log_prob(self, reports, values):
        return super().log_prob(reports, values) + 1e-9


@found_by("check_effective_epsilon", **SMALL)
class RoundsDown(GRR):
    """An effective epsilon that leaves the last digit out."""

    @property
    def effective_epsilon(self):
        return float(np.nextafter(log_upper(self.ratio()), 0))


@found_by("check_effective_epsilon", epsilon=1.0, domain=5, other=1 << 40)
@found_by("check_hostile_spec", **SMALL)
class TrustsTheServer(GRR):
    """Takes the integers of a spec as they come."""

    def __post_init__(self):
        self._resolve()


@found_by("check_hostile_spec", **SMALL)
class OneSidedRatio(SUE):
    """A ratio that is right only while p + q = 1, which a hostile spec need not respect."""

    def ratio(self):
        p, _ = self.rates
        return (p / (1 - p)) ** 2


@found_by("check_frozen", **SMALL)
class Mutable(GRR):
    """Fields that can be set."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


@found_by("check_frozen", **SMALL)
@dataclass(frozen=True, kw_only=True)
class HoldsAList(GRR):
    """A field that can be changed from within."""

    tags: list[str] = field(default_factory=lambda: ["a"])


@found_by("check_spec_round_trip", epsilon=1.0, domain=3, other=TWO_64 // 4)
class Forgetful(GRR):
    """A spec that leaves out an integer, which the other side then chooses for itself."""

    def spec(self):
        return {**super().spec(), "other": 0}


@found_by("check_spec_fields", **SMALL)
class Tolerant(GRR):
    """Ignores what it does not know."""

    @classmethod
    def from_spec(cls, spec):
        return super().from_spec({key: value for key, value in spec.items() if key != "surplus"})


@found_by("check_spec_fields", **SMALL)
class TakesAnyHash(OLH):
    """Reads the reports of a hash function that it does not know as its own."""

    def _one_of(self, field, names):
        pass


@found_by("check_event", **SMALL)
class Underspends(GRR):
    """Charges the ledger less than it spends."""

    def event(self):
        return Event.of(type(self).__name__, self.spec_id, self.effective_epsilon * 0.99)
