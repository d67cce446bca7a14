"""Figures 7.3 to 7.7: sums over ranges of one, two and three dimensions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Floats, Ints
from hubbub.data import Table, adult, census
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.planning.ranges import expected_stderr
from hubbub.protocols.ranges.cell_sums import cells_of
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism
from hubbub.protocols.ranges.split import SC, SplitTable
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import Claim, ratio
from hubbub_papers.study import Panel, Study

MANY = 1_000_000
QUERIES = 30
CONSISTENT = "HIO, consistent"
NUMBERS = ("age", "instance_weight", "weeks_worked", "dividends")
WORDS = ("marital_status", "race", "sex", "education")
OTHER_DATA = "other data: the KDD census, drawn with replacement from 299,285 people, for IPUMS"


@dataclass(frozen=True, eq=False)
class MeasuredPeople:
    """Records, their dimensions, and a public measure of each person."""

    records: Ints
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


def buckets(values: NDArray[np.float64], size: int) -> Ints:
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


def drawn_answers(
    people: MeasuredPeople, method: str, epsilon: float, queries: Sequence[RangeQuery], rng: Random
) -> Floats:
    """The answers of HI or MG, each drawn from its distribution: by reports it takes hashes of all cells of a box.

    How many cells of a level a report supports is binomial, for the people of one measure inside and outside of them
    together. Answers of one run share no reports here.
    """
    mechanism, draws = _mechanism(method, epsilon, people), generator(rng)
    rows = np.column_stack([people.records, people.measure.astype(np.int64)])
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    records, measure = distinct[:, :-1], distinct[:, -1]
    weights, most = np.arange(measure.max() + 1), int(measure.max()) + 1
    everyone = np.bincount(measure, counts, most).astype(np.int64)
    totals = np.zeros(len(queries))
    for place, query in enumerate(queries):
        terms = mechanism.terms(query.box)
        totals[place] = terms.known * people.measure.sum()
        for term in terms.terms:
            chosen = np.zeros(cells_of(mechanism.dimensions, term.level), dtype=bool)
            chosen[term.cells] = True
            within = chosen[mechanism.cell_of(term.level, records)]
            inside = np.bincount(measure[within], counts[within], most).astype(np.int64)
            oracle, number = mechanism.oracle(term.level), term.cells.size
            p, q = (float(rate) for rate in oracle.rates)
            if isinstance(oracle, GRR):  # a report supports one cell
                supports = draws.binomial(inside, min(1.0, p + (number - 1) * q))
                supports += draws.binomial(everyone - inside, min(1.0, number * q))
            else:
                supports = draws.binomial(inside, p) + draws.binomial(everyone * number - inside, q)
            totals[place] += weights @ ((supports - everyone * number * q) / (p - q))
    return totals


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


DOMAIN = 1024
METHODS = ("MG", "HI", "HIO", CONSISTENT)
VOLUMES_7_3 = (0.01, 0.05, 0.1, 0.25, 0.5, 0.8)
SIZES_7_3 = (100_000, 200_000, 500_000, 2_000_000, 3_000_000)
EPSILONS = (0.5, 1.0, 2.0, 5.0)
Key = tuple[str, str, float]  # people, method, and the value on the axis
RangeRuns = RunScores[Key]


@reproduction(
    "wang-2021-analyzing-figure-7.3",
    title="Sums over ranges of one dimension: error by volume and by the number of people, eps = 2",
    repeats=5,
    needs=("adult", "census"),
)
def figure_7_3(context: Context) -> Reproduced:
    """MNAE of 30 random ranges of a domain of 1024; consistency is ours."""
    crowds = {"Adult": adult_people(context, DOMAIN), "census": census_people(context, [DOMAIN])}
    steps: list[tuple[Key, Callable[[], MeasuredPeople], float]] = [
        ((name, method, volume), lambda who=who: who, volume)  # type: ignore[misc]
        for name, who in crowds.items()
        for method in METHODS
        for volume in VOLUMES_7_3
    ]
    steps += [
        (("census, n", method, float(n)), lambda n=n: census_people(context, [DOMAIN], n=n), 0.25)  # type: ignore[misc]
        for n in SIZES_7_3
        for method in METHODS
    ]
    runs, cells = _measured_7_3(context, "figure 7.3", [(key, who, volume, 2.0) for key, who, volume in steps])
    titles = {"Adult": "Adult", "census": "census, 1M", "census, n": "census, volume 0.25"}
    x = {"Adult": VOLUMES_7_3, "census": VOLUMES_7_3, "census, n": SIZES_7_3}

    def errors(name: str, method: str, at: float) -> Floats:
        return runs[name, method, float(at)]

    axes = {"Adult": "volume", "census": "volume", "census, n": "n"}
    panels = [Panel(titles[name], x[name], errors, axes[name], "MNAE", "xy", (name,)) for name in titles]
    return Study(runs, cells, METHODS, panels, _claims_7_3).reproduced()


@reproduction(
    "wang-2021-analyzing-figure-7.4",
    title="Sums over ranges of one dimension: error by epsilon",
    repeats=5,
    needs=("census",),
)
def figure_7_4(context: Context) -> Reproduced:
    """MNAE of 30 random ranges of volume 0.25 of a domain of 1024."""
    people = census_people(context, [DOMAIN])
    steps = [(("census", method, eps), lambda: people, 0.25, eps) for eps in EPSILONS for method in METHODS]
    runs, cells = _measured_7_3(context, "figure 7.4", steps)
    panel = Panel("census, 1M", EPSILONS, lambda method, eps: runs["census", method, eps], y="MNAE")
    return Study(runs, cells, METHODS, [panel], _claims_of_epsilon, legend=0).reproduced()


def _measured_7_3(
    context: Context, figure: str, steps: Sequence[tuple[Key, Callable[[], MeasuredPeople], float, float]]
) -> tuple[dict[Key, NDArray[np.float64]], list[Cell]]:
    """The errors of each run, and cells with the mean error and, in the note, the error that the variance predicts."""
    runs, cells = {}, []
    for key, who, volume, epsilon in context.track(steps, lambda step: " ".join(map(str, step[0]))):
        people = who()
        errors = []
        for run in range(context.repeats):
            rng = context.rng.child(figure, key[0], str(key[2]), run)
            queries = [random_box(people.dimensions, [0], volume, rng) for _ in range(QUERIES)]
            estimates = answers(people, key[1], epsilon, queries, rng.child(key[1]))
            errors.append(normalised_errors(people, estimates, queries))
        runs[key] = np.array(errors)
        theory = predicted_error(people, key[1], epsilon, queries)
        note = f"exact variance: {theory:.3g}; runs averaged: {context.repeats}, {QUERIES} queries each"
        note += "" if key[0] == "Adult" else f"; {OTHER_DATA}"
        name = {"figure 7.4": "eps"}.get(figure, "n" if key[0] == "census, n" else "volume")
        cells.append(Cell(f"{key[0]}, {name} = {key[2]:g}", f"{key[1]}, MNAE", None, float(np.mean(errors)), note))
    return runs, cells


def _claims_7_3(runs: RangeRuns) -> list[Claim]:
    def times(name: str, first: str, second: str, x: float) -> float:
        return ratio(float(runs[name, first, x].mean()), float(runs[name, second, x].mean()))

    return [
        Claim("volume 0.8, census: MNAE, MG to HIO", times("census", "MG", "HIO", 0.8), "about 3", above=2, below=6),
        Claim("volume 0.01, census: MNAE, MG to HIO", times("census", "MG", "HIO", 0.01), "MG is better", below=1),
        Claim("volume 0.25, 3M: MNAE, HI to HIO", times("census, n", "HI", "HIO", 3e6), "HIO always best", above=1),
        Claim("volume 0.25, 3M: MNAE, MG to HIO", times("census, n", "MG", "HIO", 3e6), "HIO always best", above=1),
        Claim("volume 0.5, census: MNAE, consistent to HIO", times("census", CONSISTENT, "HIO", 0.5), below=0.8),
    ]


def _claims_of_epsilon(runs: RangeRuns) -> list[Claim]:
    claims = []
    for eps in EPSILONS:
        hio = float(runs["census", "HIO", eps].mean())
        for other in ("MG", "HI"):
            worse = ratio(float(runs["census", other, eps].mean()), hio)
            claims.append(Claim(f"eps = {eps:g}: MNAE, {other} to HIO", worse, "HIO performing the best", above=1))
    return claims


PLANES = ((256, 256), (1024, 64))
SPACE = (256, 256, 64)
SIZES_7_5 = (100_000, 500_000, 1_000_000)
VOLUMES_7_5 = (0.01, 0.1, 0.25, 0.5)
Point = tuple[str, str, float, float, float]
"""The dimensions, the method, epsilon, the number of people, and the volume."""
BoxRuns = RunScores[Point]


@reproduction(
    "wang-2021-analyzing-figure-7.5",
    title="Sums over boxes of two dimensions: error by epsilon and by the number of people",
    repeats=3,
    needs=("census",),
)
def figure_7_5(context: Context) -> Reproduced:
    """MNAE of 30 random boxes of volume 0.25."""
    points = [(eps, float(MANY), 0.25) for eps in EPSILONS] + [(2.0, float(n), 0.25) for n in SIZES_7_5[:-1]]
    runs, cells = _measured_7_5(context, "figure 7.5", PLANES, ("MG", "HI", "HIO"), points)

    def by_size(name: str, method: str, n: float) -> Floats:
        return runs[name, method, 2.0, float(n), 0.25]

    panels = []
    for name in map(_name, PLANES):
        panels += [
            Panel(name, EPSILONS, lambda who, m, e: runs[who, m, e, float(MANY), 0.25], y="MNAE", given=(name,)),
            Panel(f"{name}, $\\epsilon$ = 2", SIZES_7_5, by_size, "n", "MNAE", "xy", (name,)),
        ]
    return Study(runs, cells, ("MG", "HI", "HIO"), panels, lambda some: _claims_7_5(some, 1.0)).reproduced()


@reproduction(
    "wang-2021-analyzing-figure-7.6",
    title="Sums over boxes of two dimensions: error by volume, eps = 2",
    repeats=3,
    needs=("census",),
)
def figure_7_6(context: Context) -> Reproduced:
    """MNAE of 30 random boxes."""
    return _by_volume(context, "figure 7.6", PLANES, ("MG", "HI", "HIO"), 1.0)


@reproduction(
    "wang-2021-analyzing-figure-7.7",
    title="Sums over boxes of three dimensions: error by volume, eps = 2",
    repeats=3,
    needs=("census",),
)
def figure_7_7(context: Context) -> Reproduced:
    """MNAE of 30 random boxes."""
    return _by_volume(context, "figure 7.7", (SPACE,), ("MG", "HIO"), 3.0)


def _by_volume(
    context: Context, figure: str, all_sizes: Sequence[tuple[int, ...]], methods: Sequence[str], least: float
) -> Reproduced:
    points = [(2.0, float(MANY), volume) for volume in VOLUMES_7_5]
    runs, cells = _measured_7_5(context, figure, all_sizes, methods, points)
    panels = [
        Panel(name, VOLUMES_7_5, lambda who, m, v: runs[who, m, 2.0, float(MANY), v], "volume", "MNAE", "xy", (name,))
        for name in map(_name, all_sizes)
    ]
    return Study(runs, cells, methods, panels, lambda some: _claims_7_5(some, least)).reproduced()


def _name(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _measured_7_5(
    context: Context,
    figure: str,
    all_sizes: Sequence[tuple[int, ...]],
    methods: Sequence[str],
    points: Sequence[tuple[float, float, float]],
) -> tuple[dict[Point, NDArray[np.float64]], list[Cell]]:
    runs: dict[Point, NDArray[np.float64]] = {}
    cells = []
    steps = [(sizes, point) for sizes in all_sizes for point in points]
    for sizes, (epsilon, n, volume) in context.track(steps, lambda step: f"{_name(step[0])} {step[1]}"):
        people = census_people(context, sizes, n=int(n))
        errors: dict[str, list[float]] = {method: [] for method in methods}
        for run in range(context.repeats):
            rng = context.rng.child(figure, _name(sizes), str((epsilon, n, volume)), run)
            queries = [random_box(people.dimensions, range(len(sizes)), volume, rng) for _ in range(QUERIES)]
            for method in methods:
                answer = answers if method == "HIO" else drawn_answers
                estimates = answer(people, method, epsilon, queries, rng.child(method))
                errors[method].append(normalised_errors(people, estimates, queries))
        for method in methods:
            runs[_name(sizes), method, epsilon, n, volume] = np.array(errors[method])
            theory = predicted_error(people, method, epsilon, queries)
            how = f"runs averaged: {context.repeats}; exact variance: {theory:.3g}"
            how += "" if method == "HIO" else "; answers drawn from their distribution"
            row = f"{_name(sizes)}, eps = {epsilon:g}, n = {n:g}, volume = {volume:g}"
            note = f"{how}; {QUERIES} queries a run; {OTHER_DATA}"
            cells.append(Cell(row, f"{method}, MNAE", None, float(np.mean(errors[method])), note))
    return runs, cells


def _claims_7_5(runs: BoxRuns, least: float) -> list[Claim]:
    """MG errs more than HIO above a volume of 0.01, and in three dimensions at least 3 times as much from 0.5 on.

    At 0.01 and below it errs less; of three dimensions the text does not say so.
    """
    claims = []
    for (sizes, method, epsilon, n, volume), errors in runs.items():
        small = volume <= 0.01
        if method != "MG" or (least > 1 and volume < 0.5):
            continue
        worse = ratio(float(errors.mean()), float(runs[sizes, "HIO", epsilon, n, volume].mean()))
        statement = f"{sizes}, eps = {epsilon:g}, n = {n:g}, volume {volume:g}: MNAE, MG to HIO"
        words = "MG is better" if small else "much worse" if least == 1 else "at least 3"
        claims.append(Claim(statement, worse, words, below=1) if small else Claim(statement, worse, words, above=least))
    return claims
