"""Streams of changes: the plans that are compared, what is measured of a run, and the runs of them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.core.ternary import INDEX_SHIFT
from hubbub.data.synthetic import sparse_vectors
from hubbub.protocols.sao2 import Sao2
from hubbub.reproduce.harness import Context
from hubbub.reproduce.sao2_exsub.whole_streams import run_plan
from hubbub.reproduce.sparse.methods import look as look_of_mechanism
from hubbub.simulate.changing import ChangingRun
from hubbub.simulate.devices import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS = "SaO2, ours"
"""ExSub with the portions of levels and the reading of the tree that are best."""
NET = "SaO2, net rule"
"""The same with NetSub: the default of `Sao2`."""
MECHANISMS = {
    "EFMRTT": "EFMRTT",
    "DDRM": "DDRM",
    "PCKV-GRR": "PCKVGRR",
    "PCKV-AGRR": "PCKVAGRR",
    "PCKV-UE": "PCKVUE",
    "Collision": "Collision",
    "ToPL": "ToPLClipped",
    "ExSub": "ExSub",
}
"""The methods of the papers, and the mechanisms that tell the changes of a level."""
_AT_ONCE = 2
Key = tuple[str, float, str]
"""Who the people are, epsilon, and the method."""
Runs = Mapping[Key, NDArray[np.float64]]


class Scores(NamedTuple):
    """The errors of a run: of steps as they were released, and of sums over steps, asked for when all had ended."""

    mean_tve: float
    mean_mae: float
    prefix_tve: float
    prefix_mae: float
    range_tve: float
    range_mae: float


class Toggling(Stream):
    """Vectors of 0 and 1, in a table of steps by devices by entries.

    Example:
        >>> Toggling(np.array([[[0], [1]], [[1], [1]]], dtype=np.int8)).truth(2).tolist()
        [1.0]
    """

    def __init__(self, table: NDArray[np.int8]) -> None:
        self.table, self.steps, self.n = table, len(table), table.shape[1]

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return self.table[step - 1, start:stop]

    def truth(self, step: int) -> NDArray[np.float64]:
        return np.asarray(self.table[step - 1].mean(axis=0))


def toggling(n: int, steps: int, dimension: int, changes: int, rng: Random) -> Toggling:
    """Of all entries of all steps so many, drawn at random, turn on what was off, or off what was on (section 7.1).

    Example:
        >>> stream = toggling(1000, 4, 2, 8, Random(seed=1))  # every entry turns in every step
        >>> [stream.truth(step).tolist() for step in (1, 2, 3)]
        [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    """
    position = sparse_vectors(n, steps * dimension, changes, rng).entries >> INDEX_SHIFT
    turned = np.zeros((steps, n, dimension), dtype=np.int8)
    turned[position // dimension, np.arange(n)[:, None], position % dimension] = 1
    return Toggling(np.bitwise_xor.accumulate(turned, axis=0))


def as_printed(
    method: str, *, epsilon: float, dimension: int, steps: int, changes: int, fanout: int = 2, kind: type[Sao2] = Sao2
) -> Sao2:
    """A method in the papers' form: an equal part of the people for every level, and answers read by digits.

    It knows nothing of categories: any `changes` entries of a level's residues may differ from 0. Collision sees whole
    vectors only, and answers at the end.

    Example:
        >>> as_printed("ExSub", epsilon=1.0, dimension=1, steps=8, changes=2).portions.tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    return kind(
        epsilon=epsilon,
        dimension=dimension,
        steps=steps,
        changes=changes,
        fanout=fanout,
        mechanism=MECHANISMS[method],
        choice="uniform",
        pooled=False,
    )


def scores(run: ChangingRun, last: int) -> Scores:
    """What a run is measured by, over the steps up to `last`.

    Example:
        >>> stream = Toggling(np.ones((2, 2000, 1), dtype=np.int8))
        >>> plan = Sao2(epsilon=8.0, dimension=1, steps=2, changes=1)
        >>> found = scores(run_plan(plan, stream, Random(seed=1)), last=2)
        >>> found.range_tve >= found.prefix_tve >= found.prefix_mae
        True
    """
    truth = run.truth[:last]
    now = np.abs(run.values[:last] - truth)
    known = np.array([run.answers.mean(step).value for step in range(1, last + 1)])
    sums = np.concatenate([np.zeros((1, truth.shape[1])), np.cumsum(known - truth, axis=0)])
    before, through = np.triu_indices(last + 1, 1)
    prefix, ranges = np.abs(sums[1:]), np.abs(sums[through] - sums[before])
    return Scores(*(float(of) for each in (now, prefix, ranges) for of in (each.sum(), each.max())))


def sweep(
    context: Context, plans: Mapping[Key, Sao2], streams: Mapping[str, Stream], *, last: int | None = None
) -> dict[Key, NDArray[np.float64]]:
    """Run every plan on the stream of its people: an array of `Scores`, one row a run.

    The randomness of a run depends on nothing but its own setting, so that figures that share settings share numbers.
    """
    steps = [(key, run) for key in plans for run in range(context.repeats)]
    measured: dict[Key, list[Scores]] = {}

    def one(step: tuple[Key, int]) -> Scores:
        (who, epsilon, method), run = step
        plan = plans[who, epsilon, method]
        rng = context.rng.child("changes", who, str(epsilon), method, run)
        return scores(run_plan(plan, streams[who], rng), plan.steps if last is None else last)

    pool = ThreadPoolExecutor(_AT_ONCE)  # numpy's loops let the other thread run
    try:
        results = pool.map(one, steps)
        for key, _ in context.track(steps, lambda s: f"{s[0][0]}, eps = {s[0][1]:g}, {s[0][2]}, run {s[1] + 1}"):
            measured.setdefault(key, []).append(next(results))
    finally:
        pool.shutdown(cancel_futures=True)
    return {key: np.array(rows) for key, rows in measured.items()}


def average(runs: Runs, keys: Key | Sequence[Key], what: str) -> float:
    """The mean over the runs of one of the `Scores`; of several settings, that of the best of them."""
    several = [keys] if isinstance(keys, tuple) else keys
    return min(float(runs[key][:, Scores._fields.index(what)].mean()) for key in several)


def mark_epsilons(panel: Axes, epsilons: Sequence[float]) -> None:
    """Name the epsilons that were run, and no others: on a short logarithmic axis the labels run into each other."""
    panel.set_xticks(list(epsilons), [f"{epsilon:g}" for epsilon in epsilons])
    panel.set_xticks([], minor=True)


def look(method: str) -> dict[str, Any]:
    """The plotting options of a method's line.

    Example:
        >>> look(OURS)["label"], look(OURS)["color"] == look("ExSub")["color"]
        ('SaO2, ours', False)
    """
    if method in (OURS, NET):
        color, marker = ("#d55e00", "o") if method == OURS else ("#e7298a", "8")
        return {"color": color, "marker": marker, "label": method, "markersize": 5, "linewidth": 1.3}
    return look_of_mechanism(method)
