"""The mechanism of a stream of changes: what a device stores and reports at each step, and how reports are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Bools, Ints, Reports, Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.base import ColumnSpec, Mechanism
from hubbub.mechanisms.stateful import Stateful, States, Transcript
from hubbub.mechanisms.ternary.exsub import ExSub, OnlineExSub, OnlineState
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.protocols.ask import CIRCLE, Arc, Pointer
from hubbub.protocols.views.changes import Changes
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.protocols.sao2.answers import Sao2

MOST_STEPS = 1 << 10
"""The longest horizon: `best_levels`, which runs when a collection is checked, takes longer with more steps."""


@dataclass(frozen=True, kw_only=True)
class ChangeStream(Stateful):
    """Reports of how a value changes over time (`Sao2` with ExSub), for devices that remember; of NetSub: `NetStream`.

    A device draws one level of the tree at random when it enrols, and reports at the end of each interval (node) of
    that level. A report holds the level, whether the device enrols with it, and for each entry a sign or nothing. It is
    sent even if it has no sign, so that the server knows how many reports are missing. All reports of a horizon
    together are one report of the level's ExSub. They spend epsilon once, when the device enrols. A horizon has `steps`
    steps; one follows the other from step 0 on. A device sends nothing for nodes that it missed, and reports what
    changed in them with the next node.

    The state of a device: its level, the last node that it reported, whether it has begun (and paid), its value as
    reported so far, how many changes it has reported, and the counters of ExSub.

    Parameters
    ----------
    epsilon
        What a device may spend over a horizon.
    dimension, steps, changes, one, fanout
        As of `Sao2`.
    sizes
        The m of each level's ExSub; chosen unless given.
    lengths
        How many of 2^32 devices report on each level; chosen unless given, within 0.4% of the least error.

    Example:
        >>> stream = ChangeStream(epsilon=3.0, dimension=2, steps=4, changes=2)
        >>> rng, n, sketch = Random(seed=1), 500, stream.empty()
        >>> states = stream.enroll(n, rng)
        >>> for step in range(4):
        ...     new = paid = np.full(n, step == 0)
        ...     states, reports, speaks = stream.step(states, step, np.tile([0, 1], (n, 1)), rng, paid)
        ...     sketch = sketch + stream.accumulate(stream.with_enrolment(states, reports, speaks, new)[0])
        >>> int(sketch.counts[:, 0].sum()), int(sketch.counts[0, 1]) == 4 * int(sketch.counts[0, 0])  # enrolled, came
        (500, True)

    References
    ----------
    S. Wang, Li, Xin et al., 2023, section 4.
    """

    rule: ClassVar[type[SignedSets]] = ExSub
    """The mechanism of which all reports of a horizon together are one report."""
    level_fields: ClassVar[dict[str, str]] = {"sizes": "m"}
    """The fields with a number for each level, and the field of the level's mechanism that each of them is."""
    enrols: ClassVar[bool] = True
    linkable = "never"  # what stays the same is the level, which many devices share
    state_types: ClassVar[dict[str, str]] = {
        "level": "u1",
        "node": "i4",
        "begun": "u1",
        "held": "i1",
        "used": "i4",
        "counters": "i4",
    }

    dimension: int
    steps: int
    changes: int
    one: bool = False
    fanout: int = 2
    sizes: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()

    def _resolve(self) -> None:
        self._integer("steps", 1, MOST_STEPS)
        self._integer("fanout", 2, 1 << 24)
        names = (*self.level_fields, "lengths")
        for name in names:
            self._set(name, _integers(name, getattr(self, name)))
        if not all(getattr(self, name) for name in names):
            from hubbub.protocols.changes.plan import best_levels  # not on devices, whose terms have all of them

            chosen, lengths = best_levels(self)
            for name, field in self.level_fields.items():
                self._set(name, getattr(self, name) or tuple(getattr(mechanism, field) for mechanism in chosen))
            self._set("lengths", self.lengths or lengths)
        for name in names:
            if len(getattr(self, name)) != len(self.views):
                raise InvalidValue(name, getattr(self, name), f"{len(self.views)} of them, one per level")
        if min(self.lengths) < 0 or sum(self.lengths) != CIRCLE:
            raise InvalidValue("lengths", self.lengths, f"numbers of at least 0 that sum to {CIRCLE}")

    @cached_property
    def views(self) -> tuple[Changes, ...]:
        """The view of each level; a node of a level spans `fanout` nodes of the level below."""
        spans = [1]
        while spans[-1] * self.fanout <= self.steps:
            spans.append(spans[-1] * self.fanout)
        return tuple(Changes(span, self.steps, self.dimension, self.changes, self.one) for span in spans)

    @cached_property
    def mechanisms(self) -> tuple[SignedSets, ...]:
        """The mechanism of each level."""
        return tuple(
            self.rule(
                epsilon=self.epsilon,
                dimension=view.entries,
                sparsity=view.sparsity,
                **{field: getattr(self, name)[level] for name, field in self.level_fields.items()},
            )
            for level, view in enumerate(self.views)
        )

    @cached_property
    def plan(self) -> Sao2:
        """The plan by which the server estimates from reports of all levels."""
        from hubbub.protocols.changes.plan import plan_of

        return plan_of(self)

    @property
    def whole_reports(self) -> tuple[tuple[float, Mechanism], ...]:
        pairs = zip(self.lengths, self.mechanisms, strict=True)
        return tuple((length / CIRCLE, mechanism) for length, mechanism in pairs if length)

    def ratio(self) -> Fraction:
        return max(mechanism.ratio() for mechanism in self.mechanisms)

    @cached_property
    def parts(self) -> dict[Arc, ChangeStream]:
        """For each level with devices, its arc of the circle, and the stream of devices that are all on that level."""
        pointer, parts = Pointer(), {}
        for level, length in enumerate(self.lengths):
            if length:
                only = tuple(CIRCLE if other == level else 0 for other in range(len(self.lengths)))
                parts[pointer.take(length)] = replace(self, lengths=only)
        return parts

    # -- devices ----------------------------------------------------------------------------------------------

    def place(self, step: int) -> tuple[int, int]:
        """The number of the horizon that a step is in, and the number of the step in it, from 1.

        Example:
            >>> ChangeStream(epsilon=1.0, dimension=2, steps=4, changes=2).place(9)
            (2, 2)
        """
        horizon, at = divmod(step, self.steps)
        return horizon, at + 1

    def state_key(self, step: int) -> str:
        return str(self.place(step)[0])

    def enroll(self, n: int, rng: Random) -> States:
        edges = np.cumsum(np.array(self.lengths, dtype=np.uint64))
        level = np.searchsorted(edges, rng.uint32(n).astype(np.uint64), side="right")
        return self.enroll_at(level.astype(np.uint8), rng)

    def enroll_at(self, level: NDArray[np.uint8], rng: Random) -> States:
        """The states of devices of given levels.

        Example:
            >>> stream = ChangeStream(epsilon=3.0, dimension=2, steps=4, changes=2)
            >>> stream.enroll_at(np.array([2, 0], dtype=np.uint8), Random(seed=1))["level"].tolist()
            [2, 0]
        """
        n, counters = len(level), np.empty((len(level), 5), dtype=np.int32)
        for number in np.unique(level).tolist():
            rows = level == number
            counters[rows] = self.mechanisms[number].counters(rng.uint64(int(rows.sum())), rng)
        columns: dict[str, Array] = {
            "level": level,
            "node": np.zeros(n, dtype=np.int32),
            "begun": np.zeros(n, dtype=np.uint8),
            "held": np.zeros((n, self.dimension), dtype=np.int8),
            "used": np.zeros(n, dtype=np.int32),
            "counters": counters,
        }
        return States(self.spec_id, columns)

    def price(self, states: States, step: int, values: Values) -> Ints:
        self._check_batch(states, values)
        return np.where(states["begun"] > 0, np.int64(0), np.int64(self.event().spent))

    def step(
        self, states: States, step: int, values: Values, rng: Random, paid: Bools
    ) -> tuple[States, Reports, Bools]:
        bits = self.views[0].bits(np.asarray(values))
        self._check_batch(states, bits)
        columns = {name: column.copy() for name, column in states.columns.items()}
        columns["begun"] |= paid
        nodes, within = np.divmod(self.place(step)[1], np.array([view.span for view in self.views], np.int32))
        node = nodes.take(columns["level"])
        missed = node - columns["node"] - 1  # below 0: this node was reported already, when the clock was ahead
        speaks = (columns["begun"] > 0) & (within == 0).take(columns["level"]) & (missed >= 0)
        rows, levels = np.flatnonzero(speaks), len(self.lengths)
        signs = np.empty((rows.size, self.dimension), dtype=np.int8)
        level = columns["level"].take(rows)
        group = missed.take(rows) * levels + level  # devices of one level that missed as many nodes
        for number in np.flatnonzero(np.bincount(group)).tolist():
            in_group = np.flatnonzero(group == number)
            devices = rows.take(in_group)
            values_now = bits.take(devices, axis=0)
            group_signs = self._signs(number % levels, number // levels, columns, devices, values_now, rng)
            _put_rows(signs, in_group, group_signs)
        columns["node"][rows] = node.take(rows)
        return States(self.spec_id, columns), self.make_reports(level, False, sign_codes(signs)), speaks

    def _signs(
        self, level: int, missed: int, columns: dict[str, Array], rows: Array, bits: Any, rng: Random
    ) -> NDArray[np.int8]:
        """The signs that devices of one level report of a node, after `missed` nodes without a report.

        Updates the devices' rows in `columns`.
        """
        online = OnlineExSub(self.mechanisms[level])
        state = OnlineState(online.mechanism.spec_id, columns["counters"].take(rows, axis=0))
        if missed:
            state = online.skip(state, missed * self.dimension, rng)
        before = columns["held"].take(rows, axis=0)
        held, columns["used"][rows] = self.views[level].follow(before, columns["used"].take(rows), bits)
        state, signs = online.step(state, held - before, rng)
        _put_rows(columns["held"], rows, held)
        _put_rows(columns["counters"], rows, state.counters)
        return signs

    def with_enrolment(self, states: States, reports: Reports, speaks: Bools, new: Bools) -> tuple[Reports, Bools]:
        new = new & (states["begun"] > 0)
        if not new.any():
            return reports, speaks
        signs = np.zeros((len(states), self.dimension), dtype=np.uint8)
        signs[speaks] = reports.private["sign"]
        sends = speaks | new
        return self.make_reports(states["level"][sends], new[sends], signs[sends]), sends

    def make_reports(self, level: Array, new: Bools | bool, signs: Array) -> Reports:
        """Reports of devices of these levels, with signs as `sign_codes` encodes them."""
        return self._reports({"level": level, "new": np.broadcast_to(new, level.shape), "sign": signs})

    def check_states(self, states: States) -> None:
        level, node, begun, held, used, counters = (states[name] for name in self.state_types)
        n = len(states)
        shapes = [array.shape for array in (level, node, begun, held, used, counters)]
        if shapes != [(n,), (n,), (n,), (n, self.dimension), (n,), (n, 5)] or (level >= len(self.lengths)).any():
            raise InvalidValue("states", shapes, f"{self.dimension} entries a device, levels below {len(self.lengths)}")
        nodes = np.array([view.nodes for view in self.views])[level]
        remaining = np.array([mechanism.positions for mechanism in self.mechanisms])[level] - node * self.dimension
        conditions = [
            (node >= 0) & (node <= nodes) & ((begun == 1) | (begun == 0) & (node == 0)),
            ((held == 0) | (held == 1)).all(axis=1) & ~(self.one & (held.sum(axis=1) > 1)),
            (used >= 0) & (used <= self.changes) & (used >= held.sum(axis=1)),
            (counters >= 0).all(axis=1) & (counters[:, 3:].sum(axis=1) == remaining),
            (counters[:, :2].sum(axis=1) <= counters[:, 3]) & (counters[:, 2] <= counters[:, 4]),
        ]
        if not np.all(conditions):
            raise InvalidValue("states", "impossible states", "a level, a value and counters that fit each other")

    # -- counting ---------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "level", "uint8", (), below=len(self.lengths)),
            ColumnSpec("public", "new", "uint8", (), below=2),
            ColumnSpec("private", "sign", "uint8", (self.dimension,), below=3),  # 2 means -1
        )

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        """A row for each level: how many devices enrolled, how many reports came, and the +1 and -1 of each entry."""
        return (len(self.lengths), 2 + 2 * self.dimension)

    def _fold(self, reports: Reports) -> Ints:
        levels, d = len(self.lengths), self.dimension
        level, sign = reports.public["level"].astype(np.int64), reports.private["sign"]
        new = np.bincount(level[reports.public["new"] > 0], minlength=levels)
        entry = level[:, None] * (3 * d) + np.arange(d) * 3 + sign
        signs = np.bincount(entry.ravel(), minlength=levels * d * 3).reshape(levels, d, 3)
        return np.column_stack([new, np.bincount(level, minlength=levels), signs[:, :, 1], signs[:, :, 2]])

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        """The mean change of each entry from one step to the next, from the reports of the lowest level.

        To estimate the value at a step takes all earlier reports of all levels: see `change_protocol`.
        """
        from hubbub.core.estimate import Estimate

        if candidates is not None:
            raise InvalidValue("candidates", candidates, "nothing: every entry is estimated")
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        came, mechanism = int(sketch.counts[0, 1]), self.mechanisms[0]
        if not came:
            raise InvalidValue("n", 0, "at least one report of the lowest level")
        signs = np.zeros(mechanism.sketch_shape, dtype=np.int64)
        signs[:, : self.dimension] = sketch.counts[0, 2:].reshape(2, -1)
        changes = mechanism.estimate(Sketch(mechanism.spec_id, came, signs))
        return Estimate(changes.value[: self.dimension], changes.variance[: self.dimension], came, kind="quantity")

    def spec(self) -> dict[str, Json]:
        return {**super().spec(), **{name: list(getattr(self, name)) for name in (*self.level_fields, "lengths")}}

    # -- for the contract suite -------------------------------------------------------------------------------

    def example_values(self, most: int) -> list[object]:
        if self.one:
            return list(range(min(most, self.dimension)))
        return [list(bits) for bits in islice(product((0, 1), repeat=self.dimension), most)]

    def publics(self) -> dict[int, Fraction]:
        return {level: Fraction(length, CIRCLE) for level, length in enumerate(self.lengths) if length}

    def public_of(self, states: States) -> Ints:
        return states["level"].astype(np.int64)

    def transcripts(self, public: int, values: Sequence[object]) -> dict[Transcript, Fraction] | None:
        from hubbub.protocols.changes.transcripts import change_transcripts  # devices do not load it

        return change_transcripts(self, public, values)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=2, steps=4, changes=2)
        yield cls(epsilon=1.5, dimension=3, steps=2, changes=3, one=True)
        yield cls(epsilon=2.0, dimension=1, steps=3, changes=2)


def _integers(name: str, numbers: object) -> tuple[int, ...]:
    if not isinstance(numbers, list | tuple) or any(type(number) is not int for number in numbers):
        raise InvalidValue(name, numbers, "a list of integers")
    return tuple(numbers)


def sign_codes(signs: NDArray[np.int8]) -> NDArray[np.uint8]:
    """The codes of signs in a report, 2 for -1: the same as `signs % 3`, without a division."""
    low = signs.view(np.uint8) & 3
    return low - (low >> 1)


def _put_rows(table: Array, rows: Array, values: Array) -> None:
    """Write some rows of a table. A row is copied as one opaque item, which is several times as fast as by entries."""
    row = np.dtype((np.void, table.itemsize * table.shape[1]))
    table.view(row)[rows, 0] = np.ascontiguousarray(values, dtype=table.dtype).view(row)[:, 0]
