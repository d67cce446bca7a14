"""The protocol of a stream of changes: one standing ask for each level, and a release at every step.

Sums over the steps of a horizon are estimated from what its releases say of the nodes that have ended (`Horizon`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats, Ints, Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import (
    MAIN,
    EndedNodes,
    MissingReports,
    NodeReports,
    Protocol,
    Release,
    ask_all,
)
from hubbub.protocols.memory import Memory
from hubbub.protocols.sao2.answers import Answers
from hubbub.protocols.views.basic import View, Whole

ARITHMETIC = 1
"""Goes up with every change of what is asked, released or remembered: a collector then begins a new era."""


class Horizon:
    """The sums of the reports of one horizon, node by node, and what they tell of any range of its steps.

    The reports of different levels come from different devices. So a range has an interval of its own, from the
    coefficients of the nodes that it is made of: it is narrower than intervals of steps that are added up.
    """

    remembered = ("step", "enrolled", "heard", "due", "came")

    def __init__(self, stream: ChangeStream, answers: Answers | None = None) -> None:
        self.stream = stream
        self.answers = answers or Answers(stream.plan)
        self.step = 1
        """The next step of the protocol."""
        nodes = np.array(stream.plan.tree.nodes, dtype=np.int64)
        self._first = np.cumsum(nodes) - nodes
        self.enrolled: Ints = np.zeros_like(nodes)
        """For each level, how many enrolments came so far."""
        self.heard: Ints = np.zeros(nodes.sum(), dtype=np.int64)
        """For every node, level by level, how many enrolments had come by its end."""
        self.due: Ints = np.zeros(nodes.sum(), dtype=np.int64)
        """How many reports were due."""
        self.came: Ints = np.zeros(nodes.sum(), dtype=np.int64)
        """And how many came."""
        self._left_out: set[int] = set()

    def clear(self) -> None:
        """Forget everything: a horizon begins."""
        for counts in (self.answers.n, self.answers.counts, self.enrolled, self.heard, self.due, self.came):
            counts[...] = 0
        self._left_out.clear()

    def ended(self, sketches: Sequence[Sketch], at: int) -> EndedNodes:
        """The nodes that ended with step `at` of the horizon, from the sketches of that step."""
        counts = np.sum([sketch.counts for sketch in sketches], axis=0)
        enrolled = self.enrolled + counts[:, 0]
        nodes = tuple(
            NodeReports(level, node, int(counts[level, 1]), *_signs(counts[level, 2:]))
            for level, node in self.stream.plan.ending(at)
        )
        return EndedNodes(tuple(enrolled.tolist()), int(self.came.sum()), nodes)

    def add(self, ended: EndedNodes, at: int) -> tuple[int, int]:
        """Add the nodes that ended with step `at`; return how many reports were due, and how many came.

        A node without its sums leaves out the whole level. If more reports came than devices enrolled, reports of the
        nodes before were lost, with the enrolments in them.
        """
        if ended.earlier != self.came.sum():
            raise InvalidValue("steps", f"{self.came.sum():,} reports before step {at}", f"the {ended.earlier:,} that "
                               "came: releases of earlier steps are missing")  # fmt: skip
        d, n, due, came = self.stream.dimension, self.answers.n, 0, 0
        of_level = {node.level: node for node in ended.nodes}
        self.enrolled[...] = ended.enrolled
        for level, mechanism in enumerate(self.stream.plan.mechanisms):
            signs = np.zeros(mechanism.sketch_shape, dtype=np.int64)
            enrolled = int(self.enrolled[level])
            n[level] = max(n[level], enrolled)
            if (node := of_level.get(level)) is not None:
                first, start = self._first[level], (node.node - 1) * d
                place = first + node.node - 1
                self.heard[place], self.came[place] = enrolled, node.came
                before, unheard = slice(first, place), max(0, node.came - enrolled)
                self.due[before] = np.maximum(self.due[before], self.heard[before] + unheard)
                n[level] = self.due[place] = max(n[level], node.came)
                due, came = due + int(self.due[place]), came + node.came
                if node.plus is None or node.minus is None:
                    self._left_out.add(level)
                else:
                    signs[:, start : start + d] = node.plus, node.minus
            self.answers.add(level, Sketch(mechanism.spec_id, 0, signs))
        self.answers.step = at
        return due, came

    def range(self, first: int, last: int) -> Estimate:
        """The sum over the steps `first` to `last` of the share of devices whose entry is 1, for every entry.

        Variances are infinite where the reports of the level that is needed are too few.
        """
        with self._readable():
            return self._marked(self.answers.range(first, last))

    def latest(self, at: int) -> Estimate:
        """The shares at a step that has ended."""
        return self._marked(self.answers.mean(at))

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Where the levels that are left out count as levels without devices."""
        everyone = self.answers.n.copy()
        self.answers.n[list(self._left_out)] = 0
        try:
            yield
        finally:
            self.answers.n[...] = everyone

    def _marked(self, estimate: Estimate) -> Estimate:
        return replace(estimate, bias="heuristic") if (self.came < self.due).any() else estimate

    def bias(self, first: int, last: int) -> Floats:
        """The bias of a range, if the missing reports would have been like those that came."""
        with self._readable():
            return self._bias(first, last)

    def _bias(self, first: int, last: int) -> Floats:
        plan, d = self.stream.plan, self.stream.dimension
        steps, n = np.arange(1, plan.steps + 1), self.answers.n
        weights = ((first <= steps) & (steps <= last)).astype(np.float64)
        bias, start = np.zeros(d), 0
        for level, coefficients in enumerate(plan.reading(n).coefficients(weights, self.answers.now)):
            nodes = slice(start, start + plan.tree.nodes[level])
            start = nodes.stop
            due, came = self.due[nodes].astype(np.float64), self.came[nodes].astype(np.float64)
            mechanism = plan.mechanisms[level]
            if not n[level] or not (came < due).any():
                continue
            plus, minus = self.answers.sketch(level).counts
            gap = float(mechanism.p_true - mechanism.p_reverse)
            residues = ((plus - minus) / int(n[level]) / gap).reshape(-1, d)
            used = (came < due) & (coefficients != 0)
            missing = np.where(came > 0, (due - came) / np.maximum(came, 1), np.nan)  # for each report that came
            bias -= (coefficients * missing)[used] @ residues[used]
        return bias

    def present(self) -> int:
        """How many devices, of the level where they are fewest, have reported at every node so far: a lower bound.

        Of the devices that reported at a level's first node, at least c - l are present at a node at which c reports
        came and l devices have enrolled since, or were never heard to enrol.
        """
        fewest, start = [], 0
        for level, nodes in enumerate(self.stream.plan.tree.nodes):
            ended = slice(start, start + int(np.count_nonzero(self.due[start : start + nodes])))
            start += nodes
            if not self.stream.lengths[level] or ended.start == ended.stop:
                continue
            due, came = self.due[ended], self.came[ended]
            first, since = came[0], due - self.heard[ended][0]
            missing = np.maximum(first - (came - since), 0)
            fewest.append(max(0, int(first - missing.sum())))
        return min(fewest, default=0)


