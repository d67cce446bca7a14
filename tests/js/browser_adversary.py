"""A server that signs, asks and answers whatever it likes, and a recount of what a device told it.

The mechanisms' reports are all of different lengths, so that what was sent says what it cost. The second layer of memos
is as good as open: what was sent says which permanent answer it came from.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub import OUE, BasicRappor
from hubbub.collection import Keys
from hubbub.protocols.cohort import CIRCLE

EPSILON = 10**12


def spell(value: Any) -> str:
    """The canonical spelling, quickly: of names, small integers and fractions alone."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def plain(spec: Any) -> Any:
    """A spec whose whole numbers are integers."""
    if isinstance(spec, dict):
        return {name: plain(value) for name, value in spec.items()}
    return int(spec) if isinstance(spec, float) and spec.is_integer() else spec


MEMO_BITS = 96


@dataclass(frozen=True)
class Known:
    """A mechanism: its spec and id, what an answer or a new memo costs, and the bytes of a report."""

    spec: dict[str, Any]
    spent: int
    size: int

    @property
    def id(self) -> str:
        return hashlib.sha256(spell(self.spec).encode()).hexdigest()[:32]


def _plain(at: int, epsilon: float) -> Known:
    mechanism = OUE(epsilon=epsilon, domain=8 * (at + 1))
    return Known(plain(mechanism.spec()), mechanism.event().spent, at + 1)


