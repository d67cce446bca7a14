"""The conversation of a standing stream of changes: one ask for good, a release a step, horizon after horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.change_stream import ChangeStream
from hubbub.protocols.driver import Protocol, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import MAIN, MissingReports, Release
from hubbub.protocols.sao2.answers import Answers
from hubbub.protocols.view import View, Whole

ARITHMETIC = 2
"""Goes up with every change of what is asked, released or remembered: a collector then begins a new era."""

Integers = NDArray[np.int64]


@dataclass
class _Place:
    """The next step; and of every node of the horizon, level by level, how many reports were due and came."""

    due: Integers
    came: Integers
    step: int = 1


def symbol_stream(
    symbols: ChangeStream,
    *,
    first: int = 0,
    view: View | None = None,
    memory: Memory | None = None,
    answers: Answers | None = None,
) -> Protocol:
    """A release of every step: the share of people at each entry, as far as it has been told.

    Devices enrol once a horizon, at any step of it, and the n of an estimate are those that have. One that falls silent
    is taken to have stayed as it was: `Release.lost` says how many did not come, and how far that may draw the release.
    With the first step of a horizon all begins anew.

    Parameters
    ----------
    symbols
        What is asked.
    first
        The step of the collection that is step 1 here: horizons are counted in the collection's steps.
    view
        What of a value is told.
    memory
        Where to remember what was told.
    answers
        Where to gather what is heard: it answers other questions than the release's, at any time.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.driver import converse
        >>> n, rng, symbols = 1000, Random(seed=1), ChangeStream(epsilon=4.0, dimension=1, steps=4, changes=1)
        >>> kept = {"states": symbols.enroll(n, rng)}
        >>> def answer(ask):  # a thousand devices, all on from the start
        ...     new = symbols.price(kept["states"], ask.step - 1, np.ones(n)) > 0
        ...     kept["states"], *said = symbols.step(kept["states"], ask.step - 1, np.ones(n), rng, paid=new)
        ...     return symbols.accumulate(symbols.with_enrolment(kept["states"], *said, new)[0])
        >>> releases = list(converse(symbol_stream(symbols), answer, steps=4))
        >>> [round(float(release.estimate.value[0])) for release in releases], releases[-1].lost[:2]
        ([1, 1, 1, 1], (1000, 1000))
    """
    plan, memory = symbols.plan, memory or Memory()
    answers = memory.keep("answers", answers or Answers(plan))
    nodes = np.array(plan.tree.nodes, dtype=np.int64)
    starts = np.cumsum(nodes) - nodes
    place = memory.keep("place", _Place(np.zeros(nodes.sum(), np.int64), np.zeros(nodes.sum(), np.int64)))
    while True:
        step = place.step
        _, at = symbols.place(first + step - 1)
        if at == 1:
            for told in (answers.n, answers.counts, place.due, place.came):
                told[...] = 0
        sketch = yield from ask_once(Ask(mechanism=symbols, step=step, view=view or Whole(), standing=True))
        counts = sketch.counts
        ending = dict(plan.ending(at))
        due = came = 0
        for level, mechanism in enumerate(plan.mechanisms):
            signs = np.zeros(mechanism.sketch_shape, dtype=np.int64)
            if level in ending:
                told_at = (ending[level] - 1) * symbols.dimension
                signs[:, told_at : told_at + symbols.dimension] = counts[level, 2:].reshape(2, -1)
            answers.hear(level, Sketch(mechanism.spec_id, int(counts[level, 0]), signs))
            if level in ending:
                node = starts[level] + ending[level] - 1
                place.due[node], place.came[node] = answers.n[level], counts[level, 1]
                due, came = due + int(answers.n[level]), came + int(counts[level, 1])
        answers.step = at
        lost = MissingReports(due, came, tuple(_bias(symbols, answers, place, at).tolist()))
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


def _bias(symbols: ChangeStream, answers: Answers, place: _Place, at: int) -> NDArray[np.float64]:
    """What is missing of the release of a step, if what did not come was like what came."""
    plan, d = symbols.plan, symbols.dimension
    weights = (np.arange(1, plan.steps + 1) == at).astype(np.float64)
    missing, start = np.zeros(d), 0
    for level, coefficients in enumerate(plan.reading(answers.n).coefficients(weights, at)):
        own = slice(start, start + plan.tree.nodes[level])
        start = own.stop
        due, came = place.due[own].astype(np.float64), place.came[own].astype(np.float64)
        mechanism, n = plan.mechanisms[level], int(answers.n[level])
        if not n or not (came < due).any():
            continue
        plus, minus = answers.sketch(level).counts
        told = ((plus - minus) / n / float(mechanism.p_true - mechanism.p_reverse)).reshape(-1, d)
        used = (came < due) & (coefficients != 0)
        share = np.where(came > 0, (due - came) / np.maximum(came, 1), np.nan)
        missing -= (coefficients * share)[used] @ told[used]
    return missing
