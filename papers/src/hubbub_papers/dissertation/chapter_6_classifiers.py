"""Figure 6.6: classifiers trained on records that are drawn from released marginals."""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.normalise import project_simplex
from hubbub.core.errors import HubbubError
from hubbub.core.reports import Floats, Ints
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.baselines.marginals import MOST_CELLS, MarginalTask
from hubbub_papers.dissertation.chapter_6_errors import METHODS, US_COLUMNS, KnownRecords, census, kdd_census
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below
from hubbub_papers.result import Claim, joined, judged


def drawn_records(table: Floats, n: int, rng: Random) -> NDArray[np.int64]:
    """Draw n records from a marginal, moved to the simplex if it has shares below 0; return the count of each cell."""
    shares = project_simplex(table.ravel())
    return generator(rng).multinomial(n, shares / shares.sum()).reshape(table.shape)


def misclassified(counts: NDArray[np.int64], records: Ints) -> float:
    """Train a support vector machine on drawn records; return the share of real records that it labels wrongly.

    The machine has a radial kernel and C = 1. Features are one-hot. Equal records are passed as one record with a
    weight, which trains the same machine. If all drawn records have one label, every real record gets that label.

    `counts` has how many drawn records are in each cell: axes are the features, then the label. In `records` the label
    is last.
    """
    try:
        from sklearn.svm import SVC  # type: ignore[import-untyped]
    except ImportError:
        raise HubbubError(
            "scikit-learn is not installed: classifiers are trained with it (pip install scikit-learn)"
        ) from None

    drawn = np.argwhere(counts)
    labels = drawn[:, -1]
    if np.unique(labels).size == 1:
        return float(np.mean(records[:, -1] != labels[0]))
    weights = counts[tuple(drawn.T)].astype(np.float64)
    machine = SVC(C=1.0, gamma="scale", cache_size=50)
    machine.fit(_one_hot(drawn[:, :-1], counts.shape), labels, sample_weight=weights)
    all_features = np.stack(np.unravel_index(np.arange(counts[..., 0].size), counts.shape[:-1]), axis=1)
    predicted = machine.predict(_one_hot(all_features, counts.shape)).reshape(counts.shape[:-1])
    return float(np.mean(predicted[tuple(records[:, :-1].T)] != records[:, -1]))


def _one_hot(codes: Ints, shape: tuple[int, ...]) -> Floats:
    columns = [codes[:, [axis]] == np.arange(shape[axis]) for axis in range(codes.shape[1])]
    return np.concatenate(columns, axis=1).astype(np.float64)


EPSILONS = (0.2, 0.8, 1.4, 2.0)
SIZES = (2**16, 2**18, 2**20)
PARTITIONS = {"binary": 2, "non-binary": 3}
COLUMNS = {
    "Adult": ("age", "workclass", "education", "education_num", "occupation", "income"),
    "census": ("age", "class_of_worker", "education", "marital_status", "sex", "weeks_worked"),
}
"""Five features and the label."""
LABELS = {
    "Adult": "",
    "census": "the label is the weeks worked, not an income above 50k, which 6% of these people have; other features",
}
PRIVATE = ("CALM", "FC", "AM", "FT")
BASELINES = ("NoNoise", "Majority")


class TrainingSetting(NamedTuple):
    """A classifier's records, how many values their attributes were cut to, n, the method, and epsilon."""

    people: str
    partition: str
    n: int
    method: str
    epsilon: float


Runs = RunScores[TrainingSetting]


def _people(name: str, partition: str) -> tuple[KnownRecords, tuple[int, ...]]:
    """All people, and the columns of the features and the label."""
    from hubbub.data.records import ADULT_COLUMNS

    values = PARTITIONS[partition]
    people, columns = (census(values), ADULT_COLUMNS) if name == "Adult" else (kdd_census(values), US_COLUMNS)
    return people, tuple(columns.index(column) for column in COLUMNS[name])


