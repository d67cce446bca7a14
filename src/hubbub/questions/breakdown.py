"""Breakdowns: the shares of a field's values, or its mean, in each group that one or several other fields make."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Family, Terms
from hubbub.core.domain import NONE, Domain, Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of, units_of
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.records import Axis, CellAxis, CodeAxis, GridAxis
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.group_numbers import GroupNumbers, group_shares_name
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.words import listed
from hubbub.statistics.influence import Influence


def group_axis(domain: Domain, name: str, key: str = "by") -> Axis:
    """A field as groups: its values, or its cells, and one for those who recorded nothing."""
    if isinstance(domain, Numeric):
        return CellAxis(name, domain.low, domain.high, domain.cells)
    if domain.size is None:
        raise InvalidValue(key, name, "a categorical, ordinal or numeric field")
    return CodeAxis(name, domain.symbols().size)


def group_names(domain: Domain, key: str = "by") -> tuple[str, ...]:
    """The names of the groups that a field makes."""
    labels = domain.symbol_labels()
    if labels is None:
        raise InvalidValue(key, domain.describe(), "a field with few enough values to be named")
    return (*labels, NONE) if isinstance(domain, Numeric) else labels


@lru_cache(maxsize=256)
def best_parts(
    groups: tuple[Axis, ...],
    values: tuple[Axis, ...],
    labels: tuple[tuple[str, ...], ...],
    oracle: str | None,
    units: int,
) -> tuple[GroupNumbers, ...]:
    """What devices are asked: the way with the smallest error, in one part or several, and on the best grid.

    `groups`, `values`: the grouping fields, and the ways to read the field, such as grids for a number. `labels`: for
    each grouping field, the names of its groups; then the names of the values.
    """
    ways = [
        parts_of(groups, value, labels, oracle, together=together)
        for value in values
        for together in ((True, False) if len(groups) > 1 else (True,))
    ]
    return min(ways, key=lambda parts: float(f"{parts_error(parts, units):.9g}"))


def parts_of(
    groups: tuple[Axis, ...], value: Axis, labels: tuple[tuple[str, ...], ...], oracle: str | None, *, together: bool
) -> tuple[GroupNumbers, ...]:
    """What devices are asked if one report covers all grouping fields, or, unless `together`, one of them."""
    options: dict[str, Any] = {"main": groups[0].field, "oracle": oracle}
    if together:
        return (GroupNumbers(groups, value, labels, **options),)
    return tuple(
        GroupNumbers((axis,), value, (names, labels[-1]), asked_share=1 / len(groups), **options)
        for axis, names in zip(groups, labels[:-1], strict=True)
    )


def parts_error(parts: tuple[GroupNumbers, ...], units: int) -> float:
    """The mean variance of a typical number, times the number of devices."""
    return sum(part.error_with(part.mechanism(units), 1 / len(parts)) for part in parts) / len(parts)


MOST_NUMBERS = 1 << 12
"""How many numbers an answer may have: groups times values."""
_POINTS = (2, 3, 4, 5, 7, 9, 13, 17)
"""Grids that numbers may be rounded to."""


@dataclass(frozen=True, kw_only=True)
class BreakdownQuestion(StatisticQuestion):
    """One statistic of one field, in each group that other fields make: every step costs epsilon.

    A device sends one report. It covers the value and all grouping fields together, or the value and one grouping
    field, which the device's place on the circle decides; whichever of the two has the smaller error.

    Parameters
    ----------
    by
        The field, or the fields, that make the groups. Each has estimates of its own.
    """

    in_groups: ClassVar[bool] = True
    by: tuple[str, ...]

    def __post_init__(self) -> None:
        by: object = self.by
        if isinstance(by, str):
            object.__setattr__(self, "by", (by,))
        super().__post_init__()
        names = (*self.by, self.field)
        if not self.by or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InvalidValue("by", self.by, f"the names of other fields than {self.field}, all different")

    @abstractmethod
    def value_axes(self, domain: Domain) -> tuple[Axis, ...]:
        """The ways to read the field, of which the one with the smallest error is taken."""

    @abstractmethod
    def value_names(self, domain: Domain) -> tuple[str, ...]:
        """A name for each number that is estimated in a group."""

    def reads(self) -> tuple[str, ...]:
        return (self.field, *self.by)

    def parts(self) -> tuple[GroupNumbers, ...]:
        """What each part of the devices is asked: one part for all fields together, or one for each grouping field."""
        value = self.setting.domains[self.field]
        groups = tuple(group_axis(self.setting.domains[name], name) for name in self.by)
        labels = tuple(group_names(self.setting.domains[name]) for name in self.by)
        names = self.value_names(value)
        if max(axis.size for axis in groups) * len(names) > MOST_NUMBERS:
            raise InvalidValue("by", self.by, f"groups and values that make at most {MOST_NUMBERS:,} numbers")
        axes = self.value_axes(value)
        return best_parts(groups, axes, (*labels, names), self.mechanism, units_of(self.epsilon))

    def statistic(self) -> Statistic:
        return self.parts()[0]

    def mechanisms(self) -> tuple[ReportFormat, ...]:
        return tuple(part.mechanism(units_of(self.epsilon)) for part in self.parts())

    def terms(self) -> Terms:
        parts, terms = self.parts(), super().terms()
        if len(parts) == 1:
            return terms
        # Families, because each mechanism fits one of the views alone: no value may be answered by an error.
        spends = (units_of(epsilon_of(units_of(self.epsilon))),)
        names = sorted({type(mechanism).__name__ for mechanism in self.mechanisms()})
        return replace(
            terms,
            views=tuple(part.view.spec() for part in parts),
            mechanisms=(),
            families=tuple(Family(name, spends) for name in names),
            parts=len(parts),
        )

    def cost(self) -> Cost:
        return Cost(max(mechanism.event().spent for mechanism in self.mechanisms()), 1)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.steady import steady_parts

        return steady_parts(self.parts(), epsilon=self.epsilon, groups=self.setting.groups, memory=memory)

    # -- what it tells ----------------------------------------------------------------------------------------

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The names of the groups of each field."""
        return {name: group_names(self.setting.domains[name]) for name in self.by}

    def labels(self) -> tuple[str, ...]:
        values = self.value_names(self.setting.domains[self.field])
        groups = group_names(self.setting.domains[self.by[0]])
        return tuple(f"{group}: {value}" if len(values) > 1 else group for group in groups for value in values)

    def shape(self) -> Shape:
        statistic, values = self.parts()[0], self.value_names(self.setting.domains[self.field])
        quantity = statistic.kind == "quantity"
        return Shape(
            form="groups",
            size=len(self.labels()),
            unit=self.field if quantity else "share",
            low=statistic.bounds[0] if quantity else None,
            high=statistic.bounds[1] if quantity else None,
            groups=self.groups(),
            values=values,
        )

    def unbiased_steps(self) -> bool:
        return False  # a ratio is not unbiased

    def forecast(self, n: int) -> float | None:
        groups = self.setting.groups
        parts = [replace(part, asked_share=part.asked_share / groups) for part in self.parts()]
        errors = [part.error(units_of(self.epsilon), n / len(parts), self.typical()) for part in parts]
        return math.sqrt(sum(errors) / len(errors))

    def assumes(self) -> str:
        return "every step, in a group, if all groups are of one size"

    def influence(self) -> Influence | str:
        influences = [self._influence(mechanism) for mechanism in self.mechanisms()]
        bounds = [influence for influence in influences if isinstance(influence, Influence)]
        return max(bounds, key=lambda influence: influence.weight) if len(bounds) == len(influences) else influences[0]

    def bounded(self, name: str) -> bool:
        return False  # numbers by group are ratios

    def influence_of(self) -> str:
        return "in every step; a number within a group that has the share s of all devices moves 1/s times as far"

    def moved_answer(self) -> tuple[str, str]:
        return "the share of all devices that is in any one group with any one value", "share"

    def answering(self) -> float:
        return 1 / len(self.parts())

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"{self.kind}, by {listed(list(self.by))}"

    def made_by(self) -> str:
        return " and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in self.mechanisms()))

    def covers(self) -> str:
        if len(self.parts()) == 1:
            return f"It covers {listed([*self.by, self.field])} together."
        return f"It covers {self.field} together with one of {listed(list(self.by))}; a device keeps to the same one."

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        parts = self.parts()
        if len(self.by) > 1:
            how = "all of them in one report" if len(parts) == 1 else "with one of them a device"
            errors = [f"{error:.2g}" for error in self.expected_errors()]
            way = f"asked {how}: a typical number then has a standard error of {errors[0]} with 10,000 devices"
            yield Finding("note", "by", f"{way}, and of {errors[1]} the other way")
        if any(isinstance(part.value, GridAxis) for part in parts):
            points = {part.value.points for part in parts if isinstance(part.value, GridAxis)}
            text = f"numbers are rounded at random to one of {max(points)} points, which does not change their mean"
            yield Finding("note", "field", text)

    def expected_errors(self) -> tuple[float, float]:
        """The standard error of a typical number with 10,000 devices, as it is asked and the other way."""
        parts, units = self.parts(), units_of(self.epsilon)
        first = parts[0]
        other = parts_of(
            tuple(axis for part in parts for axis in part.by),
            first.value,
            (*(labels for part in parts for labels in part.labels[:-1]), first.labels[-1]),
            self.mechanism,
            together=len(parts) > 1,
        )
        return math.sqrt(parts_error(parts, units) / 10_000), math.sqrt(parts_error(other, units) / 10_000)


