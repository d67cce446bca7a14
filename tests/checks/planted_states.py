"""Mechanisms that remember, with a planted bug."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub import BasicRappor, Loloha, Random
from hubbub.mechanisms.stateful import States
from hubbub.protocols.changes.stream import ChangeStream
from tests.checks.planted import found_by

RAPPOR: dict[str, Any] = {"epsilon": 2.0, "domain": 2}
LOLOHA: dict[str, Any] = {"epsilon": 2.0, "domain": 4, "buckets": 2}
STREAM: dict[str, Any] = {"epsilon": 2.0, "dimension": 1, "steps": 3, "changes": 2}


@found_by("check_transcripts", **RAPPOR)
class Forgetful(BasicRappor):
    """Makes its permanent answer anew for every report: memoisation without memory."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        fresh = super().enroll(len(states), rng)
        return super().step(fresh, step, values, rng, np.ones(len(states), dtype=bool))


@found_by("check_transcripts", **LOLOHA)
class Bare(Loloha):
    """Sends its permanent answers as they are: fingerprints."""

    def _from_answers(self, public: Any, answers: Any, rng: Random) -> Any:
        return {"function": public, "bucket": answers[:, 0]}


@found_by("check_transcript_epsilon", **RAPPOR)
class Cheap(BasicRappor):
    """Asks for half of what a memo spends."""

    def price(self, states: States, step: int, values: Any) -> Any:
        return super().price(states, step, values) // 2


@found_by("check_transcript_epsilon", **RAPPOR)
class OnceOnly(BasicRappor):
    """Asks to be paid for the first memo only."""

    def price(self, states: States, step: int, values: Any) -> Any:
        return np.where(states["current"] > 0, 0, super().price(states, step, values))


@found_by("check_state_price", **RAPPOR)
class Generous(BasicRappor):
    """Makes a new memo whether or not it was paid for."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        return super().step(states, step, values, rng, np.ones(len(states), dtype=bool))


@found_by("check_state_price", **LOLOHA)
class Honest(Loloha):
    """Falls silent instead of going on from its last memo: that tells of a change."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        dear = self.price(states, step, values) > 0
        states, reports, speaks = super().step(states, step, values, rng, paid)
        loud = ~(dear & ~paid)
        return states, reports[loud[speaks]], speaks & loud


@found_by("check_state_batches", **RAPPOR)
class First(BasicRappor):
    """Everyone in a batch says what the first device holds."""

    def memo_keys(self, values: Any, public: Any) -> Any:
        keys = super().memo_keys(values, public)
        return np.full_like(keys, keys[0])


@found_by("check_state_silence", **RAPPOR)
class Shy(BasicRappor):
    """Says nothing where it holds the last value."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        states, reports, speaks = super().step(states, step, values, rng, paid)
        loud = self.encode(values) < self.size - 1
        return states, reports[loud[speaks]], speaks & loud


@found_by("check_state_bytes", **LOLOHA)
class Trusting(Loloha):
    """Takes any state for its own."""

    def check_states(self, states: States) -> None:
        return None


@found_by("check_transcripts", **STREAM)
class Absolute(ChangeStream):
    """Tells its value again and again, and not how it changed."""

    def _signs(self, level: int, missed: int, columns: Any, rows: Any, bits: Any, rng: Random) -> Any:
        columns["held"][rows] = 0
        return super()._signs(level, missed, columns, rows, bits, rng)


@found_by("check_state_price", **STREAM)
class Eager(ChangeStream):
    """Begins before it has paid."""

    def step(self, states: States, step: int, values: Any, rng: Random, paid: Any) -> Any:
        return super().step(states, step, values, rng, np.ones(len(states), dtype=bool))


@found_by("check_transcripts", **STREAM)
class Doubling(ChangeStream):
    """Draws its counters anew at every step, as if each were the first."""

    def _signs(self, level: int, missed: int, columns: Any, rows: Any, bits: Any, rng: Random) -> Any:
        columns["counters"][rows, :3] = self.mechanisms[level].counters(rng.uint64(len(rows)), rng)[:, :3]
        return super()._signs(level, missed, columns, rows, bits, rng)


@found_by("check_transcript_epsilon", **RAPPOR)
@dataclass(frozen=True, kw_only=True)
class Lavish(BasicRappor):
    """States an epsilon of the permanent answer that its integers do not keep."""

    @property
    def permanent_epsilon(self) -> float:
        return super().permanent_epsilon * 0.9
