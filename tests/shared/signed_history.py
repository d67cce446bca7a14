"""A server that signs, asks and answers whatever it likes: the histories that both clients are played, from a seed.

`browser_adversary.mjs` plays them to the browser's client, `history_player.py` to Python's; `recount.py` says what is
wrong with what was told.

The mechanisms' reports are all of different lengths, so that what was sent says what it cost. The second layer of memos
is as good as open: what was sent says which permanent answer it came from.
"""

import copy
import hashlib
import json
import random
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub import OUE, BasicRappor
from hubbub.collection import Keys
from hubbub.collection.terms import entry_bytes, frame_bytes
from hubbub.core.event import Event
from hubbub.ledger.promise import Budget
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.changes.stream import ChangeStream

EPSILON = 10**12


def spell(value: Any) -> str:
    """The canonical spelling, quickly: of names, small integers and fractions alone."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def plain(spec: Any) -> Any:
    """A spec whose whole numbers are integers."""
    if isinstance(spec, dict):
        return {name: plain(value) for name, value in spec.items()}
    if isinstance(spec, list):
        return [plain(value) for value in spec]
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


def _known(mechanism: ReportFormat, event: Event, size: int, **changed: int) -> Known:
    return Known({**plain(mechanism.spec()), **changed}, event.spent, size)


def _memo(at: int, epsilon: float) -> Known:
    mechanism = BasicRappor(epsilon=epsilon, domain=MEMO_BITS + 8 * at)
    top = (1 << mechanism.width) - 1
    return _known(mechanism, mechanism.permanent_event(), MEMO_BITS // 8 + at, keep=top, lift=1)


def _stream(at: int, epsilon: float) -> Known:
    mechanism = ChangeStream(epsilon=epsilon, dimension=40 + at, steps=HORIZON, changes=3, one=True)
    return _known(mechanism, mechanism.event(), 42 + at)


HORIZON = 6
ORACLES = [OUE(epsilon=epsilon, domain=8 * (at + 1)) for at, epsilon in enumerate((0.25, 0.5, 1.0, 2.0, 4.0, 9.0))]
PLAIN = [_known(oracle, oracle.event(), at + 1) for at, oracle in enumerate(ORACLES)]
MEMOS = [_memo(at, epsilon) for at, epsilon in enumerate((1.0, 2.5))]
STREAMS = [_stream(at, epsilon) for at, epsilon in enumerate((0.5, 2.0))]
BY_SIZE = {known.size: known for known in (*PLAIN, *MEMOS, *STREAMS)}
BY_ID = {known.id: known for known in (*PLAIN, *MEMOS, *STREAMS)}
FIELDS: dict[str, dict[str, Any]] = {"f": {"kind": "ordinal", "size": 4}, "g": {"kind": "ordinal", "size": 3}}
QUESTIONS = (
    *(("p", "f", "plain"), ("q", "g", "plain"), ("m", "f", "memo"), ("n", "g", "memo")),
    *(("s", "f", "study"), ("t", "g", "study"), ("z", "f", "stream")),
)
STEPS = (1, 60, 3600, 86400, 604800)
WHOLE_VIEW = {"kind": "whole"}
SIZE_VIEW = {"kind": "binned", "first": 1, "factor": 2, "cells": 4}


class Adversary:
    """One history: documents, asks, clocks and losses drawn from a seed.

    Example: Adversary(7, Keys.new()).history()["events"] is what is played.
    """

    def __init__(self, seed: int, keys: Keys) -> None:
        self.rng = random.Random(seed)
        self.public = keys.public.hex()
        self.focused = self.rng.random() < 0.6
        """Whether asks are as the terms allow, and limits are a few answers: then clocks and versions decide."""
        self.studious = self.focused and self.rng.random() < 0.4
        """Whether hardly anything is asked but studies, whose rounds time goes by."""
        self.generous = self.rng.random() < 0.6
        self.begins = 10**12 + self.rng.randrange(10**9)
        self.signer = Ed25519PrivateKey.from_private_bytes(keys.private)
        self.documents: dict[str, dict[str, Any]] = {}
        """Whatever was signed, by its id: there may be several of a version."""
        self.times: list[tuple[int, int]] = []
        """By event: true time and the device's wall clock, in milliseconds."""
        self.asked: dict[tuple[Any, ...], list[tuple[int, list[Any]]]] = {}
        """What was asked, by version, question, run, step and round: from which event on, and the asks of the round."""

    def history(self) -> dict[str, Any]:
        rng = self.rng
        events: list[list[Any]] = []
        time = wall = self.begins
        offset = 0
        served, jumpy, tabs = self._document(1), rng.choice((0.0, 0.1, 0.5)), rng.choice((0.0, 0.1, 0.5))

        def add(*event: Any) -> None:
            events.append(list(event))
            self.times.append((time, wall))

        def serve() -> None:
            asks = self._asks(served, wall)
            for ask in asks["asks"]:
                # A standing ask is asked in every step.
                step = None if ask["ask"]["standing"] else ask["step"]
                name = (asks["version"], ask["question"], ask["run"], step, ask["round"])
                same = [other for other in asks["asks"] if _round(other) == _round(ask)]
                self.asked.setdefault(name, []).append((len(self.times), same))
            add("serve", self._seal(served), self._seal(asks))

        add("time", time, wall)
        serve()
        add("open", 0)
        add("open", 1)
        for _ in range(rng.randrange(6, 30)):
            seconds = [terms["study"]["round_seconds"] for terms in served["terms"].values() if terms["study"]]
            if not self.studious or not seconds:
                seconds = [served["step_seconds"]]
            grid = 1000 * (rng.choice(seconds) if rng.random() < 0.8 else rng.choice(STEPS))
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
        chance = 0.4 if self.focused else 0.6
        terms = {
            name: self._terms(field, what, origin, seconds)
            for name, field, what in QUESTIONS
            if rng.random() < (chance if not self.studious else 0.7 if what == "study" else 0.1)
        }
        accounts = sorted({each["account"] for each in terms.values()})
        document: dict[str, Any] = {
            "name": "c",
            "title": "Anything",
            "format": 1,
            "questions": {name: {} for name in terms},  # a device knows no kinds
            "budget": Budget.of(user=8.0).spec(),  # what it keeps are the promises
            "lateness_seconds": 0,
            "retention_days": 90,
            "frame_bytes": frame_bytes(
                sum(entry_bytes(name, each["report_bytes"]) * each["rounds"] for name, each in terms.items())
            ),
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
        # A device refuses a document with a question that could never be answered, or that costs again and again.
        for whole in document["promises"]:
            for terms in document["terms"].values():
                account = terms["account"]
                whole["parts"][account] = max(whole["parts"].get(account, 0), terms["limit"])
            whole["limit"] = max(whole["limit"], sum(whole["parts"].values()))
        lasting = any(not whole["steps"] for whole in document["promises"])
        for terms in document["terms"].values():
            terms["promises"] = [
                promise if lasting or promise["steps"] else {**promise, "limit": min(promise["limit"], terms["limit"])}
                for promise in terms["promises"]
            ]
        self.documents[hashlib.sha256(spell(document).encode()).hexdigest()[:32]] = document
        return document

    def _changed(self, before: dict[str, Any], version: int) -> dict[str, Any]:
        """A version that differs in a study, or in its steps, or promises a little less, or more, of the whole."""
        rng = self.rng
        document = copy.deepcopy({**before, "version": version})
        studies = [terms for terms in document["terms"].values() if terms["study"]]
        if studies and rng.random() < 0.6:
            self._move(rng.choice(studies))
            return self._signed(document)
        if rng.random() < 0.5:
            document["step_seconds"] = rng.choice(STEPS)
            return self._signed(document)
        more = rng.choice((0.99, 0.99, 30))
        document["promises"] = [
            self._shared({**promise, "limit": min(int(promise["limit"] * more), 10**15)}, list(promise["parts"]))
            for promise in before["promises"]
        ]
        return self._signed(document)

    def _terms(self, field: str, what: str, origin: int, seconds: int) -> dict[str, Any]:
        rng = self.rng
        if what == "memo":
            known = [rng.choice(MEMOS)]
        elif what == "stream":
            known = [rng.choice(STREAMS)]
        elif self.focused:
            known = [rng.choice(PLAIN[:2])]
        else:
            known = rng.sample(PLAIN, rng.randrange(1, 4))
        ids = sorted(each.id for each in known)
        rounds = 1 if what in ("memo", "stream") else rng.choice((1, 3, 5, 8) if what == "study" else (1, 1, 2, 3))
        largest = max(each.spent for each in known)
        most = rounds if what == "study" else 3
        limit = min(round(largest * rng.choice((1, 1.5, 2, most)) + rounds), 8 * EPSILON)
        promises = [self._promise(origin, seconds) for _ in range(rng.choice((1, 1, 2)))]
        if what == "study" and rng.random() < 0.8:  # else it is hardly ever begun
            promises = [{**promise, "limit": max(promise["limit"], limit)} for promise in promises]
        return {
            "fields": [field],
            "frozen": {"memo": "last", "stream": "last", "study": "study"}.get(what, "step"),
            "views": [WHOLE_VIEW],
            "mechanisms": ids,
            "families": [],
            "rounds": rounds,
            "parts": rng.choice((1, 1, 2, 3)) if what in ("plain", "study") else 1,
            "account": f"memo:{field}:{ids[0]}" if what == "memo" else "asks",
            "state": {"memo": "BasicRappor", "stream": "ChangeStream"}.get(what, ""),
            "limit": limit if what == "study" else max(limit, min(largest, 8 * EPSILON)),
            "report_bytes": max(each.size for each in known),
            "promises": promises,
            "study": self._schedule(rounds, seconds) if what == "study" else None,
        }

    def _schedule(self, rounds: int, step: int) -> dict[str, int]:
        rng = self.rng
        seconds = rng.choice((1, 60, 86400, max(1, step // 2), step, step, 3 * step))
        start = (self.times[-1][1] if self.times else self.begins) // 1000 - rng.randrange(3) * seconds
        every = rng.choice((0, rounds * seconds, rounds * seconds, (rounds + 2) * seconds))
        return {"start": max(0, start), "round_seconds": seconds, "every": every}

    def _move(self, terms: dict[str, Any]) -> None:
        """Change a study, perhaps while it runs: its end is postponed, or its limit raised."""
        rng, study = self.rng, terms["study"]
        what = rng.randrange(3)
        if what == 0:
            terms["limit"] = min(terms["limit"] * rng.choice((2, 8)), 8 * EPSILON)
        elif what == 1:
            study["start"] += rng.choice((1, 2, terms["rounds"])) * study["round_seconds"]
        else:
            study["round_seconds"] *= rng.choice((2, 5))
            study["every"] = study["every"] and max(study["every"], terms["rounds"] * study["round_seconds"])

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

    def _asks(self, served: dict[str, Any], wall: int) -> dict[str, Any]:
        rng = self.rng
        step = (wall // 1000 - served["origin"]) // served["step_seconds"]
        step += rng.choice((0,) * 18 + (1, -1))
        version = served["version"] if rng.random() < 0.95 else rng.choice(self._versions())
        if self.focused:
            asks = [ask for name in served["terms"] for ask in self._right_asks(served, name, step, wall)]
        else:
            asks = [ask for _ in range(rng.randrange(1, 5)) for ask in self._some_asks(served, step, wall)]
        closes = served["origin"] + (step + 1) * served["step_seconds"]
        return {"format": 1, "collection": "c", "version": version, "step": step, "asks": asks, "closes": closes}

    def _right_asks(self, served: dict[str, Any], name: str, step: int, wall: int) -> list[dict[str, Any]]:
        """The asks of the round that it is, in as many parts as there may be."""
        terms = served["terms"][name]
        run, number, closes = _present(served, terms, wall)
        parts = self.rng.randrange(terms["parts"]) + 1
        starts = [at * (CIRCLE // parts) for at in range(parts)]
        kept = terms["state"] == "" and self.rng.random() < 0.2
        return [
            {
                "question": name,
                "run": run,
                "round": number,
                "part": part,
                "closes": closes,
                "step": 0 if terms["study"] else step,
                "ask": {
                    "mechanism": BY_ID[self.rng.choice(terms["mechanisms"])].spec,
                    "step": 0 if terms["study"] else step,
                    "view": WHOLE_VIEW,
                    "cohort": {"start": start, "length": CIRCLE // parts},
                    "standing": terms["rounds"] == 1 and terms["study"] is None and self.rng.random() < 0.8,
                    **({"kept": True} if kept else {}),  # and what is kept may be counted
                },
            }
            for part, start in enumerate(starts)
        ]

    def _some_asks(self, served: dict[str, Any], step: int, wall: int) -> list[dict[str, Any]]:
        """Asks that are right but for something, now and then."""
        rng = self.rng
        name = rng.choice(list(served["terms"]) if served["terms"] and rng.random() < 0.95 else "pqmnstz")
        if name not in served["terms"]:
            others = [each for each in self.documents.values() if name in each["terms"]]
            return self._right_asks(rng.choice(others), name, step, wall) if others else []
        asks = self._right_asks(served, name, step, wall)
        for ask in asks:
            inner = ask["ask"]
            if rng.random() < 0.1:
                inner["mechanism"] = rng.choice((*PLAIN, *MEMOS, *STREAMS)).spec
            if rng.random() < 0.3:
                start, length = rng.choice([(0, CIRCLE), (0, CIRCLE // 2), (CIRCLE // 2, CIRCLE // 2), (5, 6)])
                inner["cohort"] = {"start": start, "length": length}
            if rng.random() < 0.05:
                inner["view"] = SIZE_VIEW
            ask["run"] += rng.choice((0,) * 18 + (1, 2))
            ask["round"] = max(0, ask["round"] + rng.choice((0,) * 14 + (1, 1, -1)))
            ask["part"] += rng.choice((0,) * 14 + (1, 2))
            ask["step"] += int(rng.random() < 0.05)
            ask["closes"] += rng.choice((0, 0, 0, 10**6))
        return asks


def _round(ask: dict[str, Any]) -> tuple[Any, ...]:
    return (ask["question"], ask["run"], None if ask["ask"]["standing"] else ask["step"], ask["round"])


def _present(document: dict[str, Any], terms: dict[str, Any], wall: int) -> tuple[int, int, float]:
    """The run and the round that it is, and when that closes, in seconds."""
    study, rounds = terms["study"], terms["rounds"]
    if study is None:
        seconds = document["step_seconds"]
        begin, run, each = wall // 1000 - (wall // 1000 - document["origin"]) % seconds, 0, seconds / rounds
    else:
        run = max(0, wall // 1000 - study["start"]) // study["every"] if study["every"] else 0
        begin, each = study["start"] + run * study["every"], study["round_seconds"]
    number = min(max(int((wall / 1000 - begin) // each), 0), rounds - 1) + 1
    closes = begin + number * each
    return run, number, int(closes) if closes == int(closes) else closes