@dataclass(frozen=True, kw_only=True)
class SharesByGroup(SharesQuestion, BreakdownQuestion):
    """How common each value of a field is in each group."""

    kind: ClassVar[str] = "histogram"

    def value_axes(self, domain: Domain) -> tuple[Axis, ...]:
        return (group_axis(domain, self.field, "field"),)

    def value_names(self, domain: Domain) -> tuple[str, ...]:
        return group_names(domain, "field")

    def knows_noise(self) -> bool:
        return False  # the shares of a group are ratios

    def row_size(self, name: str, size: int) -> int:
        groups = map(group_shares_name, self.by)
        return size if name in groups else len(self.value_names(self.setting.domains[self.field]))

    def default_title(self) -> str:
        return f"Of {self.field}: how common is each value, by {listed(list(self.by))}?"


@dataclass(frozen=True, kw_only=True)
class MeansByGroup(BreakdownQuestion):
    """What the mean of a numeric field is in each group, among those who have a number."""

    kind: ClassVar[str] = "mean"

    def value_axes(self, domain: Domain) -> tuple[Axis, ...]:
        if not isinstance(domain, Numeric):
            raise InvalidValue("field", self.field, "a numeric field: only numbers have a mean")
        return tuple(GridAxis(self.field, domain.low, domain.high, points) for points in _POINTS)

    def value_names(self, domain: Domain) -> tuple[str, ...]:
        return (self.field,)

    def default_title(self) -> str:
        return f"Of {self.field}: what is its mean, by {listed(list(self.by))}?"
