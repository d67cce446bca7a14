"""Figures 6.3 to 6.5: the squared errors of marginals by CALM and others; the data and sweeps of chapter 6."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.marginals import Attributes, true_table
from hubbub.consistency.normalise import project_simplex
from hubbub.core.reports import Floats, Ints
from hubbub.data.baskets import Baskets, retail
from hubbub.data.records import ADULT_COLUMNS, MAIN_COLUMNS, Table, adult
from hubbub.data.records import census as census_records
from hubbub.protocols.marginals.plan import THETA, covering_design, noise_error, plan_marginals, sampling_error
from hubbub.random.source import Random
from hubbub_papers.baselines.marginals import (
    Answers,
    MarginalMethod,
    MarginalTask,
    all_marginals,
    binary_calm,
    calm,
    calm_with_subsets,
    expectation_maximisation,
    fourier,
    full_contingency,
    no_noise,
    uniform,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish, legend_below
from hubbub_papers.result import Claim, joined, ratio
from hubbub_papers.study import Panel, Study

US_COLUMNS = (*MAIN_COLUMNS, "enrolled")
"""As many columns as the paper has of the US data: 16."""


@dataclass(frozen=True, eq=False)
class KnownRecords:
    """People whose records are known.

    A record has a code for each attribute; `sizes` has the number of values of each. The note says what differs from
    the paper's data.
    """

    name: str
    records: Ints
    sizes: tuple[int, ...]
    note: str

    def resampled(self, n: int, rng: Random) -> KnownRecords:
        """Draw n of these people: without replacement if there are enough of them."""
        everyone = len(self.records)
        rows = rng.permutation(everyone)[:n] if n <= everyone else rng.below(everyone, n)
        drawn = "" if n <= everyone else f"; drawn with replacement from {everyone:,}"
        return replace(self, records=self.records[rows], note=self.note + drawn)


@cache
def _baskets() -> Baskets:
    return retail()


def top_items(m: int) -> KnownRecords:
    """A binary record for each Belgian basket: which of the m most bought items it holds."""
    baskets = _baskets()
    top = np.argsort(-baskets.support(), kind="stable")[:m]
    place = np.full(baskets.domain, -1)
    place[top] = np.arange(m)
    person, column = np.repeat(np.arange(baskets.n), baskets.sizes), place[baskets.items]
    records = np.zeros((baskets.n, m), dtype=np.int64)
    records[person[column >= 0], column[column >= 0]] = 1
    return KnownRecords(f"baskets, m = {m}", records, (2,) * m, "other data: Belgian baskets, for POS and Kosarak")


@cache
def _adult() -> Table:
    return adult()


@cache
def _census(columns: tuple[str, ...]) -> Table:
    return census_records(columns=columns)


@cache
def census(values: int = 3, columns: tuple[str, ...] = ADULT_COLUMNS) -> KnownRecords:
    """Adult, each column cut to `values` values: numbers at quantiles, words to the most common ones and the rest."""
    note = f"Adult, numbers cut at quantiles and words to the most common, {values} values at most"
    return _cut(_adult(), values, columns, "Adult", note)


@cache
def kdd_census(values: int = 3, columns: tuple[str, ...] = US_COLUMNS) -> KnownRecords:
    """The census of 1994 and 1995, cut in the same way, instead of the US data."""
    note = f"other data: the KDD census for US, cut at quantiles and to the most common, {values} values at most"
    return _cut(_census(columns), values, columns, "census", note)


def _cut(table: Table, values: int, columns: tuple[str, ...], name: str, note: str) -> KnownRecords:
    codes, sizes = [], []
    for column in (table[name] for name in columns):
        if column.dtype.kind in "if":
            borders = np.unique(np.quantile(column, np.arange(1, values) / values, method="inverted_cdf"))
            cut = np.searchsorted(borders, column, side="left")
        else:
            _, cut = np.unique(column, return_inverse=True)
            rank = np.argsort(np.argsort(-np.bincount(cut), kind="stable"))
            cut = np.minimum(rank, values - 1)[cut]
        _, cut = np.unique(cut, return_inverse=True)
        codes.append(cut)
        sizes.append(int(cut.max()) + 1)
    return KnownRecords(f"{name}, m = {len(columns)}", np.stack(codes, axis=1), tuple(sizes), note)


def some_queries(m: int, k: int, number: int, rng: Random) -> list[Attributes]:
    """`number` different random sets of k of m attributes, or all sets if there are no more."""
    if comb(m, k) <= number:
        return list(combinations(range(m), k))
    queries: set[Attributes] = set()
    while len(queries) < number:
        queries.add(tuple(sorted(rng.permutation(m)[:k].tolist())))
    return sorted(queries)


OURS = "CALM, ours"
"""CALM that also has subset selection to choose from; all others choose between GRR and OUE, as the text lets them."""
METHODS: dict[str, MarginalMethod] = {
    "CALM": calm,
    OURS: calm_with_subsets,
    "FC": full_contingency,
    "AM": all_marginals,
    "FT": fourier,
    "EM": expectation_maximisation,
    "BE": binary_calm,
    "Uniform": uniform,
    "NoNoise": no_noise,
}
RIVALS = ("FC", "AM", "FT", "EM")
QUERIES = 50
RAW, MOVED = range(2)
"""The columns of a run: the mean SSE of the tables as estimated, and of the tables projected onto the simplex."""


class MarginalSetting(NamedTuple):
    """The people, the method, the number k of attributes of a marginal, and epsilon."""

    people: str
    method: str
    k: int
    epsilon: float


MarginalRuns = RunScores[MarginalSetting]
"""By setting, one row per run with the columns RAW and MOVED."""


def squared_errors(answers: Answers, truth: Answers) -> tuple[float, float]:
    """The sum of squared errors of a marginal, averaged over the marginals: as estimated, and moved to the simplex."""
    raw = [float(((answers[query] - table) ** 2).sum()) for query, table in truth.items()]
    moved = [float(((_nearest(answers[query]) - table) ** 2).sum()) for query, table in truth.items()]
    return float(np.mean(raw)), float(np.mean(moved))


def _nearest(table: Floats) -> Floats:
    return project_simplex(table.ravel()).reshape(table.shape)


def run_once(people: KnownRecords, setting: MarginalSetting, n: int, rng: Random) -> tuple[float, float]:
    """One run: draw n of the people and 50 random marginals, and return the errors of the method on these."""
    sample = people.resampled(n, rng.child("people"))
    queries = some_queries(len(sample.sizes), setting.k, QUERIES, rng.child("queries"))
    task = MarginalTask(sample.records, sample.sizes, setting.epsilon, setting.k, queries)
    answers = METHODS[setting.method](task, rng.child("reports", setting.method))
    return squared_errors(answers, {query: true_table(sample.records, query, sample.sizes) for query in queries})


def measure_marginals(
    context: Context, name: str, everyone: Sequence[tuple[KnownRecords, int, MarginalSetting]]
) -> dict[MarginalSetting, NDArray[np.float64]]:
    """Run every setting; runs of the same number have the same people and queries, whatever the method."""

    def scores(step: tuple[KnownRecords, int, MarginalSetting], run: int) -> dict[MarginalSetting, tuple[float, float]]:
        people, n, setting = step
        rng = context.rng.child(name, setting.people, setting.k, str(setting.epsilon), run)
        return {setting: run_once(people, setting, n, rng)}

    return context.measure(everyone, scores, lambda step: ", ".join(map(str, step[2])))


N, M, K = 2**16, 8, 3
EPSILONS_6_3 = tuple(round(0.2 * step, 1) for step in range(1, 11))
SIZES = (2,) * M


@reproduction(
    "wang-2021-analyzing-figure-6.3", title="Noise errors times k, n = 2^16, m = 8, k = 3, and what is chosen"
)
def figure_6_3(context: Context) -> Reproduced:
    """k NE by Eq 6.4 for every s, the numbers of the text's example, and t and s by Algorithm 2."""
    errors = {(s, e): K * noise_error(N, SIZES, e, s) for s in range(1, M + 1) for e in EPSILONS_6_3}
    cells = [Cell(f"eps = {e:g}", f"s = {s}", None, error, "Eq 6.4") for (s, e), error in errors.items()]
    cells += [
        Cell("eps = 2, s = 3", "k NE", 0.00032, errors[3, 2.0], "Eq 6.4"),
        Cell("eps = 2, s = 4", "k NE", 0.00076, errors[4, 2.0], "Eq 6.4; printed without rounding up"),
        Cell("s = 3, t = 56", "SE", 0.00085, sampling_error(N, 56), "Eq 6.5"),
        Cell("s = 4, t = 14", "SE", 0.00021, sampling_error(N, 14), "Eq 6.5"),
        Cell("marginals of 4 that cover 3 of 8", "t", 14, float(len(covering_design(M, K, 4, 1000) or ())), ""),
    ]
    chosen = {e: plan_marginals(N, SIZES, e, k=K) for e in EPSILONS_6_3}
    for e, plan in chosen.items():
        cells += [
            Cell(f"eps = {e:g}", name, None, float(x), "Algorithm 2") for name, x in (("t", plan.t), ("s", plan.s))
        ]
    small = max(plan.s for e, plan in chosen.items() if e <= 1.4)
    cells += [
        Claim("eps up to 1.4: the largest s chosen", small, paper="only s = 2", above=1.5, below=2.5).cell(),
        Claim("eps = 2: s", chosen[2.0].s, paper=4, above=3.5, below=4.5).cell(),
        Claim("eps = 2: t", chosen[2.0].t, paper=14, above=13.5, below=14.5).cell(),
    ]
    figure, (panel,) = canvas(width=6, height=4.4)
    for s in range(1, M + 1):
        panel.plot(EPSILONS_6_3, [errors[s, e] for e in EPSILONS_6_3], marker="o", markersize=3, label=f"s = {s}")
    panel.axhline(THETA, color="#808080", linewidth=0.8)
    finish(panel, "$\\epsilon$", "k NE", "n = $2^{16}$, m = 8, k = 3")
    legend_below(figure, [panel], columns=4)
    return cells, figure