def misclassified_share(
    people: KnownRecords, columns: tuple[int, ...], setting: TrainingSetting, order: Ints, rng: Random
) -> float:
    """One run: draw n training records from the first four fifths of the people, and classify the other people."""
    cut = len(order) * 4 // 5
    test = people.records[order[cut:]][:, columns]
    rows = people.records[order[rng.child("people").below(cut, setting.n)]]
    if setting.method == "Majority":
        most = int(np.bincount(rows[:, columns[-1]]).argmax())
        return float(np.mean(test[:, -1] != most))
    query = tuple(sorted(columns))
    task = MarginalTask(rows, people.sizes, setting.epsilon, len(columns), [query])
    table = METHODS[setting.method](task, rng.child("reports", setting.method))[query]
    table = np.transpose(table, [query.index(column) for column in columns])
    return misclassified(drawn_records(table, setting.n, rng.child("drawn")), test)


def _settings(context: Context) -> list[TrainingSetting]:
    settings = []
    for name in COLUMNS:
        for partition in PARTITIONS:
            cells = prod(_people(name, partition)[0].sizes)
            methods = [method for method in PRIVATE if method != "FC" or cells <= MOST_CELLS]
            for n in (context.size(size, least=2000) for size in SIZES):
                settings += [TrainingSetting(name, partition, n, method, e) for method in methods for e in EPSILONS]
                settings += [TrainingSetting(name, partition, n, method, 0.0) for method in BASELINES]
    return list(dict.fromkeys(settings))


@reproduction(
    "wang-2021-analyzing-figure-6.6",
    title="Misclassification of classifiers trained on records drawn from released marginals, k = 6",
    repeats=3,
    needs=("adult", "census"),
)
def figure_6_6(context: Context) -> Reproduced:
    """Adult and, for US, the census; FC where its table has at most a million cells."""
    orders: dict[tuple[str, int], Ints] = {}

    def run_once(setting: TrainingSetting, run: int) -> dict[TrainingSetting, float]:
        people, columns = _people(setting.people, setting.partition)
        rng = context.rng.child("figure 6.6", setting.people, run)
        if (setting.people, run) not in orders:
            orders[setting.people, run] = rng.child("order").permutation(len(people.records))
        own = rng.child(setting.partition, setting.n, str(setting.epsilon))
        return {setting: misclassified_share(people, columns, setting, orders[setting.people, run], own)}

    runs = context.measure(_settings(context), run_once, lambda setting: ", ".join(map(str, setting)))
    how = f"{context.repeats} runs; tables with shares below 0 are moved to the simplex; drawn with replacement"
    cells = []
    for setting, scores in runs.items():
        people, _ = _people(setting.people, setting.partition)
        at = f", eps = {setting.epsilon:g}" if setting.method in PRIVATE else ""
        row = f"{setting.people}, {setting.partition}, n = {setting.n:,}{at}"
        note = joined(how, LABELS[setting.people], people.note)
        cells.append(Cell(row, setting.method, None, float(scores.mean()), note))
    sizes = sorted({setting.n for setting in runs})
    figure, panels = canvas(4, len(sizes))
    places = [(name, partition, n) for name in COLUMNS for partition in PARTITIONS for n in sizes]
    for panel, (name, partition, n) in zip(panels, places, strict=True):
        lines = {
            method: [
                runs.get(TrainingSetting(name, partition, n, method, 0.0 if method in BASELINES else e))
                for e in EPSILONS
            ]
            for method in (*PRIVATE, *BASELINES)
        }
        draw_methods(panel, EPSILONS, lines)
        label = " (weeks worked)" if LABELS[name] else ""
        finish(panel, "$\\epsilon$", "misclassified", f"{name}{label}, {partition}, n = {n:,}", log="")
    legend_below(figure, panels)
    return cells + judged(lambda some: _claims(some, sizes), runs), figure


def _claims(runs: Runs, sizes: list[int]) -> list[Claim]:
    def mean(partition: str, n: int, method: str, epsilon: float = 0.0) -> float:
        return float(runs[TrainingSetting("Adult", partition, n, method, epsilon)].mean())

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
