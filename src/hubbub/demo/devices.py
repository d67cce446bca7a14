"""The devices of a live demonstration: a fleet in a process, which answers a real collector over HTTP."""

import json
import sys
import threading
import time
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from hubbub.authoring import open_collection
from hubbub.client.answer import admit
from hubbub.client.documents import PublishedAsk
from hubbub.client.upload import HttpTransport, Transport, Unreachable
from hubbub.collection import SignedCollection, open_sealed
from hubbub.core.reports import Bools, Reports
from hubbub.demo.people import Owners, People, Riders, Speakers
from hubbub.demo.programs import until_input_ends
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import Ledgers
from hubbub.wire.batches import BATCH_TYPE, encode_batch

_Owners: TypeAlias = People | Owners | Riders | Speakers

PAUSE = 0.2
"""Seconds between two requests for the open asks."""

SPREAD = 0.6
"""The part of an ask's time over which devices spread their answers."""


class Devices:
    """Devices that fetch signed asks and answer each ask once, if they are on its arc and their ledger allows it.

    `transport`, `public_key`, `name`: the collector, the key that the collection is signed with, and the collection's
    name.
    """

    def __init__(self, transport: Transport, public_key: bytes, name: str, people: _Owners) -> None:
        self._transport, self._keys = transport, (public_key,)
        self._root = f"/v1/collections/{name}"
        self.collection: SignedCollection = open_collection(self._fetch(self._root), self._keys)
        promises = [
            *self.collection.promises,
            *(promise for terms in self.collection.terms.values() for promise in terms.promises),
        ]
        self._rng = Random(seed=people.seed).child("devices", people.group)
        ledgers, local = Ledgers(people.n, promises), self.collection.shuffle is None
        self._fleet = Fleet(people, self._rng, ledgers=ledgers, first=1, enrol_apart=local)
        self._offsets = (self._rng.uint32(people.n) + 0.5) / 2**32
        self._latest = 0
        self._done: dict[tuple[str, int, str], Bools] = {}
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
        """Answer the open asks, for the devices whose time to answer has come."""
        asks = open_sealed(self._fetch(f"{self._root}/asks"), self._keys)
        step = int(asks["step"])
        version = (asks["collection"], asks["version"])
        if version != (self.collection.name, self.collection.version) or step != self.collection.step_at(now):
            return
        for ask in asks["asks"]:
            published = PublishedAsk(ask["question"], Ask.from_spec(ask["ask"]), ask["round"], ask["run"], ask["part"])
            if published.ask.step == step or self.collection.terms[published.question].study is not None:
                self._answer(published, step, now)

    def send(self) -> None:
        """Send the reports that wait. Those that are not acknowledged stay, and are sent again unchanged."""
        while self._waiting:
            response = self._transport.request("POST", "/v1/reports", {"Content-Type": BATCH_TYPE}, self._waiting[0])
            if response.status >= 500:
                raise Unreachable(f"status {response.status}")
            self._waiting.pop(0)

    def _answer(self, published: PublishedAsk, step: int, now: float) -> None:
        ask, question = published.ask, published.question
        opens, closes = self.collection.round_times(question, published.run, step, published.round)
        key = (question, published.run, ask.ask_id)
        done = self._done.get(key)
        if done is None:
            admit(self.collection, published, step)
            done = ~ask.cohort.holds(self._fleet.places)
            members = self._fleet.in_group(self.collection.terms[question].group)
            done = done if members is None else done | ~members
            self._done = dict([*self._done.items(), (key, done)][-8:])
        due = ~done & (opens + SPREAD * self._offsets * (closes - opens) <= now)
        done |= due
        self._latest = max(self._latest, int(now))  # a wall clock may be set back; the ledgers' is not
        terms = self.collection.terms[question]
        if terms.study is not None:
            ask = replace(ask, step=published.run)  # in every run the owners hold another value
        for reports in self._fleet.reports(
            ask, np.flatnonzero(due), now=self._latest, account=terms.account, question=question
        ):
            if len(reports):
                self._wait(published, reports)

    def _wait(self, published: PublishedAsk, reports: Reports) -> None:
        ids = self._rng.bytes(16 * len(reports))
        self._waiting.append(encode_batch(self.collection.name, self.collection.version, published.name, ids, reports))

    def _fetch(self, path: str) -> Any:
        response = self._transport.request("GET", path, {"Accept": "application/json"})
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return json.loads(response.body)


def main() -> int:
    """Read one line of settings, and answer until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    stop = until_input_ends()
    spec = settings["people"]
    kinds: dict[str, type[_Owners]] = {"histories": Owners, "amounts": Riders, "texts": Speakers}
    people = next((kind for key, kind in kinds.items() if key in spec), People)(**spec)
    transport = HttpTransport(settings["address"])
    Devices(transport, bytes.fromhex(settings["public_key"]), settings["name"], people).run(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
