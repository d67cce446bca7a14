"""Tables 7.2 and 7.3, Figures 7.8 to 7.10: sums, counts and averages of queries, by their selectivity."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Floats
from hubbub.data.trips import flights3m
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random
from hubbub_papers.dissertation.chapter_7_sums import (
    MANY,
    OTHER_DATA,
    QUERIES,
    MeasuredPeople,
    answers,
    buckets,
    census_people,
    random_box,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import Claim, means, ratio
from hubbub_papers.study import Panel, Study, plain_look

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


EPSILONS_7_2 = (0.5, 1.0, 2.0, 5.0)
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


@reproduction("wang-2021-analyzing-table-7.2", title="One run of HIO: averages over three boxes", needs=("census",))
def table_7_2(context: Context) -> Reproduced:
    """Neither the paper's queries nor its data are available: only the relative errors can be compared."""
    people = census_people(context, [625] * 2, words=2, n=3_000_000)
    who = f"{len(people.records):,} people of the KDD census, drawn with replacement"
    note = f"other data and other queries: weeks worked, plus one, of {who}"
    relative_errors = []
    cells = []
    truth = {name: float(people.measure[people.within(query)].mean()) for name, query in CENSUS_QUERIES.items()}
    for place, epsilon in enumerate(context.track(EPSILONS_7_2, "eps = {:g}".format)):
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


@reproduction("wang-2021-analyzing-table-7.3", title="One run of HIO in the case study: averages", needs=("flights3m",))
def table_7_3(context: Context) -> Reproduced:
    """3 million flights instead of 150 million orders, which makes the relative errors larger."""
    people = flight_people(context)
    queries = flight_queries(people)
    note = f"other data: the late part of {len(people.records):,} flights, for 150 million orders"
    inside = {name: people.within(query) for name, query in queries.items()}
    truth = {name: float(people.measure[rows].mean()) for name, rows in inside.items()}
    cells = []
    for place, epsilon in enumerate(context.track(EPSILONS_7_2, "eps = {:g}".format)):
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


EPSILONS_7_8 = (2.0, 5.0)
SELECTIVITIES = (0.02, 0.05, 0.1, 0.2)
DOMAINS = (25, 125, 625)
DEFAULT = 625
KINDS_OF_ANSWER = ("SUM", "COUNT", "AVG")
SUM, COUNT, AVG = range(3)
SelectivityKey = tuple[str, float, float]  # kind of query; selectivity or domain size; epsilon
Runs = RunScores[SelectivityKey]


@reproduction(
    "wang-2021-analyzing-figure-7.8",
    title="Relative error of HIO on 2 + 2 dimensions, by selectivity",
    repeats=3,
    needs=("census",),
)
def figure_7_8(context: Context) -> Reproduced:
    """MRE of up to 30 random queries a kind and selectivity: SUM, COUNT and AVG."""
    people = census_people(context, [DEFAULT] * 2, words=2, n=MANY)

    def run_once(epsilon: float, run: int) -> dict[SelectivityKey, NDArray[np.float64]]:
        rng = context.rng.child("figure 7.8", str(epsilon), run)
        groups = {
            (kind, share): selective_queries(people, kind, share, QUERIES, rng.child(kind, str(share)))
            for kind in KINDS
            for share in SELECTIVITIES
        }
        errors = relative_errors(people, epsilon, groups, rng.child("reports"))
        return {(kind, share, epsilon): row for (kind, share), row in errors.items()}

    runs = context.measure(EPSILONS_7_8, run_once, "eps = {:g}".format)
    note = f"runs averaged: {context.repeats}, up to {QUERIES} queries each; {OTHER_DATA}"
    cells = [
        Cell(f"{kind}, selectivity {share:g}, eps = {epsilon:g}", f"{name}, MRE", None, float(mean), note)
        for (kind, share, epsilon), scores in runs.items()
        for name, mean in zip(KINDS_OF_ANSWER, scores.mean(axis=0), strict=True)
    ]

    def at(column: int, epsilon: float, kind: str, share: float) -> float:
        return float(runs[kind, share, epsilon][:, column].mean())

    panels = [
        Panel(f"{name}, $\\epsilon$ = {e:g}", SELECTIVITIES, at, "selectivity", "MRE", "xy", (column, e))
        for name, column in (("SUM", SUM), ("AVG", AVG))
        for e in EPSILONS_7_8
    ]
    return Study(runs, cells, list(KINDS), panels, _claims_7_8, rows=2, legend=0, look_of=plain_look).reproduced()


