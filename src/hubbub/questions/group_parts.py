"""How devices are asked for numbers by group: which fields one report covers, and on which grid numbers are rounded."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hubbub.collection.joint import Axis, CellAxis, CodeAxis
from hubbub.core.domain import NONE, Domain, Numeric
from hubbub.core.errors import InvalidValue
from hubbub.questions.group_numbers import GroupNumbers


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
    hash: str,
    units: int,
) -> tuple[GroupNumbers, ...]:
    """What devices are asked: the way with the smallest error, in one part or several, and on the best grid.

    Parameters
    ----------
    groups, values
        The grouping fields, and the ways to read the field, such as grids for a number.
    labels
        For each grouping field, the names of its groups; then the names of the values.
    oracle, hash
        A named oracle, or None for the best; and the hash function of those that need one.
    units
        The epsilon of a report, in units.
    """
    ways = [
        parts_of(groups, value, labels, oracle, hash, together=together)
        for value in values
        for together in ((True, False) if len(groups) > 1 else (True,))
    ]
    return min(ways, key=lambda parts: float(f"{parts_error(parts, units):.9g}"))


def parts_of(
    groups: tuple[Axis, ...],
    value: Axis,
    labels: tuple[tuple[str, ...], ...],
    oracle: str | None,
    hash: str,
    *,
    together: bool,
) -> tuple[GroupNumbers, ...]:
    """What devices are asked if one report covers all grouping fields, or, unless `together`, one of them."""
    options: dict[str, Any] = {"main": groups[0].field, "oracle": oracle, "hash": hash}
    if together:
        return (GroupNumbers(groups, value, labels, **options),)
    return tuple(
        GroupNumbers((axis,), value, (names, labels[-1]), asked_share=1 / len(groups), **options)
        for axis, names in zip(groups, labels[:-1], strict=True)
    )


def parts_error(parts: tuple[GroupNumbers, ...], units: int) -> float:
    """The mean variance of a typical number, times the number of devices."""
    return sum(part.error_with(part.mechanism(units), 1 / len(parts)) for part in parts) / len(parts)
