"""Figure 6.6: classifiers from released marginals: how often they are wrong, by epsilon and the number of people."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.contingency import Codes
from hubbub.core.random import Random
from hubbub.reproduce.baselines.marginals.method import MarginalTask
from hubbub.reproduce.baselines.marginals.tables import MOST_CELLS
from hubbub.reproduce.claims import Claim, judged
from hubbub.reproduce.dissertation.classification import drawn_records, misclassified
from hubbub.reproduce.dissertation.marginal_data import US_COLUMNS, KnownRecords, census, kdd_census
from hubbub.reproduce.dissertation.marginal_runs import METHODS
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas, draw_runs, finish, legend_below

EPSILONS = (0.2, 0.8, 1.4, 2.0)
SIZES = (2**16, 2**18, 2**20)
PARTITIONS = {"binary": 2, "non-binary": 3}
ASKED = {
    "Adult": ("age", "workclass", "education", "education_num", "occupation", "income"),
    "census": ("age", "class_of_worker", "education", "marital_status", "sex", "weeks_worked"),
}
"""Five features and the label. Of the census above 50k earn 6%, so that its label is whether weeks were worked."""
PRIVATE = ("CALM", "FC", "AM", "FT")
BASELINES = ("NoNoise", "Majority")


class Trained(NamedTuple):
    """On whose records, cut how, of how many people, by which method, at which epsilon."""

    people: str
    partition: str
    n: int
    method: str
    epsilon: float


Runs = Mapping[Trained, NDArray[np.float64]]


def _people(name: str, partition: str) -> tuple[KnownRecords, tuple[int, ...]]:
    """Everybody, and the places of features and label."""
    from hubbub.data.records import ADULT_COLUMNS

    values = PARTITIONS[partition]
    people, columns = (census(values), ADULT_COLUMNS) if name == "Adult" else (kdd_census(values), US_COLUMNS)
    return people, tuple(columns.index(column) for column in ASKED[name])


def wrong(people: KnownRecords, asked: tuple[int, ...], setting: Trained, order: Codes, rng: Random) -> float:
    """One run: the first four fifths of the people are trained on, repeated up to n; the others are classified."""
    cut = len(order) * 4 // 5
    test = people.records[order[cut:]][:, asked]
    rows = people.records[order[rng.child("people").below(cut, setting.n)]]
    if setting.method == "Majority":
        most = int(np.bincount(rows[:, asked[-1]]).argmax())
        return float(np.mean(test[:, -1] != most))
    query = tuple(sorted(asked))
    task = MarginalTask(rows, people.sizes, setting.epsilon, len(asked), [query])
    table = METHODS[setting.method](task, rng.child("reports", setting.method))[query]
    table = np.transpose(table, [query.index(column) for column in asked])
    return misclassified(drawn_records(table, setting.n, rng.child("drawn")), test)


def _settings(context: Context) -> list[Trained]:
    settings = []
    for name in ASKED:
        for partition in PARTITIONS:
            cells = prod(_people(name, partition)[0].sizes)
            methods = [method for method in PRIVATE if method != "FC" or cells <= MOST_CELLS]
            for n in (context.size(size, least=2000) for size in SIZES):
                settings += [Trained(name, partition, n, method, e) for method in methods for e in EPSILONS]
                settings += [Trained(name, partition, n, method, 0.0) for method in BASELINES]
    return list(dict.fromkeys(settings))


@reproduction(
    "dissertation-figure-6.6",
    title="Misclassification of classifiers trained on records drawn from released marginals, k = 6",
    repeats=3,
    needs=("adult", "census"),
)
def figure_6_6(context: Context) -> Reproduced:
    """Adult and, for US, the census; FC where its table has at most a million cells."""
    settings = _settings(context)
    steps = [(setting, run) for setting in settings for run in range(context.repeats)]
    rows: dict[Trained, list[float]] = {}
    orders: dict[tuple[str, int], Codes] = {}
    for setting, run in context.track(steps, lambda step: f"{', '.join(map(str, step[0]))}, run {step[1] + 1}"):
        people, asked = _people(setting.people, setting.partition)
        rng = context.rng.child("figure 6.6", setting.people, run)
        if (setting.people, run) not in orders:
            orders[setting.people, run] = rng.child("order").permutation(len(people.records))
        own = rng.child(setting.partition, setting.n, str(setting.epsilon))
        rows.setdefault(setting, []).append(wrong(people, asked, setting, orders[setting.people, run], own))
    runs = {setting: np.array(scores) for setting, scores in rows.items()}
    how = f"{context.repeats} runs; tables with shares below 0 are moved to the simplex; drawn with replacement"
    cells = []
    for setting, scores in runs.items():
        people, _ = _people(setting.people, setting.partition)
        at = f", eps = {setting.epsilon:g}" if setting.method in PRIVATE else ""
        row = f"{setting.people}, {setting.partition}, n = {setting.n:,}{at}"
        cells.append(Cell(row, setting.method, None, float(scores.mean()), f"{how}; {people.note}"))
    sizes = sorted({setting.n for setting in runs})
    figure, panels = canvas(4, len(sizes))
    places = [(name, partition, n) for name in ASKED for partition in PARTITIONS for n in sizes]
    for panel, (name, partition, n) in zip(panels, places, strict=True):
        for method in (*PRIVATE, *BASELINES):
            epsilons = [0.0] * len(EPSILONS) if method in BASELINES else list(EPSILONS)
            lines = [runs[key] for e in epsilons if (key := Trained(name, partition, n, method, e)) in runs]
            if lines:
                draw_runs(panel, EPSILONS, lines, method)
        finish(panel, "$\\epsilon$", "misclassified", f"{name}, {partition}, n = {n:,}", log="")
    legend_below(figure, panels)
    return cells + judged(lambda some: _claims(some, sizes), runs), figure


def _claims(runs: Runs, sizes: list[int]) -> list[Claim]:
    def mean(partition: str, n: int, method: str, epsilon: float = 0.0) -> float:
        return float(runs[Trained("Adult", partition, n, method, epsilon)].mean())

    def over(partition: str, n: int, epsilon: float) -> float:
        return mean(partition, n, "CALM", epsilon) - mean(partition, n, "NoNoise")

    first, middle, last = (sizes * 3)[:3] if len(sizes) < len(SIZES) else sizes
    almost = "almost optimal"
    useless = mean("binary", first, "AM", 0.2) - mean("binary", first, "Majority")
    return [
        Claim("Adult, binary, 4 times the people, eps = 1.4: CALM less NoNoise", over("binary", middle, 1.4), almost,
              below=0.02),
        Claim("Adult, binary, 16 times the people, eps = 0.8: CALM less NoNoise", over("binary", last, 0.8), almost,
              below=0.02),
        Claim("Adult, binary, eps = 0.2: AM less Majority", useless, "not better than Majority", above=-0.01),
        Claim("Adult, eps = 0.8: CALM less NoNoise, non-binary less binary",
              over("non-binary", first, 0.8) - over("binary", first, 0.8), "slightly worse", above=0.0),
    ]  # fmt: skip
