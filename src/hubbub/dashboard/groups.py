"""Numbers by group: a table of the groups for each value, and how two groups that one chooses differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hubbub.dashboard.answers import LEVEL, Value, others_of, values_of
from hubbub.dashboard.bars import BarTable, fold
from hubbub.dashboard.layout import path_to, table
from hubbub.dashboard.markup import Child, Html, Scale, el, join
from hubbub.questions import Shape
from hubbub.questions.collection import Collection
from hubbub.questions.group_numbers import breakdown_name, group_shares_name
from hubbub.service.base.api import EstimateBody, ReleaseBody
from hubbub.service.rounds.releases import told_ratios
from hubbub.statistics.ratios import Ratios

_MOST_TABLES = 3
"""The number of values with a table of their own; the tables of others are folded away."""

_MOST_COMPARED = 50
"""The number of values that are compared on the page; the API has all."""


class ChosenPair(NamedTuple):
    """Which two groups are compared: the field that makes them, and their places."""

    by: str
    first: int
    second: int

    @staticmethod
    def read(query: Mapping[str, str]) -> ChosenPair | None:
        """From an address; None where it names none."""
        places = [query.get(name, "") for name in ("of", "minus")]
        if not all(place.isascii() and place.isdigit() and len(place) < 7 for place in places):
            return None
        return ChosenPair(query.get("by", ""), *map(int, places))


def group_tables(collection: Collection, answer: ReleaseBody, shape: Shape, pair: ChosenPair | None = None) -> Html:
    """For each field that makes groups: its groups, how large they are, and the difference of two of them."""
    main = next(iter(shape.groups))
    return join(_of_field(collection, answer, shape, field, field == main, pair) for field in shape.groups)


def _of_field(
    collection: Collection, answer: ReleaseBody, shape: Shape, field: str, main: bool, pair: ChosenPair | None
) -> Html | None:
    others = others_of(answer)
    estimate = answer if main else others.get(breakdown_name(field, main=False))
    values = [] if estimate is None else values_of(estimate)
    if estimate is None or len(values) != len(shape.groups[field]) * len(shape.values):
        return None
    groups, name = shape.groups[field], f"q-{answer.question}-by-{field}"
    cut = (0.0, 1.0) if shape.low is None or shape.high is None else (shape.low, shape.high)
    numbers = [value.possible(*cut) for value in values]
    link = _link(collection, answer) if main else None
    tables = [
        _table(answer.kind, numbers, groups, shape, place, f"{name}-{place}", link)
        for place in range(len(shape.values))
    ]
    sizes = values_of(others[group_shares_name(field)]) if group_shares_name(field) in others else []
    parts: list[Child] = [
        el("h3", "By ", el("bdi", field)) if len(shape.groups) > 1 else None,
        tables[:_MOST_TABLES],
        fold(f"{name}-more", f"{len(tables) - _MOST_TABLES} more values", tables[_MOST_TABLES:])
        if len(tables) > _MOST_TABLES
        else None,
        _difference(collection, answer.question, estimate, shape, field, pair),
        fold(f"{name}-sizes", "How large the groups are", _sizes(sizes)) if len(sizes) else None,
    ]
    return el("section", parts, class_="groups")


def _link(collection: Collection, answer: ReleaseBody) -> Callable[[Value], str]:
    return lambda value: path_to("results", collection.name, answer.question, value=value.code)


def _table(
    kind: str,
    values: Sequence[Value],
    groups: Sequence[str],
    shape: Shape,
    place: int,
    name: str,
    link: Callable[[Value], str] | None,
) -> Html:
    """One value in every group."""
    own = [values[group * len(shape.values) + place]._replace(label=label) for group, label in enumerate(groups)]
    title, bars = shape.values[place], BarTable(own, kind, name, link)
    return join(
        el("h4", el("bdi", title)) if len(shape.values) > 1 else None,
        bars.table(own, f"{title}, by group"),
    )


def _sizes(values: Sequence[Value]) -> Html:
    shares = [value.possible(0.0, 1.0) for value in values]
    scale = Scale.of("share", reaches=[value.reach or 0.0 for value in shares])
    rows = [(value.label, scale.text(value.value), scale.text(value.low), scale.text(value.high)) for value in shares]
    return table("Shares of the groups", ["Group", "#share", "#from", "#to"], rows)


def _difference(
    collection: Collection,
    question: str,
    estimate: EstimateBody,
    shape: Shape,
    field: str,
    pair: ChosenPair | None,
) -> Html | None:
    ratios, groups = told_ratios(estimate), shape.groups[field]
    if ratios is None or len(groups) < 2:
        return None
    first, second = 1, 0
    if pair is not None and pair.by == field and max(pair.first, pair.second) < len(groups):
        first, second = pair.first, pair.second
    form = el(
        "form",
        el("input", type="hidden", name="by", value=field),
        el("input", type="hidden", name="version", value=collection.version),
        el("label", "Group ", _choice("of", groups, first)),
        el("label", " minus ", _choice("minus", groups, second)),
        el("button", "Compare"),
        method="get",
        action=path_to("results", collection.name, question),
        class_="choose",
    )
    result: Child = "Choose two different groups."
    if first != second:
        result = _differences(ratios, shape, groups, first, second)
    return el("section", el("h4", "How two groups differ"), form, el("div", result), class_="difference")


def _differences(ratios: Ratios, shape: Shape, groups: Sequence[str], first: int, second: int) -> Html:
    size = len(shape.values)
    shown = range(min(size, _MOST_COMPARED))
    differences = [ratios.difference(first * size + place, second * size + place, LEVEL) for place in shown]
    unit = "share" if shape.unit == "share" else "quantity"
    scale = Scale.of(unit, reaches=[(gap.high - gap.low) / 2 for gap in differences])
    rows = [
        (label, scale.text(None if math.isnan(gap.value) else gap.value), scale.text(gap.low), scale.text(gap.high))
        for label, gap in zip(shape.values, differences, strict=False)
    ]
    title = f"{groups[first]} minus {groups[second]}"
    return table(title, ["Value", "#difference", "#from", "#to"], rows)


def _choice(name: str, groups: Sequence[str], chosen: int) -> Html:
    options = [
        el("option", label, value=place, selected="selected" if place == chosen else None)
        for place, label in enumerate(groups)
    ]
    return el("select", options, name=name)