EPSILONS_6_4 = (0.2, 0.6, 1.0, 1.4, 2.0)
MOST_CLAIMED = 1.0  # claims are about epsilons up to this
ENDS = ("Uniform", "NoNoise")
Compared = tuple[KnownRecords, int, int, tuple[str, ...]]
"""People, how many of them, the number k of attributes of a marginal, and the methods that can be run there."""


def _binary(context: Context) -> list[Compared]:
    small, large = context.size(2**16, least=2000), context.size(2**18, least=4000)
    return [
        (top_items(8), small, 3, ("CALM", OURS, *RIVALS, *ENDS)),
        (top_items(16), small, 3, ("CALM", OURS, *RIVALS, *ENDS)),
        (top_items(32), small, 3, ("CALM", OURS, "AM", "FT", *ENDS)),
        (top_items(16), large, 6, ("CALM", OURS, "FC", "AM", "FT", *ENDS)),
        (top_items(32), large, 6, ("CALM", OURS, *ENDS)),
        (top_items(32), large, 8, ("CALM", OURS, *ENDS)),
    ]


EIGHT: dict[Callable[..., KnownRecords], tuple[str, ...]] = {
    census: (
        *("age", "workclass", "education", "marital_status"),
        *("occupation", "relationship", "hours_per_week", "income"),
    ),
    kdd_census: (*US_COLUMNS[:7], "income"),
}


