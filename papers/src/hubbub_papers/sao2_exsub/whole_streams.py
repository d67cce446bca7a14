"""Streams of rarely changing values with any mechanism: SaO2 beside its rivals.

The deployed protocol goes step by step (`hubbub_papers.change_runs`). Here every person's report is drawn at the end,
when the whole stream is known. The releases of every step have the same distribution, and mechanisms that need whole
vectors can be compared with those that do not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.protocols.sao2 import Answers, Sao2
from hubbub.protocols.sao2.tree import arc_lengths
from hubbub.random.source import Random
from hubbub.simulate.devices import Stream
from hubbub_papers.change_runs import ChangingRun, bits_of, true_means

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
        told = sum(chunk.sum(axis=0, dtype=np.int64) for chunk in _residues(plan, part, stream, everyone))
        means += coefficients @ (np.asarray(told) / stream.n).reshape(-1, d)
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
