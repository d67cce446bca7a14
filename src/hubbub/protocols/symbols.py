"""What devices of a standing stream of changes send, step by step, and how it is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.base import ColumnSpec, Mechanism
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.protocols.cohort import CIRCLE
from hubbub.protocols.sao2.device import Following, OnlineDevice
from hubbub.protocols.sao2.plan import Sao2
from hubbub.protocols.sao2.portions import arc_lengths, level_portions, squares
from hubbub.protocols.sao2.reading import Pooled

__all__ = ["MOST_STEPS", "Standing", "Symbols"]

MOST_STEPS = 1 << 10
"""The longest horizon: the parts of the levels are worked out on every device."""

_ROUNDS = 6  # the parts are then within 0.4% of the least error


class Standing(NamedTuple):
    """What a device keeps over a horizon: its level, and what it has told. It stays on the device."""

    level: int
    following: Following

    def to_bytes(self) -> bytes:
        """The state as a device stores it."""
        return bytes([self.level]) + self.following.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Standing:
        """Read a state back; anything else is refused.

        Example:
            >>> Standing.from_bytes(b"")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: state: got b''; allowed: the bytes of a device's state
        """
        if not data:
            raise DecodeError("state", data, "the bytes of a device's state")
        return Standing(data[0], Following.from_bytes(data[1:]))


@dataclass(frozen=True, kw_only=True)
class Symbols(Mechanism):
    """A stream of changes (`Sao2` with ExSub) as devices tell it: one report at the end of each node of their level.

    A report holds the level, whether the device enrols with it, and a sign or nothing for each entry. It is sent even
    where nothing is said: so the server knows how many did not come. All reports of a horizon together are one report
    of the level's ExSub, and spend epsilon once; how a report comes about is the device's own affair (`OnlineDevice`),
    which is why there is no `randomize` here. Horizons of `steps` steps follow each other from step 0 on.

    Parameters
    ----------
    epsilon
        What a device may spend over a horizon.
    dimension, steps, changes, one, fanout
        As of `Sao2`.
    sizes
        The m of each level's ExSub; none chooses them.
    lengths
        Of 2^32 devices, how many tell of each level; none chooses them, within 0.4% of the least error.

    Example:
        >>> symbols = Symbols(epsilon=3.0, dimension=2, steps=4, changes=2)
        >>> rng, counted = Random(seed=1), symbols.empty()
        >>> state = symbols.enroll(rng)
        >>> for step in range(4):
        ...     state, said = symbols.step(state, step, [[0, 1]], rng)
        ...     counted = counted + symbols.accumulate(symbols.report(state.level, said, new=step == 0))
        >>> int(counted.counts[state.level, 0]), int(counted.counts[state.level, 1])  # who enrolled, and reports
        (1, 4)
    """

    dimension: int
    steps: int
    changes: int
    one: bool = False
    fanout: int = 2
    sizes: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()

    def _resolve(self) -> None:
        self._integer("steps", 1, MOST_STEPS)
        shape = {name: getattr(self, name) for name in ("epsilon", "dimension", "steps", "changes", "one", "fanout")}
        plain = Sao2(**shape, mechanism="ExSub", choice="uniform")
        self._set("sizes", _integers("sizes", self.sizes) or tuple(_m(one) for one in plain.mechanisms))
        self._set("lengths", _integers("lengths", self.lengths) or tuple(arc_lengths(_portions(plain))))
        if not len(self.sizes) == len(self.lengths) == plain.tree.levels:
            raise InvalidValue("lengths", self.lengths, f"{plain.tree.levels} of them, one a level")
        if min(self.lengths) < 0 or sum(self.lengths) != CIRCLE:
            raise InvalidValue("lengths", self.lengths, f"numbers of at least 0 that sum to {CIRCLE}")
        _ = self.plan

    @cached_property
    def plan(self) -> Sao2:
        """The tree, and who tells of which level of it, and how."""
        return _Given(
            epsilon=self.epsilon,
            dimension=self.dimension,
            steps=self.steps,
            changes=self.changes,
            one=self.one,
            fanout=self.fanout,
            mechanism="ExSub",
            sizes=self.sizes,
            lengths=self.lengths,
        )

    # -- devices ----------------------------------------------------------------------------------------------

    def place(self, step: int) -> tuple[int, int]:
        """Which horizon a step is in, and where in it, from 1.

        Example:
            >>> Symbols(epsilon=1.0, dimension=2, steps=4, changes=2).place(9)
            (2, 2)
        """
        horizon, at = divmod(step, self.steps)
        return horizon, at + 1

    def device(self, level: int) -> OnlineDevice:
        """How devices of a level go about it."""
        mechanism = self.plan.mechanisms[level]
        assert isinstance(mechanism, ExSub)
        return OnlineDevice(self.plan.views[level], mechanism)

    def enroll(self, rng: Random) -> Standing:
        """The state of a device that has said nothing: drawn without looking at any value."""
        edges = np.cumsum(np.array(self.lengths, dtype=np.uint64))
        level = int(np.searchsorted(edges, rng.uint32(1).astype(np.uint64), side="right")[0])
        return Standing(level, self.device(level).enroll(1, rng))

    def step(
        self, state: Standing, step: int, values: ArrayLike, rng: Random
    ) -> tuple[Standing, NDArray[np.int8] | None]:
        """The state after a step, and what the device says at it; None where no node of its level ends.

        Steps that it missed are passed in silence: what changed in them is told with the next.
        """
        if not 0 <= state.level < len(self.lengths):
            raise InvalidValue("level", state.level, f"a level below {len(self.lengths)}")
        following, said = self.device(state.level).step(state.following, self.place(step)[1], values, rng)
        return Standing(state.level, following), said

    def report(self, level: int, said: NDArray[np.int8] | None, *, new: bool) -> Reports:
        """What is sent of it; where nothing is to be said, the device only enrols."""
        rows = np.zeros((1, self.dimension), dtype=np.int8) if said is None else said
        n = len(rows)
        public = {"level": np.full(n, level, dtype=np.uint8), "new": np.full(n, new, dtype=np.uint8)}
        return Reports(self.spec_id, public=public, private={"sign": (rows % 3).astype(np.uint8)})

    # -- counting ---------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "level", "uint8", (), below=len(self.lengths)),
            ColumnSpec("public", "new", "uint8", (), below=2),
            ColumnSpec("private", "sign", "uint8", (self.dimension,), below=3),  # 2 stands for -1
        )

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        """A row a level: how many enrolled, how many reports came, and +1 and -1 for each entry."""
        return (len(self.lengths), 2 + 2 * self.dimension)

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        level, sign = reports.public["level"], reports.private["sign"]
        rows = np.concatenate(
            [reports.public["new"][:, None], np.ones((len(reports), 1), np.uint8), sign == 1, sign == 2], axis=1
        )
        counts = np.zeros(self.sketch_shape, dtype=np.int64)
        for one in np.unique(level).tolist():
            counts[one] = rows[level == one].sum(axis=0, dtype=np.int64)
        return counts

    def ratio(self) -> Fraction:
        return max(one.ratio() for one in self.plan.mechanisms)

    def spec(self) -> dict[str, Json]:
        return {**super().spec(), "sizes": list(self.sizes), "lengths": list(self.lengths)}

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=2, steps=4, changes=2)

    # -- what a report of a stream does not have --------------------------------------------------------------

    def encode(self, values: Any) -> NoReturn:
        raise _not_by_itself()

    def example_values(self, most: int) -> NoReturn:
        raise _not_by_itself()

    def _randomize(self, codes: Any, rng: Random) -> NoReturn:
        raise _not_by_itself()

    def prob(self, reports: Reports, values: Any) -> NoReturn:
        raise _not_by_itself()

    def log_prob(self, reports: Reports, values: Any) -> NoReturn:
        raise _not_by_itself()

    def _estimate(self, sketch: Sketch, candidates: Any = None) -> Estimate:
        raise _not_by_itself()


@dataclass(frozen=True, kw_only=True)
class _Given(Sao2):
    """A plan whose mechanisms and parts are given instead of chosen."""

    sizes: tuple[int, ...]
    lengths: tuple[int, ...]

    @cached_property
    def mechanisms(self) -> tuple[ExSub, ...]:
        return tuple(
            ExSub(epsilon=self.epsilon, dimension=view.entries, sparsity=view.sparsity, m=m)
            for view, m in zip(self.views, self.sizes, strict=True)
        )

    @cached_property
    def portions(self) -> NDArray[np.float64]:
        return np.array(self.lengths, dtype=np.float64) / CIRCLE


def _portions(plan: Sao2) -> NDArray[np.float64]:
    """The parts of the levels for the least error: from those of the plain reading, in a few turns."""
    one = np.asarray(plan.variances)
    found = level_portions(plan.tree, plan.variances, pooled=False)
    for _ in range(_ROUNDS if plan.tree.levels > 1 else 0):
        weighed = one / np.maximum(found, 1e-12)
        errors = squares(Pooled(plan.tree, tuple((weighed / weighed.min()).tolist())), plan.tree, "mean") * one
        wanted = np.sqrt(errors)
        found = np.sqrt(found * wanted / wanted.sum())
        found /= found.sum()
    return found


def _m(mechanism: Mechanism) -> int:
    assert isinstance(mechanism, ExSub)
    return mechanism.m


def _integers(name: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list | tuple) or any(isinstance(one, bool) or not isinstance(one, int) for one in given):
        raise InvalidValue(name, given, "a list of integers")
    return tuple(given)


def _not_by_itself() -> InvalidValue:
    return InvalidValue(
        "mechanism", "Symbols", "one whose reports stand by themselves: a stream's are said by a device"
    )