def _signs(counts: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    plus, minus = counts.reshape(2, -1).tolist()
    return tuple(plus), tuple(minus)


def change_protocol(
    stream: ChangeStream,
    *,
    first: int = 0,
    view: View | None = None,
    groups: int = 1,
    memory: Memory | None = None,
    answers: Answers | None = None,
) -> Protocol:
    """Release at every step the share of devices whose entry is 1, for each entry, from all reports of the horizon.

    The levels of the stream are parts: each is asked of an arc of the circle. Devices enrol once in a horizon, at any
    of its steps; the n of an estimate is how many have enrolled. Where more reports come than that, a batch was lost
    with the enrolments in it, and n is the number of these reports. A device that falls silent counts as unchanged:
    `Release.lost` says how many reports are missing, and the bias that this may cause. At the first step of a horizon
    everything begins anew. `Release.ended` is what a `Horizon` gathers to answer ranges of steps.

    Parameters
    ----------
    first
        The step of the collection that is step 1 of the protocol: horizons are counted in the collection's steps.
    groups
        How many equal groups devices are in, of which one is asked. Variances are those of people drawn at random,
        which a level has in any case: they hold for all devices.
    answers
        The object that gathers the counts. A caller who passes one can ask it for other sums, at any time.
    """
    memory = memory or Memory()
    answers = memory.keep("answers", answers or Answers(stream.plan))
    horizon = memory.keep("place", Horizon(stream, answers))
    while True:
        step = horizon.step
        _, at = stream.place(first + step - 1)
        if at == 1:
            horizon.clear()
        sketches = yield from ask_all(
            [
                Ask(mechanism=part, step=step, view=view or Whole(), cohort=arc, standing=True)
                for arc, part in stream.parts.items()
            ]
        )
        ended = horizon.ended(sketches, at)
        due, came = horizon.add(ended, at)
        lost = MissingReports(due, came, tuple(horizon.bias(at, at).tolist()), horizon.present())
        horizon.step += 1
        yield Release(
            step=step,
            estimates={MAIN: horizon.latest(at)},
            published=any(sketch.n > 0 for sketch in sketches),
            spent=float(at == 1),
            n=answers.population * groups,
            lost=lost,
            ended=ended,
        )
