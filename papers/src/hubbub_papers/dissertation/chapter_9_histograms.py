"""Tables 9.1 and 9.2, Figure 9.3: histograms of shuffled reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.data.counts import emoji, names
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.planning.shuffled import choose_shuffled
from hubbub.privacy.amplify import bounds as amplification_bounds
from hubbub.random.source import Random
from hubbub_papers.baselines.shuffled import COMPARATORS, NUMERICAL, ByOracle, HistogramSetting
from hubbub_papers.baselines.shuffled import room as room_of
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_runs, finish, legend_below
from hubbub_papers.result import Claim, joined, judged, means, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N, DELTA_9_1, DOMAIN = 990_002, 1e-9, 42_178
CENTRAL_9_1 = (0.2, 0.4, 0.6, 0.8)
BUCKETS = (45, 177, 397, 705)
UTILITY = {
    "SOLH": (5.27e-8, 1.30e-8, 5.76e-9, 3.24e-9),
    "d' = 10": (1.31e-7, 1.17e-7, 1.14e-7, 1.13e-7),
    "d' = 100": (1.73e-7, 1.55e-8, 1.22e-8, 1.22e-8),
    "d' = 1000": (1.02e-4, 2.60e-5, 4.02e-8, 3.66e-9),
    "RAP_R": (7.82e-9, 1.92e-9, 8.53e-10, 4.78e-10),
}
_AMPLIFIED = {
    "EFMRTT19": "first row",
    "CSUZZ19": "second row",
    "BBGN19": "third row",
    "FMT21": "",
    "clones": "",
    "stronger clones": "",
    "blanket": "",
}
"""The bounds, with the row of the table that prints the formula."""


@reproduction("wang-2021-analyzing-table-9.1", title="Amplification of GRR by shuffling, in numbers")
def table_9_1(context: Context) -> tuple[list[Cell], None]:
    """The table prints formulas: their numbers at three settings, where they apply, and the bounds that came later."""
    cells, delta = [], f"delta = {DELTA_9_1:g}"
    for epsilon, domain, n in ((0.4, 2, 100_000), (2.0, 2, 100_000), (2.0, 100, 1_000_000)):
        known = {
            bound.method: bound
            for bound in amplification_bounds(GRR(epsilon=epsilon, domain=domain), n=n, delta=DELTA_9_1)
        }
        row = f"eps = {epsilon:g}, d = {domain}, n = {n:,}"
        cells += [
            Cell(row, method, None, known[method].epsilon, joined(printed and f"the table's {printed}", delta))
            for method, printed in _AMPLIFIED.items()
            if method in known
        ]
    return cells, None


@reproduction("wang-2021-analyzing-table-9.2", title="SOLH and RAP_R on Kosarak's size: d' and the variance of a share")
def table_9_2(context: Context) -> tuple[list[Cell], None]:
    """The formulas as printed, and the variances by valid numerical bounds at the same central epsilon."""
    cells = []
    for index, central in enumerate(CENTRAL_9_1):
        row = f"eps_c = {central:g}"
        room = room_of(central, N, DELTA_9_1)
        best = round((room + 2) / 3)
        cells.append(Cell(row, "d'", BUCKETS[index], best, "(M+2)/3, rounded"))
        fixed = {"SOLH": best, "d' = 10": 10, "d' = 100": 100, "d' = 1000": 1000}
        for name, buckets in fixed.items():
            repeats = "the print repeats the number before it" if (central, buckets) == (0.8, 100) else ""
            note = joined(_note(room, buckets), repeats)
            cells.append(Cell(row, name, UTILITY[name][index], _variance(room, buckets, central), note))
        rap = (room - 1) / (N * (room - 2) ** 2)
        note = "(M-1)/(n (M-2)^2); its guarantee is of sums of bits alone"
        cells.append(Cell(row, "RAP_R", UTILITY["RAP_R"][index], rap, note))
        for choice in choose_shuffled(domain=DOMAIN, n=N, epsilon=central, delta=DELTA_9_1)[:1]:
            note = (
                f"{type(choice.mechanism).__name__}, local epsilon {choice.mechanism.epsilon:.3g}, by the blanket; ours"
            )
            cells.append(Cell(row, "best by valid bounds", None, choice.variance, note))
    return cells, None


def _variance(room: float, buckets: int, central: float) -> float:
    """Prop 9.3.5; where this number of buckets leaves nothing to amplify, Eq 9.3 with two at the central epsilon."""
    if room <= buckets:
        power = math.exp(central)
        return (power + 1) ** 2 / (N * (power - 1) ** 2)
    return room**2 / (N * (room - buckets) ** 2 * (buckets - 1))


def _note(room: float, buckets: int) -> str:
    return (
        "Prop 9.3.5"
        if room > buckets
        else "nothing to amplify with this number of buckets: two without shuffling, which is what the table has"
    )


DELTA_9_3 = 1e-9
CENTRAL_9_3 = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
DATA = ("emoji", "names")
IPUMS = 602_325, 915
OTHER_DATA = "other data: emoji in tweets, and names of births in 2016, for the census' cities"
SUMS = "its guarantee is of sums of bits alone, not of shuffled reports"
DRAWN = "what reports add up to is drawn from its exact distribution"
Key = tuple[str, str, str, float]
"""The data, the bounds, the method, and the central epsilon."""


@reproduction(
    "wang-2021-analyzing-figure-9.3",
    title="Mean squared error of shuffled histograms by the central epsilon",
    repeats=100,
    needs=("emoji", "names"),
)
def figure_9_3(context: Context) -> Reproduced:
    """By the chapter's formulas, and by numerical bounds; SOLH at one epsilon from real reports as well."""
    runs, formula = measure(context)
    figure, panels = canvas(len(DATA), 2, width=5.0)
    for row, data in enumerate(DATA):
        for column, bounds in enumerate(("formulas of the chapter", "numerical bounds")):
            _draw(panels[2 * row + column], runs, data, bounds)
    legend_below(figure, panels[:2], columns=5)
    cells = []
    for key, errors in runs.items():
        data, bounds, method, central = key
        sums = SUMS if method in ("RAP", "RAP_R", "AUE") and bounds == "formulas of the chapter" else ""
        how = "every report made" if bounds == "real reports" else DRAWN
        note = joined(bounds, sums, how, f"by formula {formula[key]:.4g}", OTHER_DATA)
        cells.append(Cell(f"{data}, eps_c = {central:g}", method, None, float(errors.mean()), note))
    drawn = {key: errors for key, errors in runs.items() if key[1] != "real reports"}
    real = [_to_formula(key, mean, formula).cell() for key, mean in means(runs).items() if key[1] == "real reports"]
    return cells + judged(lambda some: _claims(some, formula), drawn) + real, figure


