"""Planted bugs in mechanisms that remember: each check of the suite finds the one that it is there for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hubbub import BasicRappor, Loloha, Random
from hubbub.checks import CHECKS, CheckFailed, checks_for
from hubbub.checks.transcripts import (
    check_state_batches,
    check_state_bytes,
    check_state_price,
    check_state_silence,
    check_transcript_epsilon,
    check_transcripts,
)
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.protocols.changes.stream import ChangeStream


class Forgetful(BasicRappor):
    """Makes its permanent answer anew for every report: memoisation without memory."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        fresh = super().enroll(len(states), rng)
        return super().step(fresh, step, values, rng, np.ones(len(states), dtype=bool))


class Bare(Loloha):
    """Sends its permanent answers as they are: fingerprints."""

    def _from_answers(self, public: Any, answers: Any, rng: Random) -> Any:
        return {"function": public, "bucket": answers[:, 0]}


class Cheap(BasicRappor):
    """Asks for half of what a memo spends."""

    def price(self, states: States, step: int, values: Any) -> Any:
        return super().price(states, step, values) // 2


class OnceOnly(BasicRappor):
    """Asks to be paid for the first memo only."""

    def price(self, states: States, step: int, values: Any) -> Any:
        return np.where(states["current"] > 0, 0, super().price(states, step, values))


class Generous(BasicRappor):
    """Makes a new memo whether or not it was paid for."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        return super().step(states, step, values, rng, np.ones(len(states), dtype=bool))


class Honest(Loloha):
    """Falls silent instead of going on from its last memo: that tells of a change."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        dear = self.price(states, step, values) > 0
        states, reports, speaks = super().step(states, step, values, rng, paid)
        loud = ~(dear & ~paid)
        return states, reports[loud[speaks]], speaks & loud


class First(BasicRappor):
    """Everyone in a batch says what the first device holds."""

    def memo_keys(self, values: Any, public: Any) -> Any:
        keys = super().memo_keys(values, public)
        return np.full_like(keys, keys[0])


class Shy(BasicRappor):
    """Says nothing where it holds the last value."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        states, reports, speaks = super().step(states, step, values, rng, paid)
        loud = self.encode(values) < self.size - 1
        return states, reports[loud[speaks]], speaks & loud


class Trusting(Loloha):
    """Takes any state for its own."""

    def check_states(self, states: States) -> None:
        return None


class Absolute(ChangeStream):
    """Tells its value again and again, and not how it changed."""

    def _signs(self, level: int, missed: int, columns: Any, rows: Any, bits: Any, rng: Random) -> Any:
        columns["held"][rows] = 0
        return super()._signs(level, missed, columns, rows, bits, rng)


class Eager(ChangeStream):
    """Begins before it has paid."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        return super().step(states, step, values, rng, np.ones(len(states), dtype=bool))


class Doubling(ChangeStream):
    """Draws its counters anew at every step, as if each were the first."""

    def _signs(self, level: int, missed: int, columns: Any, rows: Any, bits: Any, rng: Random) -> Any:
        columns["counters"][rows, :3] = self.mechanisms[level].counters(rng.uint64(len(rows)), rng)[:, :3]
        return super()._signs(level, missed, columns, rows, bits, rng)


@dataclass(frozen=True, kw_only=True)
class Lavish(BasicRappor):
    """States an epsilon of the permanent answer that its integers do not keep."""

    @property
    def permanent_epsilon(self) -> float:
        return super().permanent_epsilon * 0.9


RAPPOR = {"epsilon": 2.0, "domain": 2}
LOLOHA = {"epsilon": 2.0, "domain": 4, "buckets": 2}
STREAM = {"epsilon": 2.0, "dimension": 1, "steps": 3, "changes": 2}


PLANTED = [
    (check_transcripts, Forgetful(**RAPPOR)),
    (check_transcripts, Bare(**LOLOHA)),
    (check_transcripts, Absolute(**STREAM)),
    (check_transcripts, Doubling(**STREAM)),
    (check_transcript_epsilon, Cheap(**RAPPOR)),
    (check_transcript_epsilon, OnceOnly(**RAPPOR)),
    (check_transcript_epsilon, Lavish(**RAPPOR)),
    (check_state_price, Generous(**RAPPOR)),
    (check_state_price, Honest(**LOLOHA)),
    (check_state_price, Eager(**STREAM)),
    (check_state_batches, First(**RAPPOR)),
    (check_state_silence, Shy(**RAPPOR)),
    (check_state_bytes, Trusting(**LOLOHA)),
]


@pytest.mark.parametrize(
    ("check", "mechanism"), PLANTED, ids=lambda value: getattr(value, "__name__", type(value).__name__)
)
def test_a_planted_bug_is_found(check: Callable[[Stateful], None], mechanism: Stateful) -> None:
    with pytest.raises(CheckFailed):
        check(mechanism)


def test_every_check_of_states_catches_something() -> None:
    of_states = {check for check in CHECKS if check.__name__.startswith(("check_state_", "check_transcript"))}
    assert {check for check, _ in PLANTED} == of_states


def test_every_mechanism_that_remembers_is_checked() -> None:
    remembering = {name for name, kind in MECHANISMS.items() if issubclass(kind, Stateful)}
    assert remembering == {"BasicRappor", "Loloha", "ChangeStream"}
    for name in remembering:
        for mechanism in MECHANISMS[name].examples():
            names = {check.__name__ for check in checks_for(mechanism)}
            assert {"check_state_batches", "check_state_price", "check_state_silence", "check_state_bytes"} <= names
        first = next(iter(MECHANISMS[name].examples()))
        assert {check_transcript_epsilon, check_transcripts} <= set(checks_for(first))