def _others(context: Context) -> list[Compared]:
    n, large = context.size(2**16, least=2000), context.size(2**18, least=4000)
    panels: list[Compared] = []
    for people, columns in EIGHT.items():
        panels += [
            (people(3, columns), n, 3, ("CALM", OURS, "FC", "AM", "FT", "BE", "EM", *ENDS)),
            (people(3), n, 3, ("CALM", OURS, "AM", "FT", *ENDS)),
            (people(3), large, 6, ("CALM", OURS, "AM", *ENDS)),
        ]
    return panels


@reproduction(
    "wang-2021-analyzing-figure-6.4",
    title="Squared error of k-way marginals of binary attributes, CALM and others",
    repeats=5,
    needs=("retail",),
)
def figure_6_4(context: Context) -> Reproduced:
    """Whether baskets hold the most bought items, in the place of POS and Kosarak."""
    return _compare(context, "figure 6.4", _binary(context))


@reproduction(
    "wang-2021-analyzing-figure-6.5",
    title="Squared error of k-way marginals of attributes with more values, CALM and others",
    repeats=5,
    needs=("adult", "census"),
)
def figure_6_5(context: Context) -> Reproduced:
    """Adult and, for US, the KDD census, with at most three values an attribute."""
    return _compare(context, "figure 6.5", _others(context))