def measure(context: Context) -> tuple[dict[Key, NDArray[np.float64]], dict[Key, float]]:
    """By setting, the mean squared error of each run, and the error by formula."""
    runs: dict[Key, NDArray[np.float64]] = {}
    formula: dict[Key, float] = {}
    for data, central in context.track(
        [(d, c) for d in DATA for c in CENTRAL_9_3], lambda s: f"{s[0]}, eps_c {s[1]:g}"
    ):
        counts = people(data, context)
        setting = HistogramSetting(central, DELTA_9_3, int(counts.sum()), len(counts))
        methods = {("formulas of the chapter", name): make(setting) for name, make in COMPARATORS.items()}
        methods |= {("numerical bounds", name): make(setting) for name, make in NUMERICAL.items()}
        for (bounds, name), method in methods.items():
            if method is None:
                continue  # AUE needs more people than there are
            key = (data, bounds, name, central)
            formula[key] = method.error(counts)
            rngs = [context.rng.child("9.3", *map(str, key), run) for run in range(context.repeats)]
            runs[key] = np.array([_error(method.shares(counts, rng), counts) for rng in rngs])
        if central == 0.5:
            solh = methods["formulas of the chapter", "SOLH"]
            assert isinstance(solh, ByOracle)
            key = (data, "real reports", "SOLH", central)
            formula[key] = solh.error(counts)
            times = min(context.repeats, 10) if data == "emoji" else 1  # of names, 10^11 hashes a run
            rngs = [context.rng.child("9.3", *map(str, key), run) for run in range(times)]
            runs[key] = np.array([real_error(solh, counts, rng) for rng in rngs])
    return runs, formula


