"""Simulated devices of a live demonstration: many to a process, each with its place on the circle and its account."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.authoring import open_collection
from hubbub.client.admit import admit
from hubbub.client.documents import Published
from hubbub.client.transport import HttpTransport, Transport, Unreachable
from hubbub.collection import Collection, open_sealed
from hubbub.collection.wire import BATCH_TYPE, AnswerName, encode_batch
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.demo.changes import Owners, Streams
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.budget import Budget
from hubbub.protocols.ask import Ask
from hubbub.protocols.change_stream import ChangeStream
from hubbub.protocols.cohort import place_on_circle

__all__ = ["Devices", "People", "Purses", "main"]

PAUSE = 0.2
"""Seconds between one look at the asks and the next."""

SPREAD = 0.6
"""Over which part of an ask's time devices answer it."""


class People(NamedTuple):
    """What the owners of some devices do: in every step each holds one value, or none.

    Parameters
    ----------
    weights
        How common each value is: a row a step, the first again after the last. Where a row is 0, nobody holds any.
    silent
        The part of them who hold none.
    n, seed, group
        How many people, and what tells these from others.

    Example:
        >>> people = People([[3.0, 1.0], [0.0, 1.0]], silent=0.0, n=5, seed=1, group=0)
        >>> people.values(1).tolist(), people.values(6).size
        ([1, 1, 1, 1, 1], 5)
    """

    weights: Sequence[Sequence[float]]
    silent: float
    n: int
    seed: int
    group: int

    @property
    def symbols(self) -> int:
        """How many codes there are, the last of which is "(none)"."""
        return len(self.weights[0]) + 1

    def values(self, step: int) -> NDArray[np.int64]:
        """The code of each person in a step."""
        rng = Random(seed=self.seed).child("values", self.group, step)
        weights = np.array(self.weights[step % len(self.weights)], dtype=float)
        uniform = (rng.uint32(self.n) + 0.5) / 2**32
        none = (rng.uint32(self.n) + 0.5) / 2**32 < self.silent
        if not weights.any():
            return np.full(self.n, weights.size)
        edges = np.cumsum(weights / weights.sum())
        codes = np.searchsorted(edges, uniform * edges[-1], side="right").clip(0, weights.size - 1)
        return np.where(none, weights.size, codes).astype(np.int64)


