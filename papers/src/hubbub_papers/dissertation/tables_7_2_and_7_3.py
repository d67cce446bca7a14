"""Tables 7.2 and 7.3: one run of HIO for averages over a few boxes, at several epsilons."""

from __future__ import annotations

from functools import cache

import numpy as np

from hubbub.data.trips import flights3m
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random
from hubbub_papers.claims import Claim
from hubbub_papers.dissertation.range_people import MeasuredPeople, buckets, census_people
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction

EPSILONS = (0.5, 1.0, 2.0, 5.0)
PRINTED_7_2 = {
    "Q1": (26.29, 24.36, 26.81, 26.07, 26.32),
    "Q2": (36.97, 32.36, 33.77, 32.79, 33.11),
    "Q3": (27.07, 34.69, 24.22, 26.68, 27.01),
}
"""The estimates at each epsilon, and the true answer."""
PRINTED_7_3 = {
    "Q4": ((0.185, 0.154, 0.178, 0.167, 0.168), (0.102, 0.081, 0.061, 0.005), 0.049),
    "Q5": ((0.157, 0.148, 0.160, 0.170, 0.171), (0.086, 0.138, 0.066, 0.008), 0.011),
}
"""The same, then the relative errors at each epsilon, and the selectivity."""
LATE = 15
"""A flight that is delayed by more minutes counts as late."""


@cache
def _flights() -> tuple[np.ndarray, tuple[Dimension, ...], np.ndarray]:
    table = flights3m()
    origins, origin = table.codes("origin")
    targets, target = table.codes("destination")
    distance = buckets(table["distance"].astype(np.float64), 625)
    dimensions = (Dimension.categorical(origins.size), Dimension.categorical(targets.size), Dimension.ordinal(625))
    return np.stack([origin, target, distance], axis=1), dimensions, (table["delay"] > LATE).astype(np.float64)


def flight_people(context: Context) -> MeasuredPeople:
    """Flights instead of orders: origin, destination and distance are private; whether a flight was late is public."""
    records, dimensions, late = _flights()
    rows = np.arange(0, len(records), max(1, len(records) // context.size(len(records), least=20_000)))
    return MeasuredPeople(records[rows], dimensions, late[rows])


def flight_queries(people: MeasuredPeople) -> dict[str, RangeQuery]:
    """Flights from the ten and from the two busiest airports, up to the distance that gives the printed selectivity."""
    busy = np.argsort(-np.bincount(people.records[:, 0]), kind="stable").tolist()
    queries = {}
    for name, number in (("Q4", 10), ("Q5", 2)):
        distances = people.records[np.isin(people.records[:, 0], busy[:number]), 2]
        selectivity = np.cumsum(np.bincount(distances, minlength=people.dimensions[2].size)) / len(people.records)
        far = int(np.argmin(np.abs(selectivity - PRINTED_7_3[name][2])))
        queries[name] = RangeQuery([set(busy[:number]), None, (0, far)], "measure")
    return queries


CENSUS_QUERIES = {
    "Q1": RangeQuery([(0, 400), None, None, None], "measure"),
    "Q2": RangeQuery([(200, 420), None, (2, 2), None], "measure"),
    "Q3": RangeQuery([(150, 300), (60, 260), (4, 4), (4, 4)], "measure"),
}
"""A range of ages; married people of some ages; unmarried white people of some ages and weights."""


def averages(people: MeasuredPeople, queries: dict[str, RangeQuery], epsilon: float, rng: Random) -> dict[str, float]:
    """One run: the sum divided by the count, of each query."""
    hio = HIO(epsilon, people.dimensions)
    table = RangeTable(hio, hio.randomize(people.records, rng), {"measure": people.measure})
    answers = {}
    for name, query in queries.items():
        total, count = (float(table.answer(each).value[0]) for each in (query, RangeQuery(query.box)))
        answers[name] = total / count if count else 0.0
    return answers


@reproduction("dissertation-table-7.2", title="One run of HIO: averages over three boxes", needs=("census",))
def table_7_2(context: Context) -> Reproduced:
    """Neither the paper's queries nor its data are available: only the relative errors can be compared."""
    people = census_people(context, [625] * 2, words=2, n=3_000_000)
    note = (
        "other data and other queries: weeks worked, plus one, of 3,000,000 people of the KDD census with replacement"
    )
    relative_errors = []
    cells = []
    truth = {name: float(people.measure[people.within(query)].mean()) for name, query in CENSUS_QUERIES.items()}
    for place, epsilon in enumerate(context.track(EPSILONS, "eps = {:g}".format)):
        estimates = averages(people, CENSUS_QUERIES, epsilon, context.rng.child("table 7.2", str(epsilon)))
        for name, estimate in estimates.items():
            error = abs(estimate / truth[name] - 1)
            relative_errors.append(error)
            remark = f"{100 * error:.1f}% off; {note}"
            cells.append(Cell(name, f"eps = {epsilon:g}", PRINTED_7_2[name][place], estimate, remark))
    for name, query in CENSUS_QUERIES.items():
        share = float(people.within(query).mean())
        cells.append(Cell(name, "true", PRINTED_7_2[name][-1], truth[name], f"selectivity {share:.3g}; {note}"))
    close = float(np.mean(np.array(relative_errors) < 0.05))
    cells.append(Claim("part of the estimates within 5%", close, "most of the time", above=0.5, note=note).cell())
    return cells, None


@reproduction("dissertation-table-7.3", title="One run of HIO in the case study: averages", needs=("flights3m",))
def table_7_3(context: Context) -> Reproduced:
    """3 million flights instead of 150 million orders, which makes the relative errors larger."""
    people = flight_people(context)
    queries = flight_queries(people)
    note = f"other data: the late part of {len(people.records):,} flights, for 150 million orders"
    inside = {name: people.within(query) for name, query in queries.items()}
    truth = {name: float(people.measure[rows].mean()) for name, rows in inside.items()}
    cells = []
    for place, epsilon in enumerate(context.track(EPSILONS, "eps = {:g}".format)):
        estimates = averages(people, queries, epsilon, context.rng.child("table 7.3", str(epsilon)))
        for name, estimate in estimates.items():
            values, errors, _ = PRINTED_7_3[name]
            error = abs(estimate / truth[name] - 1)
            cells.append(Cell(name, f"eps = {epsilon:g}", values[place], estimate, note))
            cells.append(Cell(f"{name}, rel. err.", f"eps = {epsilon:g}", errors[place], error, note))
    for name, rows in inside.items():
        values, _, share = PRINTED_7_3[name]
        cells.append(Cell(name, "true", values[-1], truth[name], note))
        cells.append(Cell(name, "selectivity", share, float(rows.mean()), note))
    return cells, None
