"""The worst ratio of a mechanism's probabilities, by enumeration."""

import math
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Domain, Sets, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Columns
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.random.integers import log_upper
from hubbub.random.source import Random


def domain_of(mechanism: ReportFormat) -> Domain | None:
    """The domain of a mechanism's values, where it has one."""
    domain = getattr(mechanism, "domain", None)
    return None if domain is None else as_domain("domain", domain)


def required_fields(kind: type[ReportFormat]) -> list[str]:
    """The fields other than epsilon that a mechanism cannot be built without."""
    missing = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    return [name for name in missing if name != "epsilon"]


def count_of(mechanism: ReportFormat) -> int | None:
    """How many values there are; None where there is no end of them."""
    if isinstance(mechanism, TernaryMechanism):
        return mechanism.size
    domain = domain_of(mechanism)
    if isinstance(domain, Sets):
        return sum(comb(domain.items.size or 0, size) for size in range(domain.most + 1))
    return None if domain is None else domain.size


MOST_PUBLICS = 32
MOST_VALUES = 1024
MOST_CELLS = 1 << 16  # probabilities looked at, reports times values times public parts
MOST_BITS = 1 << 27  # of all probabilities over their common denominator, by value: beyond, exactness takes minutes


@dataclass(frozen=True)
class Enumeration:
    """The result of an enumeration.

    Parameters
    ----------
    ratio
        The largest ratio of one report's probabilities under two values; None if a report is possible under one
        value and impossible under another.
    normalised
        Whether the probabilities of each value's reports sum to exactly 1: nothing was left out.
    values, every_value, reports, publics
        How many values were compared, whether that is all, how many reports each has, and with how many public parts.
    """

    ratio: Fraction | None
    normalised: bool
    values: int
    every_value: bool
    reports: int
    publics: int

    @property
    def epsilon(self) -> float:
        """The enumerated epsilon, rounded up."""
        return math.inf if self.ratio is None else log_upper(self.ratio)

    def within(self, ratio: Fraction) -> bool:
        """Whether nothing enumerated contradicts the ratio that the mechanism claims."""
        return self.normalised and self.ratio is not None and self.ratio <= ratio

    def to_dict(self, ratio: Fraction) -> dict[str, Json]:
        """The findings as JSON, and whether they equal the ratio that the mechanism claims."""
        return {
            "epsilon": "unbounded" if self.ratio is None else self.epsilon,
            "equal": self.ratio == ratio,
            "normalised": self.normalised,
            "values": self.values,
            "every_value": self.every_value,
            "reports": self.reports,
            "publics": self.publics,
        }


def enumerate_reports(mechanism: Mechanism, rng: Random) -> Enumeration | None:
    """Compare every pair of values on every report, in exact arithmetic; None where there are too many reports.

    Where reports have a public part, several are drawn and each is held fixed in turn: the guarantee is conditional on
    the public part.
    """
    values = mechanism.example_values(MOST_VALUES)
    public: Columns = {}
    if any(column.part == "public" for column in mechanism.columns):
        public = mechanism.randomize([values[i % len(values)] for i in range(MOST_PUBLICS)], rng).public
    worst: Fraction | None = Fraction(1)
    normalised, reports, publics, cells = True, 0, 0, 0
    for row in range(MOST_PUBLICS if public else 1):
        every = mechanism.outputs({name: column[row : row + 1] for name, column in public.items()} if public else None)
        if every is None or cells + len(every) * len(values) > MOST_CELLS:
            break
        compared = _compare(mechanism.prob(every, values))
        if compared is None:
            break
        ratio, sums_to_one = compared
        worst = None if worst is None or ratio is None else max(worst, ratio)
        normalised &= sums_to_one
        reports, publics, cells = len(every), publics + 1, cells + len(every) * len(values)
    if publics == 0:
        return None
    return Enumeration(worst, normalised, len(values), count_of(mechanism) == len(values), reports, publics)


def _compare(chances: NDArray[np.object_]) -> tuple[Fraction | None, bool] | None:
    """The worst ratio within a row, and whether each column sums to 1; None where the numbers are too long."""
    flat: list[Any] = chances.ravel().tolist()
    rounded = next((chance for chance in flat if not isinstance(chance, Fraction | int)), None)
    if rounded is not None:
        raise InvalidValue("prob", rounded, "exact Fractions: an audit of rounded numbers would prove nothing")
    common = math.lcm(*{chance.denominator for chance in flat})
    if common.bit_length() * len(flat) > MOST_BITS * chances.shape[1]:
        return None
    # Over a common denominator, comparing and adding fractions is comparing and adding integers.
    numerators = np.array([chance.numerator * (common // chance.denominator) for chance in flat] + [None], dtype=object)
    table = numerators[:-1].reshape(chances.shape)
    extremes = set(zip(table.max(axis=1).tolist(), table.min(axis=1).tolist(), strict=True))
    sums_to_one = all(total == common for total in table.sum(axis=0).tolist())
    if any(low < high and low <= 0 for high, low in extremes):
        return None, sums_to_one
    return max((Fraction(high, low) for high, low in extremes if low > 0), default=Fraction(1)), sums_to_one
