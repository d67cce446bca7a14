"""Simulated devices whose values change rarely, and the driver that runs SaO2 and its rivals against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.core.ternary import Ternary
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.privacy.ledger import BudgetExceeded
from hubbub.protocols.ask import Ask
from hubbub.protocols.changes import Changes
from hubbub.protocols.cohort import CIRCLE
from hubbub.protocols.driver import converse
from hubbub.protocols.sao2 import Answers, Following, OnlineDevice, Sao2, Split, sao2_stream
from hubbub.simulate.devices import Stream, sorted_places

__all__ = ["ChangingPopulation", "ChangingRun", "expected_means", "run_changing", "true_means"]

CHUNK = 1 << 24  # entries looked at together
Floats = NDArray[np.float64]


class ChangingPopulation:
    """Devices with places on the circle, each of which follows its own value and answers the asks of its level.

    Devices with NetSub or ExSub take one step a timestamp. The other mechanisms have no such client here: what their
    devices will say is drawn at the first ask from the whole stream, and of those that can speak as entries come, each
    part is let out when its node has ended, which is the same in distribution. Every device's account is charged as it
    enrols.

    Parameters
    ----------
    plan
        What is asked: a `Sao2` or a `Split`.
    stream
        What they hold.
    rng
        Their randomness, and who of them has which place.
    joins, leaves
        For each device the first step that it takes part in, and the last; only with NetSub or ExSub.

    Example:
        >>> from hubbub.simulate.devices import ArrayStream
        >>> plan = Sao2(epsilon=1.0, dimension=1, steps=2, changes=1)
        >>> people = ChangingPopulation(plan, ArrayStream(np.ones((2, 100), dtype=int)), Random(seed=1))
        >>> sum(people.answer(ask).n for step in (1, 2) for ask in plan.asks(step)), int(people.spent.max())
        (100, 1000000000000)
    """

    def __init__(
        self,
        plan: Sao2 | Split,
        stream: Stream,
        rng: Random,
        *,
        joins: NDArray[np.int64] | None = None,
        leaves: NDArray[np.int64] | None = None,
    ) -> None:
        self.plan, self.stream, self.rng = plan, stream, rng
        self.joins = np.ones(stream.n, dtype=np.int64) if joins is None else joins
        self.leaves = np.full(stream.n, plan.steps) if leaves is None else leaves
        self.moving = joins is not None or leaves is not None
        for name, given in (("joins", self.joins), ("leaves", self.leaves)):
            if given.shape != (stream.n,) or given.dtype.kind != "i":
                raise InvalidValue(name, given.shape, f"a step for each of the {stream.n} devices")
        if stream.steps is not None and stream.steps < plan.steps:
            raise InvalidValue("steps", plan.steps, f"at most the {stream.steps} steps of the stream")
        self.spent: NDArray[np.int64] = np.zeros(stream.n, dtype=np.int64)
        self.said = 0
        """How many signs were said."""
        import_module("hubbub.kernels.selection")  # many small batches: the compiled client is worth waking up for
        self._places, self._order = sorted_places(stream.n, rng), rng.permutation(stream.n)
        self._row: tuple[int, NDArray[Any]] = (0, np.empty(0))
        self._states: dict[tuple[int, int], Following] = {}
        self._drawn: dict[int, Sketch] = {}

    def answer(self, ask: Ask) -> Sketch:
        """What the devices of the arc say; as n, how many enrolled."""
        view, mechanism = ask.view, ask.mechanism
        assert isinstance(view, Changes)
        assert isinstance(mechanism, Mechanism)
        total = mechanism.empty()
        for low, high in ask.cohort.pieces():
            first, last = (self._before(edge) for edge in (low, high))
            if isinstance(self.plan, Split):
                total = total + self._split(ask, view, first, last)
            elif isinstance(mechanism, SignedSets):
                device = OnlineDevice(view, mechanism)
                for start, stop in _chunks(first, last, view.entries):
                    total = total + self._online(ask, device, start, stop)
            else:
                total = total + self._revealed(ask, view, first, last)
        self.said += int(total.counts.sum())
        return total

    def _online(self, ask: Ask, device: OnlineDevice, start: int, stop: int) -> Sketch:
        step, view, who = ask.step, device.view, self._order[start:stop]
        key = (view.span, start)
        state = self._states.get(key) or device.enroll(stop - start, self.rng)
        before = state.node * view.span
        new = (self.joins[who] > before) & (self.joins[who] <= step) if before else self.joins[who] <= step
        self._charge(ask, who, new)
        there = (self.joins[who] <= step) & (self.leaves[who] >= step)
        values = self._values(view, step, start, stop)
        # One that is away has no news, and says nothing.
        values = np.where(there, values, -1) if view.one else np.where(there[:, None], values, state.held)
        self._states[key], said = device.step(state, step, values, self.rng)
        assert said is not None
        heard = device.client.heard(np.where(there[:, None], said, 0), (step // view.span - 1) * view.dimension)
        return device.client.enrolled(int(new.sum())) + heard

    def _split(self, ask: Ask, view: Changes, first: int, last: int) -> Sketch:
        total = ask.mechanism.empty()
        for start, stop in _chunks(first, last, view.entries):
            who = self._order[start:stop]
            there = (self.joins[who] <= ask.step) & (self.leaves[who] >= ask.step)
            self._charge(ask, who, there)
            seen = view(self._values(view, ask.step, start, stop)[there][:, None])
            total = total + _counted(ask, seen, self.rng)
        return total

    def _revealed(self, ask: Ask, view: Changes, first: int, last: int) -> Sketch:
        """Of what the devices say in all, the part that may be said now."""
        if self.moving:
            raise InvalidValue(
                "joins", "devices that join or leave", "a mechanism with a client that goes step by step"
            )
        fresh = view.span not in self._drawn
        if fresh:
            total = ask.mechanism.empty()
            for start, stop in _chunks(first, last, view.entries):
                self._charge(ask, self._order[start:stop], np.ones(stop - start, dtype=bool))
                seen = Ternary.dense(view.residues(self._at_nodes(view, start, stop)))
                total = total + _counted(ask, seen, self.rng)
            self._drawn[view.span] = total
        whole = self._drawn[view.span]
        if not self.plan.online:
            return whole
        counts = np.zeros_like(whole.counts)
        now = slice((ask.step // view.span - 1) * view.dimension, ask.step // view.span * view.dimension)
        counts[:, now] = whole.counts[:, now]
        return Sketch(whole.spec_id, whole.n if fresh else 0, counts)

    def _at_nodes(self, view: Changes, start: int, stop: int) -> NDArray[Any]:
        steps = range(view.span, view.nodes * view.span + 1, view.span)
        return np.stack([self._values(view, step, start, stop) for step in steps], axis=1)

    def _values(self, view: Changes, step: int, start: int, stop: int) -> NDArray[Any]:
        if self._row[0] != step:
            self._row = step, self.stream.values(step, 0, self.stream.n)
        values = self._row[1][self._order[start:stop]]
        return values if view.one else _vectors(values, view.dimension)

    def _charge(self, ask: Ask, who: NDArray[np.int64], new: NDArray[np.bool_]) -> None:
        paid, limit = ask.event().spent, units_of(self.plan.epsilon)
        most = int(self.spent[who[new]].max(initial=0))
        if most + paid > limit:
            raise BudgetExceeded("user", most, paid, limit)
        self.spent[who[new]] += paid

    def _before(self, edge: int) -> int:
        return self.stream.n if edge == CIRCLE else int(np.searchsorted(self._places, np.uint32(edge)))


@dataclass(frozen=True)
class ChangingRun:
    """What was released of every step, beside the truth.

    Parameters
    ----------
    values, variances
        The releases, a row a step; of a plan that answers at the end, what it says then.
    truth
        The means of the values as they were, not as they were told.
    answers
        What was heard: it answers sums over steps too.
    said
        How many signs the devices said.
    spent
        What the device that spent most has spent, in units of 1e-12 epsilon.

    Example:
        >>> run = ChangingRun(np.zeros((2, 1)), np.ones((2, 1)), np.full((2, 1), 0.5), None, 0, 0)
        >>> run.tve, run.mae, run.mse, run.coverage()
        (1.0, 0.5, 0.25, 1.0)
    """

    values: Floats
    variances: Floats
    truth: Floats
    answers: Answers
    said: int
    spent: int

    @property
    def tve(self) -> float:
        """The total variation error: the sum of absolute errors over steps and entries (section 7.1)."""
        return float(np.abs(self.values - self.truth).sum())

    @property
    def mae(self) -> float:
        """The maximum absolute error."""
        return float(np.abs(self.values - self.truth).max())

    @property
    def mse(self) -> float:
        """The mean squared error over steps and entries."""
        return float(np.mean((self.values - self.truth) ** 2))

    def coverage(self, level: float = 0.95) -> float:
        """How often the intervals hold the truth."""
        from statistics import NormalDist

        reach = NormalDist().inv_cdf(0.5 + level / 2) * np.sqrt(self.variances)
        return float(np.mean(np.abs(self.values - self.truth) <= reach))

    def range_errors(self, ranges: list[tuple[int, int]]) -> Floats:
        """The errors of sums over steps, a row for each (first, last)."""
        before = np.concatenate([np.zeros((1, self.truth.shape[1])), np.cumsum(self.truth, axis=0)])
        return np.array(
            [self.answers.range(first, last).value - (before[last] - before[first - 1]) for first, last in ranges]
        )


def run_changing(
    plan: Sao2 | Split,
    stream: Stream,
    rng: Random,
    *,
    joins: NDArray[np.int64] | None = None,
    leaves: NDArray[np.int64] | None = None,
) -> ChangingRun:
    """Run a plan over a stream.

    Example:
        >>> from hubbub.simulate.devices import ArrayStream
        >>> stream = ArrayStream(np.tile([[0, 0], [0, 1], [1, 1], [1, 1]], 5_000), domain=2)
        >>> run = run_changing(Sao2(epsilon=4.0, dimension=1, steps=4, changes=1), stream, Random(seed=1))
        >>> (run.values.round(1) + 0.0).ravel().tolist()
        [0.0, 0.5, 1.0, 1.0]
    """
    people = ChangingPopulation(plan, stream, rng, joins=joins, leaves=leaves)
    answers = Answers(plan)
    told = [
        release.estimate for release in converse(sao2_stream(plan, answers=answers), people.answer, steps=plan.steps)
    ]
    if not plan.online:
        told = [answers.mean(step) for step in range(1, plan.steps + 1)]
    return ChangingRun(
        values=np.array([estimate.value for estimate in told]),
        variances=np.array([estimate.variance for estimate in told]),
        truth=true_means(stream, plan.steps, plan.dimension),
        answers=answers,
        said=people.said,
        spent=int(people.spent.max()),
    )


def true_means(stream: Stream, steps: int, dimension: int) -> Floats:
    """The share of the devices whose entry is 1, a row a step.

    Example:
        >>> from hubbub.simulate.devices import ArrayStream
        >>> true_means(ArrayStream(np.array([[0, 1, 1, -1]])), 1, 3).tolist()
        [[0.25, 0.5, 0.0]]
    """
    found = np.zeros((steps, dimension))
    for step in range(1, steps + 1):
        for start, stop in _chunks(0, stream.n, dimension):
            found[step - 1] += _vectors(stream.values(step, start, stop), dimension).sum(axis=0)
    return found / stream.n


def expected_means(plan: Sao2, stream: Stream) -> Floats:
    """What the releases come to on average: the truth, but for what devices with too many changes do not tell.

    Example:
        >>> from hubbub.simulate.devices import ArrayStream
        >>> stream = ArrayStream(np.array([[1], [0], [1], [0]]), domain=2)  # on, off, on, off
        >>> plan = Sao2(epsilon=1.0, dimension=1, steps=4, changes=2, pooled=False)
        >>> expected_means(plan, stream).ravel().tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    people = ChangingPopulation(plan, stream, Random(seed=0))
    n, d = np.round(plan.portions * stream.n).astype(np.int64), plan.dimension
    eye = np.eye(plan.steps)
    found = np.zeros((plan.steps, d))
    now = np.arange(1, plan.steps + 1) if plan.online else np.full(plan.steps, plan.steps)
    for view, coefficients in zip(plan.views, plan.reading(n).coefficients(eye, now), strict=True):
        told = np.zeros(view.entries)
        for start, stop in _chunks(0, stream.n, view.entries):
            told += view.residues(people._at_nodes(view, start, stop)).sum(axis=0, dtype=np.int64)
        found += coefficients @ (told / stream.n).reshape(view.nodes, d)
    return found


def _counted(ask: Ask, seen: Ternary, rng: Random) -> Sketch:
    assert isinstance(ask.mechanism, Mechanism)
    return ask.mechanism.accumulate(ask.mechanism.randomize(seen, rng))


def _vectors(values: NDArray[Any], dimension: int) -> NDArray[Any]:
    """Vectors as they are; codes of categories, of which one outside stands for none, become vectors."""
    if values.ndim == 2:
        return values
    return values[:, None] if dimension == 1 else (values[:, None] == np.arange(dimension)).astype(np.int8)


def _chunks(first: int, last: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, CHUNK // width)
    for start in range(first, last, step):
        yield start, min(start + step, last)