def people(data: str, context: Context) -> NDArray[np.int64]:
    """The number of people who hold each value."""
    counts = _counted(data)
    if context.scale == 1.0:
        return counts
    scaled: NDArray[np.int64] = (counts * context.scale).astype(np.int64)
    scaled[0] += 1
    return scaled


@cache
def _counted(data: str) -> NDArray[np.int64]:
    return (emoji() if data == "emoji" else names(2016)).counts


def real_error(method: ByOracle, counts: NDArray[np.int64], rng: Random) -> float:
    """The mean squared error of one run in which every person's report is made and counted."""
    oracle = method.oracle
    values = np.repeat(np.arange(len(counts)), counts)
    sketch = oracle.accumulate(oracle.randomize(values, rng))
    return _error(oracle.estimate(sketch).value, counts)


def _error(shares: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    return float(((shares - counts / counts.sum()) ** 2).mean())


def _draw(panel: Axes, runs: RunScores[Key], data: str, bounds: str) -> None:
    from_formulas = () if bounds == "formulas of the chapter" else ("OLH", "Lap", "Base")
    for name in COMPARATORS:
        source = "formulas of the chapter" if name in from_formulas else bounds
        at = [central for central in CENTRAL_9_3 if (data, source, name, central) in runs]
        if at:
            rows = [runs[data, source, name, central] for central in at]
            draw_runs(panel, at, rows, "Guess" if name == "Base" else name)
    finish(panel, "central $\\epsilon$", "mean squared error of a share", f"{data}, {bounds}")


def _paper_error(method: str) -> float:
    """The expected mean squared error at a central epsilon of .5, of as many people and values as IPUMS has."""
    n, domain = IPUMS
    chosen = COMPARATORS[method](HistogramSetting(0.5, DELTA_9_3, n, domain))
    assert chosen is not None
    return chosen.error(np.full(domain, n // domain))


def _to_formula(key: Key, error: float, formula: Mapping[Key, float]) -> Claim:
    data, bounds, method, central = key
    statement = f"{data}, eps_c = {central:g}: {method} to its formula, {bounds}"
    return Claim(statement, ratio(error, formula[key]), above=0.95, below=1.05)


def _claims(runs: RunScores[Key], formula: Mapping[Key, float]) -> list[Claim]:
    """Orders of magnitude are judged by formula at the paper's n and d; what is measured here has another n."""
    mean, exact = means(runs), {name: _paper_error(name) for name in ("OLH", "SOLH", "Lap")}
    claims = []
    for a, b, printed in (("OLH", "SOLH", 3), ("SOLH", "Lap", 2)):
        orders, *measured = (
            math.log10(ratio(errors[a], errors[b]))
            for errors in (exact, *({m: mean[d, "formulas of the chapter", m, 0.5] for m in exact} for d in DATA))
        )
        note = "exact, at the paper's n and d; measured " + ", ".join(
            f"{data} {value:.2f}" for data, value in zip(DATA, measured, strict=True)
        )
        statement = f"eps_c = 0.5: {a} to {b}, orders of magnitude"
        claims.append(Claim(statement, orders, f"around {printed}", printed - 0.5, printed + 0.5, note))
    for data in DATA:

        def at(method: str, central: float = 0.5, bounds: str = "formulas of the chapter", data: str = data) -> float:
            return mean[data, bounds, method, central]

        claims += [
            _to_formula((data, bounds, "SOLH", 0.5), at("SOLH", bounds=bounds), formula)
            for bounds in ("formulas of the chapter", "numerical bounds")
        ]
        claims += [
            Claim(f"{data}, eps_c = 0.1: SH to a uniform guess", ratio(at("SH", 0.1), at("Base", 0.1)), above=1),
            Claim(
                f"{data}, eps_c = 0.5: SOLH by numerical bounds to the chapter's",
                ratio(at("SOLH", bounds="numerical bounds"), at("SOLH")),
                below=1,
                note="ours",
            ),
        ]
    return claims