def _claims_7_8(runs: Runs) -> list[Claim]:
    def mean(kind: str, share: float, column: int) -> float:
        return float(np.mean([runs[kind, share, epsilon][:, column].mean() for epsilon in EPSILONS_7_8]))

    falls = "decreases with increasing selectivity"
    claims = []
    for kind in KINDS:
        for column in (SUM, AVG):
            less = ratio(mean(kind, SELECTIVITIES[-1], column), mean(kind, SELECTIVITIES[0], column))
            claims.append(
                Claim(f"{kind}, {KINDS_OF_ANSWER[column]}: MRE at selectivity 0.2 to 0.02", less, falls, below=1)
            )
    alike = ratio(mean("2+0", 0.1, COUNT), mean("2+0", 0.1, SUM))
    claims.append(Claim("2+0, selectivity 0.1: MRE, COUNT to SUM", alike, "very similar trends", above=0.5, below=2))
    return claims


@reproduction(
    "wang-2021-analyzing-figure-7.9",
    title="Relative error of SUM by HIO on 2 + 2 dimensions, by domain size and kind of query, selectivity 0.1",
    repeats=3,
    needs=("census",),
)
def figure_7_9(context: Context) -> Reproduced:
    """MRE of up to 30 random queries; SC next to HIO where numbers have 625 values."""
    errors_of_sc: dict[str, list[float]] = {kind: [] for kind in KINDS}

    def run_once(setting: tuple[int, float], run: int) -> dict[SelectivityKey, NDArray[np.float64]]:
        domain, epsilon = setting
        people = census_people(context, [domain] * 2, words=2, n=MANY)
        rng = context.rng.child("figure 7.9", domain, str(epsilon), run)
        groups = {kind: selective_queries(people, kind, 0.1, QUERIES, rng.child(kind)) for kind in KINDS}
        errors = relative_errors(people, epsilon, groups, rng.child("reports"))
        if domain == DEFAULT and epsilon == EPSILONS_7_8[0]:
            few = {kind: group[:3] for kind, group in groups.items()}
            queries = [query for group in few.values() for query in group]
            estimates = answers(people, "SC", epsilon, queries, rng.child("SC"))
            truth = np.array([people.measure[people.within(query)].sum() for query in queries])
            kinds = [kind for kind, group in few.items() for _ in group]
            for kind, error in zip(kinds, np.abs(estimates / truth - 1), strict=True):
                errors_of_sc[kind].append(float(error))
        return {(kind, float(domain), epsilon): row for kind, row in errors.items()}

    runs = context.measure(
        [(domain, epsilon) for domain in DOMAINS for epsilon in EPSILONS_7_8],
        run_once,
        "m, eps = {0[0]}, {0[1]}".format,
    )
    note = f"runs averaged: {context.repeats}, up to {QUERIES} queries each; {OTHER_DATA}"
    cells = [
        Cell(f"{kind}, m = {domain:g}, eps = {epsilon:g}", "HIO, MRE", None, float(scores[:, SUM].mean()), note)
        for (kind, domain, epsilon), scores in runs.items()
    ]
    cells += [
        Cell(
            f"{kind}, m = {DEFAULT}, eps = {EPSILONS_7_8[0]:g}",
            "SC, MRE",
            None,
            float(np.mean(errors)),
            f"3 queries a run; {OTHER_DATA}",
        )
        for kind, errors in errors_of_sc.items()
        if errors
    ]

    def at(epsilon: float, kind: str, domain: int) -> float:
        return float(runs[kind, float(domain), epsilon][:, SUM].mean())

    panels = [Panel(f"$\\epsilon$ = {e:g}", DOMAINS, at, "m", "MRE", "xy", (e,)) for e in EPSILONS_7_8]
    return Study(runs, cells, list(KINDS), panels, _claims_of_domains, legend=0, look_of=plain_look).reproduced()