def _memo(at: int, epsilon: float) -> Known:
    size = MEMO_BITS + 8 * at
    mechanism = BasicRappor(epsilon=epsilon, domain=size)
    top = (1 << mechanism.width) - 1
    return Known({**plain(mechanism.spec()), "keep": top, "lift": 1}, mechanism.permanent_event().spent, size // 8)


PLAIN = [_plain(at, epsilon) for at, epsilon in enumerate((0.25, 0.5, 1.0, 2.0, 4.0, 9.0))]
MEMOS = [_memo(at, epsilon) for at, epsilon in enumerate((1.0, 2.5))]
BY_SIZE = {known.size: known for known in (*PLAIN, *MEMOS)}
BY_ID = {known.id: known for known in (*PLAIN, *MEMOS)}
FIELDS = {"f": {"kind": "ordinal", "size": 4}, "g": {"kind": "ordinal", "size": 3}}
STEPS = (1, 60, 3600, 86400, 604800)
WHOLE_VIEW = {"kind": "whole"}
SIZE_VIEW = {"kind": "binned", "first": 1, "factor": 2, "cells": 4}


class Adversary:
    """One history: documents, asks, clocks and losses drawn from a seed.

    Example: Adversary(7).history()["events"] is what `browser_adversary.mjs` plays.
    """

    def __init__(self, seed: int, keys: Keys) -> None:
        self.rng = random.Random(seed)
        self.public = keys.public.hex()
        self.focused = self.rng.random() < 0.6
        """Whether asks are as the terms allow, and limits are a few answers: then clocks and versions decide."""
        self.generous = self.rng.random() < 0.6
        self.signer = Ed25519PrivateKey.from_private_bytes(keys.private)
        self.documents: dict[str, dict[str, Any]] = {}
        """Whatever was signed, by its id: there may be several of a version."""
        self.times: list[tuple[int, int]] = []
        """By event: true time and the device's wall clock, in milliseconds."""

    def history(self) -> dict[str, Any]:
        rng = self.rng
        events: list[list[Any]] = []
        time, offset, wall = 10**12 + rng.randrange(10**9), 0, 0
        served, jumpy, tabs = self._document(1), rng.choice((0.0, 0.1, 0.5)), rng.choice((0.0, 0.1, 0.5))

        def add(*event: Any) -> None:
            events.append(list(event))
            self.times.append((time, wall))

        def serve() -> None:
            step = (wall // 1000 - served["origin"]) // served["step_seconds"]
            add("serve", self._seal(served), self._seal(self._asks(served, step)))

        wall = time
        add("time", time, wall)
        serve()
        add("open", 0)
        add("open", 1)
        for _ in range(rng.randrange(6, 30)):
            grid = 1000 * (served["step_seconds"] if rng.random() < 0.8 else rng.choice(STEPS))
            time += grid * rng.randrange(4) // 2 + rng.randrange(3) * 250
            if rng.random() < jumpy:
                offset += rng.choice((-1, 1, 1)) * grid * rng.randrange(1, 9)
            if rng.random() < jumpy / 3:
                offset = 0
            wall = time + offset
            add("time", time, wall)
            if rng.random() < 0.2:
                version = max(self._versions()) + rng.choice((1, 1, 1, 2, 0))
                alike = rng.random() < (0.9 if self.focused else 0.6)
                served = self._changed(served, version) if alike else self._document(version)
            if rng.random() < 0.02:
                served = self.documents[rng.choice(list(self.documents))]
            if rng.random() < 0.7:
                field = rng.choice(list(FIELDS))
                add("record", field, rng.randrange(FIELDS[field]["size"]))
            if rng.random() < 0.1:
                add("losing", rng.random() < 0.5)
            if rng.random() < (tabs / 2 if self.focused else 0.15):
                add("open", int(rng.random() < tabs))
            for _ in range(rng.choice((1, 1, 2))):
                serve()
                if rng.random() < (0.02 if self.focused else 0.1):
                    add("failing", rng.randrange(8))
                add("tick", int(rng.random() < tabs))
        return {"keys": self.public, "events": events}

    def _seal(self, spec: dict[str, Any]) -> dict[str, str]:
        payload = spell(spec)
        signature = self.signer.sign(payload.encode())
        return {"payload": payload, "key": self.public, "signature": signature.hex()}

    def _versions(self) -> list[int]:
        return [document["version"] for document in self.documents.values()]

    # -- documents --------------------------------------------------------------------------------------------

    def _document(self, version: int) -> dict[str, Any]:
        rng = self.rng
        origin, seconds = rng.choice((0, 0, 17, 3600)), rng.choice(STEPS)
        terms = {
            name: self._terms(field, memo, origin, seconds)
            for name, field, memo in (("p", "f", False), ("q", "g", False), ("m", "f", True), ("n", "g", True))
            if rng.random() < (0.4 if self.focused else 0.7)
        }
        accounts = sorted({each["account"] for each in terms.values()})
        document = {
            "name": "c",
            "format": 2,
            "version": version,
            "trust": "local",
            "fields": FIELDS,
            "terms": terms,
            "promises": [self._whole(accounts, origin, seconds) for _ in range(rng.choice((1, 1, 2, 3)))],
            "minimum_batch": rng.choice((20, 20, 20, 50)),
            "minimum_arc": CIRCLE // 10,
            "origin": origin,
            "step_seconds": seconds,
            "overrides": {"epsilon_above_8": "because"} if rng.random() < 0.3 else {},
            **({"cover": True} if rng.random() < 0.2 else {}),
        }
        return self._signed(document)

    def _signed(self, document: dict[str, Any]) -> dict[str, Any]:
        # A device refuses a document with a question that could never be answered.
        own = (document["step_seconds"], document["origin"])
        for terms in document["terms"].values():
            parts = [whole["parts"].get(terms["account"], 0) for whole in document["promises"] if _grid(whole) == own]
            terms["promises"] = [
                {**promise, "limit": min(promise["limit"], *parts, 10**18)} if _grid(promise) == own else promise
                for promise in terms["promises"]
            ]
        self.documents[hashlib.sha256(spell(document).encode()).hexdigest()[:32]] = document
        return document

    def _changed(self, before: dict[str, Any], version: int) -> dict[str, Any]:
        """A version that differs in its steps alone, or promises a little less, or much more, of the whole."""
        rng = self.rng
        document = copy.deepcopy({**before, "version": version})
        if rng.random() < 0.5:
            document["step_seconds"] = rng.choice(STEPS)
            return self._signed(document)
        more = rng.choice((0.99, 0.99, 30))
        document["promises"] = [
            self._shared({**promise, "limit": min(int(promise["limit"] * more), 10**15)}, list(promise["parts"]))
            for promise in before["promises"]
        ]
        return self._signed(document)

    def _terms(self, field: str, memo: bool, origin: int, seconds: int) -> dict[str, Any]:
        rng = self.rng
        if memo:
            known = [rng.choice(MEMOS)]
        elif self.focused:
            known = [rng.choice(PLAIN[:2])]
        else:
            known = rng.sample(PLAIN, rng.randrange(1, 4))
        ids = sorted(each.id for each in known)
        return {
            "field": field,
            "frozen": "last" if memo else "step",
            "view": WHOLE_VIEW,
            "mechanisms": ids,
            "rounds": rng.choice((1, 1, 2)),
            "account": f"memo:{field}:{ids[0]}" if memo else "asks",
            "state": "memo" if memo else "none",
            "promises": [self._promise(origin, seconds) for _ in range(rng.choice((0, 1, 1, 2)))],
        }

    def _promise(self, origin: int, seconds: int) -> dict[str, Any]:
        rng = self.rng
        steps = rng.choice((0, 1, 1, 2, 7, 24))
        if rng.random() < 0.2:
            origin, seconds = rng.choice((0, 5, 1800)), rng.choice(STEPS)
        if self.focused:
            steps = rng.choice((1, 2, 2, 3, 5))
        grid = (seconds, origin) if steps else (0, 0)
        epsilons = (0.5, 0.5, 1.0) if self.focused else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
        limit = round(rng.choice(epsilons) * rng.choice((1, 1, 1.3)) * EPSILON)
        return {"limit": min(limit, 8 * EPSILON), "steps": steps, "interval": grid[0], "origin": grid[1]}

    def _whole(self, accounts: list[str], origin: int, seconds: int) -> dict[str, Any]:
        promise = self._promise(origin, seconds)
        promise["limit"] *= self.rng.choice((2, 4, 8) if self.focused else (20, 50) if self.generous else (1, 4, 20))
        return self._shared(promise, accounts)

    def _shared(self, promise: dict[str, Any], accounts: list[str]) -> dict[str, Any]:
        left = limit = promise["limit"]
        parts = {}
        for account in self.rng.sample(accounts, len(accounts)):
            parts[account] = limit // len(accounts) if self.rng.random() < 0.7 else self.rng.randrange(left + 1)
            parts[account] = min(parts[account], left)
            left -= parts[account]
        return {**promise, "parts": parts}

    # -- asks -------------------------------------------------------------------------------------------------

    def _asks(self, served: dict[str, Any], step: int) -> dict[str, Any]:
        rng = self.rng
        step += rng.choice((0,) * 18 + (1, -1))
        version = served["version"] if rng.random() < 0.95 else rng.choice(self._versions())
        asks = [self._ask(served, step) for _ in range(rng.randrange(1, 6))]
        if self.focused:
            asks = [self._right_ask(name, terms, step) for name, terms in served["terms"].items()]
        closes = served["origin"] + (step + 1) * served["step_seconds"]
        return {"format": 2, "collection": "c", "version": version, "step": step, "asks": asks, "closes": closes}

    def _right_ask(self, name: str, terms: dict[str, Any], step: int) -> dict[str, Any]:
        ask = {"mechanism": BY_ID[self.rng.choice(terms["mechanisms"])].spec, "step": step, "view": WHOLE_VIEW}
        everyone = {"start": 0, "length": CIRCLE}
        number = self.rng.randrange(terms["rounds"]) + 1
        published = {"question": name, "run": 0, "round": number, "part": 0}
        return {**published, "ask": {**ask, "cohort": everyone, "standing": self.rng.random() < 0.8}}

    def _ask(self, served: dict[str, Any], step: int) -> dict[str, Any]:
        rng = self.rng
        name = rng.choice(list(served["terms"]) if served["terms"] and rng.random() < 0.95 else "pqmn")
        terms = served["terms"].get(name)
        known = rng.choice((*PLAIN, *MEMOS))
        if terms is not None and rng.random() < 0.9:
            known = BY_ID[rng.choice(terms["mechanisms"])]
        start, length = rng.choice([(0, CIRCLE)] * 12 + [(0, CIRCLE // 2), (CIRCLE // 2, CIRCLE // 2), (5, 6)])
        return {
            "question": name,
            "run": int(rng.random() < 0.03),
            "round": rng.choice((1,) * 12 + (2, 2, 2, 3, 0)),
            "part": 0,
            "ask": {
                "mechanism": known.spec,
                "step": step + int(rng.random() < 0.05),
                "view": WHOLE_VIEW if rng.random() < 0.95 else SIZE_VIEW,
                "cohort": {"start": start, "length": length},
                "standing": rng.random() < 0.6,
            },
        }


def _grid(promise: dict[str, Any]) -> tuple[int, int]:
    return promise["interval"], promise["origin"]


@dataclass(frozen=True)
class Paid:
    """What a report told for the first time: when, by true time and the latest wall time, of what, and how much."""

    event: int
    time: int
    wall: int
    question: str
    spent: int


def judge(adversary: Adversary, told: dict[str, Any]) -> list[str]:
    """What is wrong with what a device told: nothing, if it kept every promise that it ever made."""
    wrong = []
    paid, names, latest = [], set(), -(10**18)
    memos: dict[tuple[str, int], list[int]] = {}
    kept = {answer["id"]: answer["report"] for answer in told["answers"]}
    for report_id, report in told["heard"]:
        if kept.get(report_id) != report:
            wrong.append(f"{report_id} was sent otherwise than it was kept")
    for answer in told["answers"]:
        event, question = answer["event"], answer["question"]
        time, wall = adversary.times[event]
        latest = max(latest, wall)
        if answer.get("cover"):
            continue
        document = adversary.documents[told["in_force"][event]]
        terms, known = document["terms"][question], BY_SIZE[len(answer["report"]) // 2]
        if answer["version"] != document["version"]:
            wrong.append(f"event {event}: an answer to version {answer['version']}, which was not in force")
        if known.id not in terms["mechanisms"] or not 1 <= answer["round"] <= terms["rounds"]:
            wrong.append(f"event {event}: {question} was answered otherwise than it promised")
        if answer["step"] != (wall - 1000 * document["origin"]) // (1000 * document["step_seconds"]):
            wrong.append(f"event {event}: {question} was answered for step {answer['step']}")
        name = (answer["version"], question, answer["step"], answer["round"])
        if name in names:
            wrong.append(f"event {event}: {name} was answered twice")
        names.add(name)
        spent = known.spent
        if terms["state"] == "memo":
            bits, seen = int(answer["report"], 16), memos.setdefault((terms["account"], known.size), [])
            # Two permanent answers agree in all but 12 of 96 bits with probability below 1e-8.
            if any((bits ^ other).bit_count() <= 12 for other in seen):
                spent = 0
            else:
                seen.append(bits)
        if spent:
            paid.append(Paid(event, time, latest, question, spent))
    wrong.extend(_broken(adversary, told["in_force"], paid))
    return wrong


def _broken(adversary: Adversary, in_force: list[str], paid: list[Paid]) -> Iterator[str]:
    """The promises of every version that was in force, counted from then on, each on its own grid and in true time."""
    for document_id in set(in_force) - {""}:
        since, document = in_force.index(document_id), adversary.documents[document_id]
        promised = [(None, promise) for promise in document["promises"]]
        promised += [(name, promise) for name, terms in document["terms"].items() for promise in terms["promises"]]
        for question, promise in promised:
            limit, steps = promise["limit"], promise["steps"]
            grid, origin = 1000 * promise["interval"], 1000 * promise["origin"]
            mine = [debit for debit in paid if debit.event >= since and question in (None, debit.question)]
            for at, last in enumerate(mine):
                before = mine[: at + 1]
                if steps:
                    step = (last.wall - origin) // grid
                    by_step = sum(debit.spent for debit in before if (debit.wall - origin) // grid > step - steps)
                    by_time = sum(debit.spent for debit in before if debit.time > last.time - (steps - 1) * grid)
                    spent = max(by_step, by_time)
                else:
                    spent = sum(debit.spent for debit in before)
                if spent > limit:
                    scope = f"{question or 'the whole'} of version {document['version']}"
                    yield f"event {last.event}: {spent} of what {scope} promised, {promise}"
