"""Online plans of SaO2 and whole streams: their runs and the errors that are expected of them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.data.synthetic import sparse_vectors
from hubbub.mechanisms.ternary.vectors import INDEX_SHIFT, Ternary
from hubbub.protocols.sao2 import Answers, Sao2
from hubbub.protocols.sao2.tree import Digits, Queries, arc_lengths, squares
from hubbub.random.source import Random
from hubbub.simulate.devices import Stream
from hubbub_papers.change_runs import ChangingRun, bits_of, true_means
from hubbub_papers.harness import Context, RunScores
from hubbub_papers.sparse import THREADS
from hubbub_papers.sparse import look as look_of_mechanism


def expected_tve(plan: Sao2, queries: Queries, n: int, last: int) -> float:
    """The expected TVE of a kind of query, if errors of residues are normal: a sum of sqrt(2 variance/pi).

    Every device is assumed to use all its changes. If many have fewer, errors are a few percent smaller.

    Steps are queried as they end, sums after the `last` step that a query is about.
    """
    step = np.arange(1, plan.steps + 1)
    before, through = (np.arange(last), np.arange(1, last + 1)) if queries == "mean" else np.triu_indices(last + 1, 1)
    if queries == "prefix":
        before, through = before[:last], through[:last]
    weights = (step > before[:, None]) & (step <= through[:, None])
    now = through if queries == "mean" else np.full(through.size, plan.steps)
    devices = np.round(plan.portions * n).astype(np.int64)
    variance = np.zeros(through.size)
    levels = zip(plan.reading(devices).coefficients(weights, now), plan.variances, devices, strict=True)
    for coefficients, variance_of_one, number in levels:
        variance += (coefficients**2).sum(axis=1) * variance_of_one / max(int(number), 1)
    return plan.dimension * math.sqrt(2 / math.pi) * float(np.sqrt(variance).sum())


def exact_gain(plan: Sao2, queries: Queries) -> float:
    """The relative reduction of the mean squared error of all answers by a plan's portions, compared with equal
    ones.
    """
    once = squares(Digits(plan.tree), plan.tree, queries) * np.array(plan.variances)
    return 1 - float((once / plan.portions).sum() / (once * plan.tree.levels).sum())


CHUNK = 1 << 24  # entries looked at together


def run_plan(plan: Sao2, stream: Stream, rng: Random) -> ChangingRun:
    """Run a plan over a stream. Each person reports on one level."""
    if stream.steps is not None and stream.steps < plan.steps:
        raise InvalidValue("steps", plan.steps, f"at most the {stream.steps} steps of the stream")
    answers = Answers(plan)
    for part, who in enumerate(_parts(plan, stream.n, rng)):
        mechanism = plan.mechanisms[part]
        for residues in _residues(plan, part, stream, who):
            answers.add(part, mechanism.accumulate(mechanism.randomize(Ternary.dense(residues), rng)))
    answers.step = plan.steps
    steps = range(1, plan.steps + 1)
    released = [answers.latest(step) if plan.online else answers.mean(step) for step in steps]
    return ChangingRun(
        values=np.array([estimate.value for estimate in released]),
        variances=np.array([estimate.variance for estimate in released]),
        truth=true_means(stream, plan.steps, plan.dimension),
        answers=answers,
        spent=max(mechanism.event().spent for mechanism in plan.mechanisms),
    )


def expected_means(plan: Sao2, stream: Stream) -> NDArray[np.float64]:
    """The expected releases: the truth, except for the changes that people with too many of them do not report."""
    n, d = np.round(plan.portions * stream.n).astype(np.int64), plan.dimension
    now = np.arange(1, plan.steps + 1) if plan.online else np.full(plan.steps, plan.steps)
    means, everyone = np.zeros((plan.steps, d)), np.arange(stream.n)
    for part, coefficients in enumerate(plan.reading(n).coefficients(np.eye(plan.steps), now)):
        reported = sum(chunk.sum(axis=0, dtype=np.int64) for chunk in _residues(plan, part, stream, everyone))
        means += coefficients @ (np.asarray(reported) / stream.n).reshape(-1, d)
    return means


def _parts(plan: Sao2, n: int, rng: Random) -> Iterator[NDArray[np.int64]]:
    """The people of each level: each person is assigned to one, in proportion to the portions."""
    edges = np.cumsum(arc_lengths(plan.portions))
    level = np.searchsorted(edges, rng.uint32(n).astype(np.int64), side="right")
    yield from (np.flatnonzero(level == part) for part in range(edges.size))


def _residues(plan: Sao2, part: int, stream: Stream, who: NDArray[np.int64]) -> Iterator[NDArray[np.int8]]:
    """The residues of some people on a level, a chunk of people at a time."""
    view = plan.views[part]
    for start in range(0, who.size, max(1, CHUNK // view.entries)):
        some = who[start : start + max(1, CHUNK // view.entries)]
        rows = (stream.values(step, 0, stream.n)[some] for step in plan.times(part))
        yield view.residues(np.stack([row if view.one else bits_of(row, view.dimension) for row in rows], axis=1))


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
    """Vectors of 0 and 1, in a table of steps by devices by entries."""

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
    """Run every plan on the stream of its people: an array of `Scores`, one row per run.

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
