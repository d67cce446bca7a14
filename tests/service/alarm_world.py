"""A collector with alarms on a clock that is moved by hand, and a crowd that answers whatever it asks."""

from typing import Any

import numpy as np

from hubbub import Random, Reports
from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.service.alarms import AlarmEvent
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.store.sql import Store
from tests.shared.in_process import Reopen, World, randomized, send_reports
from tests.shared.small_collections import collection_text

HOUR = 3600
FIRST = 24
HEAD = collection_text(
    "planes",
    "Planes",
    privacy={"user": 5000.0, "minimum_batch": 100},
    fields={
        "status": {"kind": "categorical", "names": ["early", "fine", "late"]},
        "delay": {"kind": "numeric", "low": 0, "high": 100, "cells": 10},
        "used": {"kind": "keyvalue", "keys": ["gate", "lounge"], "low": -1, "high": 1, "most": 1},
    },
    questions={},
)
SHARES = '[questions.all]\nkind = "histogram"\nfield = "status"\nepsilon = 4.0\n'


def statuses(late: float, people: int = 1000) -> list[str]:
    """A crowd in which a given share is late, a tenth early."""
    count = round(late * people)
    return ["late"] * count + ["early"] * (people // 10) + ["fine"] * (people - people // 10 - count)


class AlarmWorld(World):
    """One collector after another over one store; each step everyone answers once."""

    def __init__(self, text: str, store: Store | Reopen | None = None, *, first: int = FIRST) -> None:
        self.notified = list[AlarmEvent]()
        self.states: dict[str, tuple[str, States]] = {}
        super().__init__(load_collection(text), (first + 0.01) * HOUR, store, alarms={"planes": load_alarms(text)})
        self.collector.alarms.listen(self.notified.append)

    def reopen(self, text: str) -> None:
        """Begin again, as after a crash: the collector before is not asked to stop."""
        self.options["alarms"] = {"planes": load_alarms(text)}
        self.begin(load_collection(text)).collector.alarms.listen(self.notified.append)

    def live(self, shares: list[float], first: int = FIRST) -> None:
        """Live through some steps, in each of which a share of the crowd is late."""
        for step, late in enumerate(shares, start=first):
            self.step(step, statuses(late))
        self.end(first + len(shares) - 1)

    def step(self, step: int, values: list[Any]) -> None:
        """Live through a step: everyone who is asked answers, in every round of it."""
        done = set()
        for part in (0.1, 0.3, 0.6, 0.8):
            for open_ask in self.at((step + part) * HOUR).open:
                if open_ask.ask.step == step and open_ask.key not in done:
                    done.add(open_ask.key)
                    self.answer(open_ask, values, step)

    def answer(self, open_ask: OpenAsk, values: list[Any], step: int) -> None:
        rng = Random(seed=f"{open_ask.question} {step} {open_ask.name}")
        reports = self.reports(open_ask.ask, values, step, rng)
        if len(reports):
            receipt = send_reports(self.collector, open_ask, reports, rng)
            assert receipt.accepted + receipt.duplicates == len(reports), receipt

    def reports(self, ask: Ask, values: list[Any], step: int, rng: Random) -> Reports:
        mechanism = ask.mechanism
        (field,) = self.collection.questions["all"].reads()
        codes = [self.collection.fields[field].code(value) for value in values]
        if not isinstance(mechanism, Stateful):
            people = np.random.default_rng(step).permutation(len(codes))[: round(len(codes) * ask.cohort.share)]
            return randomized(ask, ask.view([codes[person] for person in people]), rng)
        asked = np.flatnonzero(ask.cohort.holds(np.random.default_rng(1).integers(0, CIRCLE, len(codes))))
        enrolled, states = self.states.get(mechanism.spec_id, ("", mechanism.enroll(len(asked), rng)))
        if enrolled != mechanism.state_key(step):
            states = mechanism.enroll(len(asked), rng)
        viewed = ask.view([codes[person] for person in asked])
        paid = mechanism.price(states, step, viewed) > 0
        states, reports, speaks = mechanism.step(states, step, viewed, rng, paid)
        self.states[mechanism.spec_id] = mechanism.state_key(step), states
        return mechanism.with_enrolment(states, reports, speaks, paid)[0]

    def end(self, step: int) -> None:
        """Let a step's lateness pass."""
        self.at((step + 1.2) * HOUR)

    def events(self) -> list[AlarmEvent]:
        """What is stored."""
        return self.collector.alarms.events("planes", most=1000)
