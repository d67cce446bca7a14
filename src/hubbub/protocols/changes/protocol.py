"""The protocol of a stream of changes: one standing ask, and a release at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import MAIN, MissingReports, Protocol, Release, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.sao2.answers import Answers
from hubbub.protocols.views.basic import View, Whole

ARITHMETIC = 1
"""Goes up with every change of what is asked, released or remembered: a collector then begins a new era."""

Integers = NDArray[np.int64]


@dataclass
class _Place:
    """The next step; and for every node of the horizon, level by level, how many reports were due and how many came."""

    due: Integers
    came: Integers
    step: int = 1


def change_protocol(
    stream: ChangeStream,
    *,
    first: int = 0,
    view: View | None = None,
    memory: Memory | None = None,
    answers: Answers | None = None,
) -> Protocol:
    """Release at every step the share of devices whose entry is 1, for each entry, from all reports of the horizon.

    Devices enrol once in a horizon, at any of its steps; the n of an estimate is how many have enrolled. A device that
    falls silent counts as unchanged: `Release.lost` says how many reports are missing, and the bias that this may
    cause. At the first step of a horizon everything begins anew.

    Parameters
    ----------
    stream
        The mechanism of the reports.
    first
        The step of the collection that is step 1 of the protocol: horizons are counted in the collection's steps.
    view
        What devices look at of their value.
    memory
        Where counts are kept from step to step.
    answers
        The object that gathers the counts. A caller who passes one can ask it for other sums, at any time.
    """
    plan, memory = stream.plan, memory or Memory()
    answers = memory.keep("answers", answers or Answers(plan))
    nodes = np.array(plan.tree.nodes, dtype=np.int64)
    starts = np.cumsum(nodes) - nodes
    place = memory.keep("place", _Place(np.zeros(nodes.sum(), np.int64), np.zeros(nodes.sum(), np.int64)))
    while True:
        step = place.step
        _, at = stream.place(first + step - 1)
        if at == 1:
            for counts_so_far in (answers.n, answers.counts, place.due, place.came):
                counts_so_far[...] = 0
        sketch = yield from ask_once(Ask(mechanism=stream, step=step, view=view or Whole(), standing=True))
        counts = sketch.counts
        ending = dict(plan.ending(at))
        due = came = 0
        for level, mechanism in enumerate(plan.mechanisms):
            signs = np.zeros(mechanism.sketch_shape, dtype=np.int64)
            if level in ending:
                start = (ending[level] - 1) * stream.dimension
                signs[:, start : start + stream.dimension] = counts[level, 2:].reshape(2, -1)
            answers.add(level, Sketch(mechanism.spec_id, int(counts[level, 0]), signs))
            if level in ending:
                node = starts[level] + ending[level] - 1
                place.due[node], place.came[node] = answers.n[level], counts[level, 1]
                due, came = due + int(answers.n[level]), came + int(counts[level, 1])
        answers.step = at
        lost = MissingReports(due, came, tuple(_bias(stream, answers, place, at).tolist()))
        estimate = answers.mean(at)
        if (place.came < place.due).any():
            estimate = replace(estimate, bias="heuristic")
        place.step += 1
        yield Release(
            step=step,
            estimates={MAIN: estimate},
            published=sketch.n > 0,
            spent=float(at == 1),
            n=answers.population,
            lost=lost,
        )


def _bias(stream: ChangeStream, answers: Answers, place: _Place, at: int) -> NDArray[np.float64]:
    """The bias of the release of a step, if the missing reports would have been like those that came."""
    plan, d = stream.plan, stream.dimension
    weights = (np.arange(1, plan.steps + 1) == at).astype(np.float64)
    bias, start = np.zeros(d), 0
    for level, coefficients in enumerate(plan.reading(answers.n).coefficients(weights, at)):
        nodes = slice(start, start + plan.tree.nodes[level])
        start = nodes.stop
        due, came = place.due[nodes].astype(np.float64), place.came[nodes].astype(np.float64)
        mechanism, n = plan.mechanisms[level], int(answers.n[level])
        if not n or not (came < due).any():
            continue
        plus, minus = answers.sketch(level).counts
        residues = ((plus - minus) / n / float(mechanism.p_true - mechanism.p_reverse)).reshape(-1, d)
        used = (came < due) & (coefficients != 0)
        missing = np.where(came > 0, (due - came) / np.maximum(came, 1), np.nan)  # for each report that came
        bias -= (coefficients * missing)[used] @ residues[used]
    return bias
