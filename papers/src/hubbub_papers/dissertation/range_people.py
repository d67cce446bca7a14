"""The people of chapter 7's figures (the census instead of IPUMS), their queries, and the errors of answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hubbub.data import Table, adult, census
from hubbub.planning.ranges import expected_stderr
from hubbub.protocols.ranges.dimension import Codes, Dimension, Floats, RangeQuery
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism
from hubbub.protocols.ranges.split import SC, SplitTable
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random
from hubbub_papers.harness import Context

MANY = 1_000_000
QUERIES = 30
CONSISTENT = "HIO, consistent"
NUMBERS = ("age", "instance_weight", "weeks_worked", "dividends")
WORDS = ("marital_status", "race", "sex", "education")
OTHER_DATA = "other data: the KDD census, drawn with replacement from 299,285 people, for IPUMS"


@dataclass(frozen=True, eq=False)
class MeasuredPeople:
    """Records, their dimensions, and a public measure of each person."""

    records: Codes
    dimensions: tuple[Dimension, ...]
    measure: Floats

    def within(self, query: RangeQuery) -> NDArray[np.bool_]:
        """Which people are in the box of a query."""
        inside = np.ones(len(self.records), dtype=bool)
        for column, (dimension, wanted) in enumerate(zip(self.dimensions, query.box, strict=True)):
            if wanted is not None:
                chosen = np.zeros(dimension.size, dtype=bool)
                for low, high in dimension.runs(wanted):
                    chosen[low : high + 1] = True
                inside &= chosen[self.records[:, column]]
        return inside


@cache
def _census() -> Table:
    return census(columns=[*NUMBERS, *WORDS])


@cache
def _adult() -> Table:
    return adult()


def buckets(values: NDArray[np.float64], size: int) -> Codes:
    """Numbers as the codes of `size` buckets of equal width."""
    low, high = float(values.min()), float(values.max())
    return np.minimum(((values - low) / (high - low) * size).astype(np.int64), size - 1)


def census_people(context: Context, sizes: Sequence[int], words: int = 0, n: int = MANY) -> MeasuredPeople:
    """n people of the census: bucketed numbers, a size each, and `words` words; the measure is weeks worked, plus 1."""
    table = _census()
    columns = [buckets(table[NUMBERS[place]].astype(np.float64), size) for place, size in enumerate(sizes)]
    dimensions = [Dimension.ordinal(size) for size in sizes]
    for name in WORDS[:words]:
        labels, codes = table.codes(name)
        columns.append(codes)
        dimensions.append(Dimension.categorical(labels.size))
    rows = context.rng.child("census", n, len(columns)).below(table.n, context.size(n, least=2000))
    measure = 1.0 + table["weeks_worked"][rows]
    return MeasuredPeople(np.stack(columns, axis=1)[rows], tuple(dimensions), measure)


def adult_people(context: Context, size: int) -> MeasuredPeople:
    """The people of Adult by their sampling weight, bucketed; the measure is hours a week."""
    table = _adult()
    rows = np.arange(context.size(table.n, least=2000))
    codes = buckets(table["fnlwgt"].astype(np.float64), size)[rows, None]
    return MeasuredPeople(codes, (Dimension.ordinal(size),), table["hours_per_week"][rows].astype(np.float64))


def random_box(dimensions: Sequence[Dimension], columns: Sequence[int], volume: float, rng: Random) -> RangeQuery:
    """A random query of some columns: ranges of numbers, of this volume together, and one value of each word."""
    box: list[tuple[int, int] | None] = [None] * len(dimensions)
    ordinal = [column for column in columns if dimensions[column].levels > 2]
    for column in columns:
        dimension = dimensions[column]
        wide = max(1, round(dimension.size * volume ** (1 / len(ordinal)))) if column in ordinal else 1
        low = int(rng.below(dimension.size - wide + 1, 1)[0])
        box[column] = (low, low + wide - 1)
    return RangeQuery(box, "measure")


def answers(people: MeasuredPeople, method: str, epsilon: float, queries: Sequence[RangeQuery], rng: Random) -> Floats:
    """The answers of a method, from new reports of all people."""
    measures = {"measure": people.measure}
    if method == "SC":
        sc = SC(epsilon, people.dimensions)
        split = SplitTable(sc, sc.randomize(people.records, rng), measures)
        return np.array([split.answer(query).value[0] for query in queries])
    mechanism = _mechanism(method, epsilon, people)
    table = RangeTable(mechanism, mechanism.randomize(people.records, rng), measures)
    return np.array([table.answer(query, consistent=method == CONSISTENT).value[0] for query in queries])


def _mechanism(method: str, epsilon: float, people: MeasuredPeople) -> IntervalMechanism:
    if method == "HI":
        return HI(epsilon, people.dimensions)
    return MG(epsilon, people.dimensions) if method == "MG" else HIO(epsilon, people.dimensions)


def normalised_errors(people: MeasuredPeople, estimates: Floats, queries: Sequence[RangeQuery]) -> float:
    """MNAE: the mean absolute error, divided by the sum of all measures."""
    truth = np.array([people.measure[people.within(query)].sum() for query in queries])
    return float(np.abs(estimates - truth).mean() / people.measure.sum())


def predicted_error(people: MeasuredPeople, method: str, epsilon: float, queries: Sequence[RangeQuery]) -> float:
    """The MNAE by the exact variance: the mean absolute value of a normal error is sqrt(2/pi) times its deviation."""
    mechanism = _mechanism(method, epsilon, people)
    n, square = len(people.records), float(np.mean(people.measure**2))
    consistent = method == CONSISTENT
    errors = [expected_stderr(mechanism, query, n, mean_square=square, consistent=consistent) for query in queries]
    return math.sqrt(2 / math.pi) * float(np.mean(errors)) / float(people.measure.sum())
