"""Streams of rarely changing vectors: the plans that are compared, the scores of a run, and the sweep over plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.data.synthetic import sparse_vectors
from hubbub.mechanisms.ternary.vectors import INDEX_SHIFT
from hubbub.protocols.sao2 import Sao2
from hubbub.random.source import Random
from hubbub.simulate.devices import Stream
from hubbub_papers.change_runs import ChangingRun
from hubbub_papers.harness import Context, RunScores
from hubbub_papers.sao2_exsub.whole_streams import run_plan
from hubbub_papers.sparse.methods import look as look_of_mechanism
from hubbub_papers.sparse.sweep import THREADS

OURS = "SaO2, ours"
"""ExSub with the best portions of people for the levels, and the best reading of the tree."""
NET = "SaO2, net rule"
"""The same with NetSub, which is the default of `Sao2`."""
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
"""The methods of the papers, and the mechanisms that report the changes of a level."""
Key = tuple[str, float, str]
"""The people, epsilon, and the method."""
Runs = RunScores[Key]


class Scores(NamedTuple):
    """The errors of a run: of the means released at each step, and of sums over steps, queried after the last step."""

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
    """Vectors of 0 and 1 that begin at 0: each device flips `changes` random entries of all steps (section 7.1)."""
    position = sparse_vectors(n, steps * dimension, changes, rng).entries >> INDEX_SHIFT
    turned = np.zeros((steps, n, dimension), dtype=np.int8)
    turned[position // dimension, np.arange(n)[:, None], position % dimension] = 1
    return Toggling(np.bitwise_xor.accumulate(turned, axis=0))


def as_printed(
    method: str, *, epsilon: float, dimension: int, steps: int, changes: int, fanout: int = 2, kind: type[Sao2] = Sao2
) -> Sao2:
    """The plan of a method in the papers' form: an equal part of the people for every level, answers read by digits.

    The plan does not use that a device has one category at a time: any `changes` entries of a level's residues may
    differ from 0. Collision needs whole vectors, and answers at the end.
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
    """The scores of a run over the steps up to `last`."""
    truth = run.truth[:last]
    steps = np.abs(run.values[:last] - truth)
    final = np.array([run.answers.mean(step).value for step in range(1, last + 1)])
    sums = np.concatenate([np.zeros((1, truth.shape[1])), np.cumsum(final - truth, axis=0)])
    before, through = np.triu_indices(last + 1, 1)
    prefixes, ranges = np.abs(sums[1:]), np.abs(sums[through] - sums[before])
    return Scores(*(float(score) for errors in (steps, prefixes, ranges) for score in (errors.sum(), errors.max())))


def sweep(
    context: Context, plans: Mapping[Key, Sao2], streams: Mapping[str, Stream], *, last: int | None = None
) -> dict[Key, NDArray[np.float64]]:
    """Run every plan on the stream of its people: an array of `Scores`, one row a run.

    The randomness of a run depends on nothing but its own setting, so that figures that share settings share numbers.
    """

    def run_once(key: Key, run: int) -> dict[Key, Scores]:
        who, epsilon, method = key
        rng = context.rng.child("changes", who, str(epsilon), method, run)
        plan = plans[key]
        return {key: scores(run_plan(plan, streams[who], rng), plan.steps if last is None else last)}

    return context.measure(plans, run_once, "{0[0]}, eps = {0[1]:g}, {0[2]}".format, threads=THREADS)


def average(runs: Runs, keys: Key | Sequence[Key], what: str) -> float:
    """The mean over the runs of one of the `Scores`; of several settings, the smallest mean."""
    settings = [keys] if isinstance(keys, tuple) else keys
    return min(float(runs[key][:, Scores._fields.index(what)].mean()) for key in settings)


def look(method: str) -> dict[str, Any]:
    """The plotting options of a method's line."""
    if method in (OURS, NET):
        color, marker = ("#d55e00", "o") if method == OURS else ("#e7298a", "8")
        return {"color": color, "marker": marker, "label": method, "markersize": 5, "linewidth": 1.3}
    return look_of_mechanism(method)
