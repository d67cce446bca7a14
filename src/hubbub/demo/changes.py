"""Simulated devices that tell of changes: many at once, each with its level and its state, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.protocols.ask import Ask

if TYPE_CHECKING:
    from hubbub.demo.devices import Purses

__all__ = ["Owners", "Streams"]

PARTS = 4
"""In how many parts, one after the other, devices answer a step."""


class Owners(NamedTuple):
    """What the owners of some devices hold, step by step: the history of one of those in a table, drawn for each.

    Parameters
    ----------
    histories
        A row a step, the first again after the last; a column a person: a code, or -1 for nothing yet.
    size
        How many codes there are.
    n, seed, group
        How many people, and what tells these from others.

    Example:
        >>> owners = Owners([[-1, 0], [1, 0]], size=2, n=6, seed=1, group=0)
        >>> sorted(set(owners.values(0).tolist())), sorted(set(owners.values(3).tolist()))
        ([0, 2], [0, 1])
    """

    histories: Any
    size: int
    n: int
    seed: int
    group: int

    @property
    def symbols(self) -> int:
        """How many codes there are, the last of which is "(none)"."""
        return self.size + 1

    def values(self, step: int) -> NDArray[np.int64]:
        """The code of each person in a step."""
        row = np.asarray(self.histories[step % len(self.histories)], dtype=np.int64)
        held = row[Random(seed=self.seed).child("owners", self.group).below(row.size, self.n)]
        return np.where(held < 0, self.size, held)


class Streams:
    """Devices that follow one question of changes.

    Parameters
    ----------
    n
        How many there are.
    rng
        Their randomness.

    Example:
        >>> from hubbub.privacy.budget import Budget
        >>> from hubbub.demo.devices import Purses
        >>> from hubbub.protocols.change_stream import ChangeStream
        >>> ask = Ask(mechanism=ChangeStream(epsilon=1.0, dimension=2, steps=4, changes=2), step=8, standing=True)
        >>> streams, purses = Streams(40, Random(seed=1)), Purses(40, Budget.of(user=1.0))
        >>> made = streams.turn(ask, 0.6, np.zeros((40, 2)), purses)
        >>> sum(len(reports) for reports in made), streams.turn(ask, 0.6, np.zeros((40, 2)), purses)
        (20, [])
    """

    def __init__(self, n: int, rng: Random) -> None:
        self._rng = rng
        self._part = rng.below(PARTS, n) if n % PARTS else np.arange(n) % PARTS
        self._last = np.full(PARTS, -1)
        self._states: list[tuple[str, States] | None] = [None] * PARTS

    def turn(self, ask: Ask, elapsed: float, values: Any, purses: Purses) -> list[Reports]:
        """The reports of the parts whose time has come, once so much of the step's time for answering is over."""
        made = []
        for part in range(PARTS):
            if self._last[part] < ask.step and (part + 0.5) / PARTS <= elapsed:
                self._last[part] = ask.step
                made.append(self._answer(ask, part, values, purses))
        return [reports for reports in made if len(reports)]

    def _answer(self, ask: Ask, part: int, values: Any, purses: Purses) -> Reports:
        stream, who = ask.mechanism, np.flatnonzero(self._part == part)
        assert isinstance(stream, Stateful)
        key, kept = stream.state_key(ask.step), self._states[part]
        states = kept[1] if kept is not None and kept[0] == key else stream.enroll(who.size, self._rng)
        seen = np.asarray(ask.view(values[who]))
        asked = np.zeros(self._part.size, dtype=bool)
        asked[who] = stream.price(states, ask.step, seen) > 0  # the window may still hold what the last horizon cost
        new = (asked & purses.pay(ask.step, ask.event().spent, asked))[who]
        states, reports, speaks = stream.step(states, ask.step, seen, self._rng, new)
        self._states[part] = key, states
        return stream.with_enrolment(states, reports, speaks, new)[0]