def _compare(context: Context, name: str, panels: Sequence[Compared]) -> Reproduced:
    settings = [
        (people, n, MarginalSetting(_title(people, n), method, k, epsilon))
        for people, n, k, methods in panels
        for epsilon in EPSILONS_6_4
        for method in methods
    ]
    runs = measure_marginals(context, name, settings)
    notes = {setting.people: people.note for people, _, setting in settings}

    def errors(people: str, k: int, method: str, epsilon: float) -> Floats | None:
        setting = MarginalSetting(people, method, k, epsilon)
        return runs[setting][:, RAW] if setting in runs else None

    cells = []
    for setting, rows in runs.items():
        for column, words in ((RAW, ""), (MOVED, ", moved to the simplex")):
            if column == RAW or setting.method in RIVALS:
                row = f"{setting.people}, k = {setting.k}, eps = {setting.epsilon:g}"
                note = f"{context.repeats} runs (the paper: 20), deviation {rows[:, column].std():.3g}"
                heading = f"{setting.method}{words}"
                mean = float(rows[:, column].mean())
                oracles = "with subset selection: ours" if setting.method == OURS else ""
                cells.append(Cell(row, heading, None, mean, joined(note, oracles, notes[setting.people])))
    shown = [
        Panel(f"{_title(people, n)}, k = {k}", EPSILONS_6_4, errors, y="SSE", given=(_title(people, n), k))
        for people, n, k, _ in panels
    ]
    methods = [method for method in METHODS if method != "NoNoise"]
    half = -(-len(panels) // 2)
    return Study(runs, cells, methods, shown, lambda some: _claims(panels, some), rows=half).reproduced()


def _title(people: KnownRecords, n: int) -> str:
    return f"{people.name}, n = {n:,}"


def _claims(panels: Sequence[Compared], runs: MarginalRuns) -> list[Claim]:
    """CALM against the guess and the best rival where epsilon is at most 1, and its lead over that in all settings."""
    claims, leads = [], []
    for people, n, k, methods in panels:
        rivals = [method for method in methods if method in RIVALS]
        for epsilon in EPSILONS_6_4:

            def mean(method: str, column: int, who: str = _title(people, n), k: int = k, at: float = epsilon) -> float:
                return float(runs[MarginalSetting(who, method, k, at)][:, column].mean())

            where, own = f"{_title(people, n)}, k = {k}, eps = {epsilon:g}: SSE", mean("CALM", RAW)
            raw, moved = (ratio(min((mean(m, at) for m in rivals), default=math.nan), own) for at in (RAW, MOVED))
            leads += [raw] if rivals else []
            if epsilon > MOST_CLAIMED:
                continue
            guess = ratio(mean("Uniform", RAW), own)
            claims.append(Claim(f"{where}, Uniform to CALM", guess, above=1, note=people.note))
            if rivals:
                note = f"not the paper's; {people.note}"
                claims.append(Claim(f"{where}, the best other to CALM", raw, above=1, note=people.note))
                claims.append(
                    Claim(f"{where}, the best other moved to the simplex, to CALM", moved, above=1, note=note)
                )
    inside = float(np.mean([10 < lead < 100 for lead in leads]))
    statement = "CALM leads the best other by one to two orders of magnitude, the part of the settings"
    note = f"leads from {min(leads):.3g} to {max(leads):.3g}"
    return [*claims, Claim(statement, inside, "most settings", above=0.5, note=note)]
