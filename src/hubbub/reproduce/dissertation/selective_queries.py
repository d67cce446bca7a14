"""Queries of chapter 7 by their selectivity, and the relative errors of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from hubbub.core.random import Random
from hubbub.protocols.ranges.dimension import Floats
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.query import RangeQuery
from hubbub.protocols.ranges.table import RangeTable
from hubbub.reproduce.dissertation.range_people import MeasuredPeople, random_box

Name = TypeVar("Name")
KINDS: dict[str, tuple[int, ...]] = {"1+0": (0,), "1+1": (0, 2), "2+0": (0, 1), "2+2": (0, 1, 2, 3)}
"""Which of two numbers and two words a query asks for."""
JUDGED = 20_000
"""Selectivities are found out on so many people."""
TRIES = 4000
NEAR = 0.25
"""A selectivity is as wanted if it is this part of it off at most."""


def selective_queries(
    people: MeasuredPeople, kind: str, selectivity: float, number: int, rng: Random
) -> list[RangeQuery]:
    """Up to so many random queries of a kind that hold about the wanted part of the people.

    Volumes are drawn over all orders of magnitude, as people are not spread evenly; what none of the tries found is
    left out.
    """
    some = MeasuredPeople(people.records[:JUDGED], people.dimensions, people.measure[:JUDGED])
    found: list[RangeQuery] = []
    for _ in range(TRIES):
        if len(found) == number:
            break
        volume = float(np.exp(np.log(1e-3) * rng.below(1 << 20, 1)[0] / (1 << 20)))
        query = random_box(people.dimensions, KINDS[kind], volume, rng)
        if abs(float(some.within(query).mean()) / selectivity - 1) < NEAR:
            found.append(query)
    return found


def relative_errors(
    people: MeasuredPeople, epsilon: float, queries: Mapping[Name, Sequence[RangeQuery]], rng: Random
) -> dict[Name, Floats]:
    """The mean relative errors of SUM, COUNT and AVG by HIO, of each group of queries; nan where a group is empty.

    AVG is SUM / COUNT. Errors are relative to the true answer; the text prints the estimate, and says the true one.
    """
    hio = HIO(epsilon, people.dimensions)
    table = RangeTable(hio, hio.randomize(people.records, rng), {"measure": people.measure})
    errors: dict[Name, Floats] = {}
    for name, group in queries.items():
        rows = [np.abs(_answers(table, query) / _truth(people, query) - 1) for query in group]
        errors[name] = np.mean(rows, axis=0) if rows else np.full(3, np.nan)
    return errors


def _answers(table: RangeTable, query: RangeQuery) -> Floats:
    total = float(table.answer(query).value[0])
    count = float(table.answer(RangeQuery(query.box)).value[0])
    return np.array([total, count, total / count if count else 0.0])


def _truth(people: MeasuredPeople, query: RangeQuery) -> Floats:
    inside = people.within(query)
    total, count = float(people.measure[inside].sum()), float(max(inside.sum(), 1))
    return np.array([total, count, total / count])
