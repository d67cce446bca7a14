"""Queries of chapter 7 by their selectivity, and the relative errors of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from hubbub.protocols.ranges.dimension import Floats, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random
from hubbub_papers.dissertation.range_people import MeasuredPeople, random_box

Name = TypeVar("Name")
KINDS: dict[str, tuple[int, ...]] = {"1+0": (0,), "1+1": (0, 2), "2+0": (0, 1), "2+2": (0, 1, 2, 3)}
"""The columns of a query: of the two numbers, then of the two words."""
JUDGED = 20_000
"""The number of people on whom the selectivity of a query is measured."""
TRIES = 4000
NEAR = 0.25
"""The largest relative difference from the wanted selectivity."""


def selective_queries(
    people: MeasuredPeople, kind: str, selectivity: float, number: int, rng: Random
) -> list[RangeQuery]:
    """Up to `number` random queries of a kind that about the wanted part of the people satisfy.

    Volumes are drawn from all orders of magnitude, because people are not spread evenly. There are fewer queries if
    the tries do not find enough.
    """
    sample = MeasuredPeople(people.records[:JUDGED], people.dimensions, people.measure[:JUDGED])
    queries: list[RangeQuery] = []
    for _ in range(TRIES):
        if len(queries) == number:
            break
        volume = float(np.exp(np.log(1e-3) * rng.below(1 << 20, 1)[0] / (1 << 20)))
        query = random_box(people.dimensions, KINDS[kind], volume, rng)
        if abs(float(sample.within(query).mean()) / selectivity - 1) < NEAR:
            queries.append(query)
    return queries


def relative_errors(
    people: MeasuredPeople, epsilon: float, queries: Mapping[Name, Sequence[RangeQuery]], rng: Random
) -> dict[Name, Floats]:
    """The mean relative errors of SUM, COUNT and AVG by HIO, of each group of queries; nan where a group is empty.

    AVG is SUM / COUNT. Errors are relative to the true answer, as the text says; its formula has the estimate.
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
