"""Simulated devices that tell of changes: many at once, each with its level and its state, in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.protocols.ask import Ask
from hubbub.protocols.sao2.device import Following
from hubbub.protocols.symbols import Symbols

__all__ = ["Streams"]

Pay = Callable[[NDArray[np.int64]], NDArray[np.bool_]]

PARTS = 4
"""In how many parts, one after the other, devices answer a step."""


class Streams:
    """Devices that follow one question of changes.

    Parameters
    ----------
    n
        How many there are.
    rng
        Their randomness.

    Example:
        >>> ask = Ask(mechanism=Symbols(epsilon=1.0, dimension=2, steps=4, changes=2), step=8, standing=True)
        >>> streams, pay = Streams(40, Random(seed=1)), lambda who: np.ones(who.size, dtype=bool)
        >>> made = streams.turn(ask, 0.6, np.zeros((40, 2)), pay)
        >>> sum(len(reports) for reports in made), streams.turn(ask, 0.6, np.zeros((40, 2)), pay)
        (20, [])
    """

    def __init__(self, n: int, rng: Random) -> None:
        self._rng = rng
        self._part = rng.below(PARTS, n) if n % PARTS else np.arange(n) % PARTS
        self._last = np.full(PARTS, -1)
        self._horizon = np.full(PARTS, -1)
        self._states: dict[tuple[int, int], tuple[NDArray[np.int64], Following]] = {}

    def turn(self, ask: Ask, elapsed: float, values: Any, pay: Pay) -> list[Reports]:
        """The reports of the parts whose time has come, once so much of the step's time for answering is over."""
        symbols = ask.mechanism
        assert isinstance(symbols, Symbols)
        made = []
        for part in range(PARTS):
            if self._last[part] < ask.step and (part + 0.5) / PARTS <= elapsed:
                self._last[part] = ask.step
                made += self._answer(symbols, ask, part, values, pay)
        return made

    def _answer(self, symbols: Symbols, ask: Ask, part: int, values: Any, pay: Pay) -> list[Reports]:
        horizon, at = symbols.place(ask.step)
        new = self._horizon[part] != horizon
        if new:
            who = np.flatnonzero(self._part == part)
            paid = who[pay(who)]
            if not paid.size:  # not yet: the window still holds what the last horizon cost
                return []
            self._horizon[part] = horizon
            self._enroll(symbols, part, paid)
        made = []
        for level in range(len(symbols.lengths)):
            who, state = self._states[part, level]
            state, said = symbols.device(level).step(state, at, np.asarray(ask.view(values[who])), self._rng)
            self._states[part, level] = who, state
            if who.size and (new or said is not None):
                rows = np.zeros((who.size, symbols.dimension), dtype=np.int8) if said is None else said
                made.append(symbols.report(level, rows, new=bool(new)))
        return made

    def _enroll(self, symbols: Symbols, part: int, who: NDArray[np.int64]) -> None:
        edges = np.cumsum(np.array(symbols.lengths, dtype=np.int64))
        level = np.searchsorted(edges, self._rng.uint32(who.size).astype(np.int64), side="right")
        for one in range(edges.size):
            own = who[level == one]
            self._states[part, one] = own, symbols.device(one).enroll(own.size, self._rng)
