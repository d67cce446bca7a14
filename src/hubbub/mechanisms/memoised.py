"""Memos: permanent answers that are randomised once and kept, for values that are reported again and again."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.event import Event
from hubbub.core.reports import Array, Bools, Ints, Reports
from hubbub.mechanisms.stateful import Stateful, States, Transcript
from hubbub.random.source import Random

_MOST_TRANSCRIPTS = 1 << 9
Chances = dict[bytes, Fraction]


@dataclass(frozen=True, kw_only=True)
class Memoised(Stateful):
    """A mechanism of two layers: a permanent answer, made once a value, and reports that are made from it.

    A report from a fresh memo has the same distribution as one of `randomize`: the server treats both alike. All
    reports from one memo together reveal at most `permanent_epsilon`, a single one `effective_epsilon`. *That* a value
    changed is hidden by the second layer alone.

    A device's state: what it drew as it enrolled (`public`), the keys of its memos (plus 1; 0 where there is none), the
    permanent answers, and the memo that it last reported from (`current`, from 1; 0 for none yet). A new memo must be
    paid for. A device that cannot pay reports from its last memo: silence would reveal that its value changed.
    """

    state_types: ClassVar[dict[str, str]] = {"public": "i8", "current": "i8", "keys": "i8", "answers": "u1"}

    @property
    @abstractmethod
    def permanent_epsilon(self) -> float:
        """What a permanent answer spends, exactly, rounded up."""

    @property
    @abstractmethod
    def most_memos(self) -> int:
        """The largest number of memos that a device can need."""

    @property
    @abstractmethod
    def answer_bytes(self) -> int:
        """How many bytes a permanent answer has."""

    @abstractmethod
    def memo_keys(self, values: Values, public: Ints) -> Ints:
        """The key of the memo that each value needs, given what its device drew when it enrolled."""

    @abstractmethod
    def _answers(self, keys: Ints, rng: Random) -> NDArray[np.uint8]:
        """Permanent answers, one row per key."""

    @abstractmethod
    def _from_answers(self, public: Ints, answers: NDArray[np.uint8], rng: Random) -> dict[str, Array]:
        """The columns of a report from each permanent answer."""

    @abstractmethod
    def _sound(self, public: Ints, keys: Ints, answers: NDArray[np.uint8]) -> bool:
        """Whether these keys and permanent answers are possible, given what the devices drew when they enrolled."""

    @abstractmethod
    def answer_chances(self, key: int) -> Chances | None:
        """Every permanent answer of a key, with its exact probability; None where there are too many."""

    @abstractmethod
    def report_chances(self, public: int, answer: bytes) -> Chances:
        """Every report from a permanent answer (its bare bytes), with its exact probability."""

    def permanent_event(self) -> Event:
        """What a new memo spends, for life."""
        return Event.of(type(self).__name__, self.spec_id, self.permanent_epsilon)

    # -- devices ----------------------------------------------------------------------------------------------

    def enroll(self, n: int, rng: Random) -> States:
        empty = np.zeros((n, 0), dtype=np.int64)
        columns = {"public": self._draw_public(n, rng), "current": np.zeros(n, dtype=np.int64), "keys": empty}
        return States(self.spec_id, {**columns, "answers": np.zeros((n, 0, self.answer_bytes), dtype=np.uint8)})

    def _draw_public(self, n: int, rng: Random) -> Ints:
        return np.zeros(n, dtype=np.int64)

    def price(self, states: States, step: int, values: Values) -> Ints:
        self._check_batch(states, values)
        missing = _place(states, self.memo_keys(values, states["public"])) == 0
        return np.where(missing, np.int64(self.permanent_event().spent), np.int64(0))

    def step(
        self, states: States, step: int, values: Values, rng: Random, paid: Bools
    ) -> tuple[States, Reports, Bools]:
        self._check_batch(states, values)
        keys = self.memo_keys(values, states["public"])
        place = _place(states, keys)
        fresh = np.flatnonzero((place == 0) & paid)
        if fresh.size:
            states = self._remember(states, fresh, keys[fresh], rng)
            place[fresh] = (states["keys"][fresh] > 0).sum(axis=1)  # the new memo is the last
        current = np.where(place > 0, place, states["current"])
        speaks = current > 0
        answers = states["answers"][speaks, current[speaks] - 1]
        reports = self._reports(self._from_answers(states["public"][speaks], answers, rng))
        return States(self.spec_id, {**states.columns, "current": current}), reports, speaks

    def _remember(self, states: States, rows: Array, keys: Ints, rng: Random) -> States:
        """The states with a new memo in the next free place of some rows."""
        free = (states["keys"][rows] > 0).sum(axis=1)
        more = max(0, int(free.max()) + 1 - states["keys"].shape[1])
        all_keys = np.pad(states["keys"], ((0, 0), (0, more)))
        answers = np.pad(states["answers"], ((0, 0), (0, more), (0, 0)))
        all_keys[rows, free] = keys + 1
        answers[rows, free] = self._answers(keys, rng)
        return States(self.spec_id, {**states.columns, "keys": all_keys, "answers": answers})

    def check_states(self, states: States) -> None:
        public, current, keys, answers = (states[name] for name in self.state_types)
        n = len(states)
        shaped = public.shape == current.shape == (n,) and keys.ndim == 2
        if not shaped or answers.shape != (*keys.shape, self.answer_bytes):
            raise InvalidValue("memos", answers.shape, f"permanent answers of {self.answer_bytes} bytes")
        count = (keys > 0).sum(axis=1)
        packed = (keys > 0) == (np.arange(keys.shape[1]) < count[:, None])
        ordered = np.sort(keys, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)
        if not packed.all() or twice.any() or (keys < 0).any() or (current < 0).any() or (current > count).any():
            raise InvalidValue("memos", keys.tolist(), "one memo per key, and one of them in use")
        row = np.nonzero(keys)[0]
        if not self._sound(public, keys[keys > 0] - 1, answers[keys > 0]) or len(row) > n * self.most_memos:
            raise InvalidValue("memos", keys.tolist(), "keys and permanent answers of this mechanism")

    # -- for the contract suite ------------------------------------------------------------------------------

    def publics(self) -> dict[int, Fraction]:
        return {0: Fraction(1)}

    def public_of(self, states: States) -> Ints:
        return np.asarray(states["public"])

    def transcripts(self, public: int, values: Sequence[object]) -> dict[Transcript, Fraction] | None:
        keys = self.memo_keys(values, np.full(len(values), public)).tolist()
        transcripts: dict[Transcript, Fraction] = {(): Fraction(1)}
        for key in dict.fromkeys(keys):
            answers = self.answer_chances(key)
            if answers is None:
                return None
            reports = {answer: self.report_chances(public, answer) for answer in answers}
            times, every = keys.count(key), list(next(iter(reports.values())))
            if len(transcripts) * len(every) ** times > _MOST_TRANSCRIPTS:
                return None
            joint = {
                sequence: sum(
                    chance * prod(reports[answer][report] for report in sequence) for answer, chance in answers.items()
                )
                for sequence in product(every, repeat=times)
            }
            transcripts = {
                (*before, *sequence): p * Fraction(q)
                for before, p in transcripts.items()
                for sequence, q in joint.items()
            }
        order = sorted(range(len(keys)), key=lambda step: (keys.index(keys[step]), step))
        places = [order.index(step) for step in range(len(keys))]
        return {tuple(grouped[place] for place in places): chance for grouped, chance in transcripts.items()}

    def unhidden(self, public: int, values: Sequence[object]) -> Hashable:
        """The steps at which a memo is used again: the second layer alone hides a change of value."""
        keys = self.memo_keys(values, np.full(len(values), public)).tolist()
        return tuple(keys.index(key) for key in keys)


def memos_in(state: bytes) -> int:
    """How many memos a device's stored state holds."""
    try:
        columns: dict[str, tuple[tuple[int, ...], bytes]] = msgspec.msgpack.decode(state)[3]
        return int(columns["keys"][0][0])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError):
        raise DecodeError("state", state, "the state of a device with memos") from None


def _place(states: States, keys: Ints) -> Ints:
    """The place of the memo of a key in each device's state, from 1; 0 where there is none."""
    same = states["keys"] == keys[:, None] + 1
    return np.where(same.any(axis=1), same.argmax(axis=1) + 1, 0) if same.shape[1] else np.zeros(len(keys), np.int64)