def _claims_of_domains(runs: Runs) -> list[Claim]:
    def mean(kind: str, domain: float) -> float:
        return float(np.mean([runs[kind, domain, epsilon][:, SUM].mean() for epsilon in EPSILONS_7_8]))

    claims = []
    for kind in KINDS:
        grows = ratio(mean(kind, float(DOMAINS[-1])), mean(kind, float(DOMAINS[0])))
        claims.append(Claim(f"{kind}: MRE at m = 625 to m = 25", grows, "larger when the domains are larger", above=1))
    for kind in ("1+0", "1+1"):
        for more in ("2+0", "2+2"):
            better = ratio(mean(more, float(DEFAULT)), mean(kind, float(DEFAULT)))
            claims.append(Claim(f"m = 625: MRE, {more} to {kind}", better, "more accurately", above=1))
    return claims


KINDS_7_10 = {"1+0": (0,), "1+1": (0, 5), "2+0": (0, 1), "2+1": (0, 1, 5)}
METHODS = ("HIO", "SC")
QUERIES_7_10 = 10
DimensionKey = tuple[str, str]  # kind of query, method


@reproduction(
    "wang-2021-analyzing-figure-7.10",
    title="Sums where eight dimensions are private: median relative error of HIO and SC by query, eps = 5",
    repeats=3,
    needs=("census",),
)
def figure_7_10(context: Context) -> Reproduced:
    """The median relative error of ten random queries of a third of each number that they ask for."""
    people = census_people(context, [625] * 4, words=4)

    def run_once(setting: DimensionKey, run: int) -> dict[DimensionKey, float]:
        kind, method = setting
        rng = context.rng.child("figure 7.10", kind, run)
        numbers = sum(column < 4 for column in KINDS_7_10[kind])
        queries = [random_box(people.dimensions, KINDS_7_10[kind], 3.0**-numbers, rng) for _ in range(QUERIES_7_10)]
        truth = np.array([max(people.measure[people.within(query)].sum(), 1.0) for query in queries])
        estimates = answers(people, method, 5.0, queries, rng.child(method))
        return {setting: float(np.median(np.abs(estimates - truth) / truth))}

    runs = context.measure([(kind, method) for kind in KINDS_7_10 for method in METHODS], run_once, " ".join)
    error = means(runs)
    note = f"median of {QUERIES_7_10} queries, not their mean; runs averaged: {context.repeats}; {OTHER_DATA}"
    cells = [Cell(kind, f"{method}, median relative error", None, mean, note) for (kind, method), mean in error.items()]
    x, y = "dimensions asked for (numbers + words)", "median relative error"
    panel = Panel("census, $\\epsilon$ = 5", list(KINDS_7_10), lambda method, kind: error[kind, method], x, y)
    return Study(runs, cells, METHODS, [panel], _claims_7_10, legend=0).reproduced()


def _claims_7_10(runs: RunScores[DimensionKey]) -> list[Claim]:
    error = means(runs)
    gain = {kind: ratio(error[kind, "SC"], error[kind, "HIO"]) for kind in KINDS_7_10}
    words = "SC performs better"
    return [
        *(
            Claim(f"{kind}: median error, SC to HIO", gain[kind], words, below=1, note=OTHER_DATA)
            for kind in ("1+0", "1+1", "2+0")
        ),
        Claim("2+1: median error, SC to HIO", gain["2+1"], "except 2+1", above=1, note=OTHER_DATA),
    ]