class Purses:
    """What each of n devices has spent, and may: the rules of a ledger, for all of them at once and in memory.

    Example:
        >>> purses = Purses(2, Budget.of(event=1.0, window=(1.5, 2)))
        >>> purses.pay(0, 10**12, np.array([True, False])).tolist()
        [True, False]
        >>> purses.pay(1, 10**12, np.array([True, True])).tolist()
        [False, True]
        >>> purses.pay(2, 10**12, np.array([True, True])).tolist()
        [True, False]
    """

    def __init__(self, n: int, budget: Budget) -> None:
        self._budget = budget
        self._steps = 1 if budget.window is None else budget.window.steps
        self._spent = np.zeros((self._steps, n), dtype=np.int64)
        self._ever = np.zeros(n, dtype=np.int64)
        self._step = -1

    def pay(self, step: int, units: int, who: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Charge those who can pay; which they are."""
        if step < self._step:
            return np.zeros_like(who)
        for passed in range(max(self._step + 1, step - self._steps + 1), step + 1):
            self._spent[passed % self._steps] = 0
        self._step = step
        now, budget = self._spent[step % self._steps], self._budget
        able = who.copy()
        if budget.event is not None:
            able &= now + units <= budget.event
        if budget.window is not None:
            able &= self._spent.sum(axis=0) + units <= budget.window.limit
        if budget.user is not None:
            able &= self._ever + units <= budget.user
        now[able] += units
        self._ever[able] += units
        return able


class Devices:
    """Devices that fetch signed asks, and answer each once: those on its arc whose account allows it.

    Parameters
    ----------
    transport, public_key, name
        Where the collection is, who signs it, and what it is called.
    people
        Whose devices they are.
    """

    def __init__(self, transport: Transport, public_key: bytes, name: str, people: People | Owners) -> None:
        self._transport, self._keys, self._people = transport, (public_key,), people
        self._root = f"/v1/collections/{name}"
        self.collection: Collection = open_collection(self._fetch(self._root), self._keys)
        keys, place = Random(), self.collection.name
        self._places = np.array([place_on_circle(keys.bytes(16), place) for _ in range(people.n)], dtype=np.int64)
        self._offsets = (keys.uint32(people.n) + 0.5) / 2**32
        self._purses = Purses(people.n, self.collection.budget)
        self._rng = Random(seed=people.seed).child("devices", people.group)
        self._done: dict[str, NDArray[np.bool_]] = {}
        self._streams: dict[str, Streams] = {}
        self._waiting: list[bytes] = []

    def run(self, stop: threading.Event) -> None:
        """Answer until told to stop. A server that cannot be reached is tried again."""
        while not stop.wait(PAUSE):
            try:
                self.turn(time.time())
                self.send()
            except Unreachable:
                continue

    def turn(self, now: float) -> None:
        """Answer what is asked now, as far as the time of each device has come."""
        asks = open_sealed(self._fetch(f"{self._root}/asks"), self._keys)
        step = int(asks["step"])
        version = (asks["collection"], asks["version"])
        if version != (self.collection.name, self.collection.version) or step != self.collection.step_at(now):
            return
        for one in asks["asks"]:
            published = Published(one["question"], Ask.from_spec(one["ask"]), one["round"])
            if published.ask.step == step:
                self._answer(published, step, now)

    def send(self) -> None:
        """Send what waits; what is not acknowledged stays, and is sent again as it is."""
        while self._waiting:
            response = self._transport.request("POST", "/v1/reports", {"Content-Type": BATCH_TYPE}, self._waiting[0])
            if response.status >= 500:
                raise Unreachable(f"status {response.status}")
            self._waiting.pop(0)

    def _answer(self, published: Published, step: int, now: float) -> None:
        ask, people = published.ask, self._people
        opens, closes = self.collection.round_times(published.question, 0, step, published.round)
        if isinstance(ask.mechanism, ChangeStream):
            self._follow(published, (now - opens) / (closes - opens) / SPREAD)
            return
        done = self._done.get(ask.ask_id)
        if done is None:
            admit(self.collection, published, step)
            done = ~ask.cohort.holds(self._places)
            self._done = dict([*self._done.items(), (ask.ask_id, done)][-8:])
        due = ~done & (opens + SPREAD * self._offsets * (closes - opens) <= now)
        if not due.any():
            return
        done |= due
        paid = np.flatnonzero(self._purses.pay(step, ask.event().spent, due))
        if paid.size:
            assert isinstance(ask.mechanism, Mechanism)
            reports = ask.mechanism.randomize(ask.view(people.values(step)[paid]), self._rng)
            self._wait(published, reports)

    def _follow(self, published: Published, elapsed: float) -> None:
        """Go on with a stream of changes."""
        ask, people = published.ask, self._people
        admit(self.collection, published, ask.step)
        streams = self._streams.setdefault(published.question, Streams(people.n, self._rng))
        for reports in streams.turn(ask, elapsed, people.values(ask.step), self._purses):
            self._wait(published, reports)

    def _wait(self, published: Published, reports: Reports) -> None:
        name = AnswerName(published.question, run=0, step=published.ask.step, round=published.round, part=0)
        ids = self._rng.bytes(16 * len(reports))
        self._waiting.append(encode_batch(self.collection.name, self.collection.version, name, ids, reports))

    def _fetch(self, path: str) -> Any:
        response = self._transport.request("GET", path, {"Accept": "application/json"})
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return json.loads(response.body)


def main() -> int:
    """Read one line of settings, and answer until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    stop = threading.Event()

    def stop_with_input() -> None:
        while os.read(0, 1024):  # not sys.stdin: its lock, held here, would spoil the exit
            pass
        stop.set()

    threading.Thread(target=stop_with_input, daemon=True).start()
    given = settings["people"]
    people = Owners(**given) if "histories" in given else People(**given)
    transport = HttpTransport(settings["address"])
    Devices(transport, bytes.fromhex(settings["public_key"]), settings["name"], people).run(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
