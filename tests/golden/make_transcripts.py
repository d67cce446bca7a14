"""Makes the transcripts of every protocol: the sketches it heard, what it asked and released, what it remembered.

    python -m tests.golden.make_transcripts

One file a question and number of its arithmetic, in `tests/golden/transcripts`; a file that is there is left as it is.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.authoring.toml import read_collection
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import Conversation, Count, CountResult, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.views.basic import Prefix
from hubbub.protocols.window import METHODS
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.service.rounds.releases import release_row
from tests.shared.small_collections import collection_text

FOLDER = Path(__file__).parent / "transcripts"
STEPS, SNAPSHOT, FIRST = 11, 7, 16
PEOPLE = 600
_TURN = 2654435769  # deals people to places of the circle
START = "2026-12-01T00:00Z"
BASKET = {"kind": "sets", "most": 5, "items": {"kind": "ordinal", "size": 30}}
ITEMSETS = {"kind": "itemsets", "field": "basket", "epsilon": 4.0, "k": 4, "start": START}
TOP = {"kind": "top", "field": "word", "epsilon": 4.0, "start": START, "every": "1d", "k": 2, "longest": 4}
FIELDS: dict[str, dict[str, Any]] = {
    "theme": {"kind": "categorical", "names": ["light", "dark", "blue"]},
    "page": {"kind": "ordinal", "size": 40},
    "age": {"kind": "numeric", "low": 0.0, "high": 100.0, "cells": 4},
    "word": {"kind": "strings", "longest": 8},
    "rating": {"kind": "keyvalue", "keys": ["a", "b", "c", "d"], "low": -1.0, "high": 1.0, "most": 2},
    "basket": BASKET,
    "side": {"kind": "categorical", "names": ["left", "right"]},
    "step": {"kind": "vector", "dimension": 5},
}
KINDS: dict[str, dict[str, Any]] = {
    "grr": {"kind": "histogram", "field": "theme", "epsilon": 1.0},
    "large": {"kind": "histogram", "field": "page", "epsilon": 1.0},
    "spread": {"kind": "distribution", "field": "age", "epsilon": 1.0},
    "clipped": {"kind": "release", "field": "age", "epsilon": 1.0, "r": 3},
    "mean": {"kind": "mean", "field": "age", "epsilon": 1.0},
    "memo": {"kind": "memo", "field": "theme", "epsilon": 1.0, "permanent": 2.0},
    "loloha": {"kind": "memo", "field": "page", "epsilon": 1.0, "permanent": 2.0, "mechanism": "Loloha"},
    "words": {"kind": "histogram", "field": "word", "epsilon": 2.0, "candidates": ["yes", "no"]},
    "ratings": {"kind": "keyvalue", "field": "rating", "epsilon": 1.0},
    "changes": {"kind": "changes", "field": "theme", "epsilon": 2.0, "steps": 8, "changes": 3},
    "ranges": {
        "kind": "changes",
        "fields": ["theme", "side"],
        "epsilon": 2.0,
        "steps": 6,
        "changes": 4,
        "fanout": 3,
        "queries": "range",
        "mechanism": "NetSub",
    },
    "itemsets": ITEMSETS,
    "items": {**ITEMSETS, "of": "items"},
    "top": {**TOP, "query_limit": 4096},
    "grouped": {"kind": "histogram", "field": "theme", "by": ["age", "side"], "epsilon": 1.0},
    "grouped-mean": {"kind": "mean", "field": "age", "by": "theme", "epsilon": 1.0},
    "vector": {"kind": "vector", "field": "step", "epsilon": 4.0, "start": START, "rounds": 3, "sparsity": 2},
    "table": {"kind": "table", "columns": ["page", "theme"], "epsilon": 1.0},
    "ways": {"kind": "table", "columns": ["page", "theme"], "method": ["HI", "SC"], "epsilon": 1.0},
    "marginals": {"kind": "marginals", "fields": ["theme", "side", "age"], "epsilon": 1.0},
}


def every_kind(**more: dict[str, Any]) -> str:
    """The text of a collection with a question of every kind, and more questions."""
    privacy = {"user": 1000.0}
    return collection_text("golden", "Every protocol", privacy=privacy, fields=FIELDS, questions={**KINDS, **more})


def golden_collection() -> Collection:
    """Every kind of question, every method for shares and for means, and means whose range is found."""
    stream = {"kind": "stream", "epsilon": 2.0, "w": 4}
    streams = {
        f"{method.lower()}-{field}": {**stream, "field": field, "method": method}
        for method in METHODS
        for field in ("theme", "age")
    }
    found = {"field": "age", "epsilon": 2.0, "range": "auto"}
    streams["found-mean"] = {"kind": "mean", **found}
    for method in ("LPU", "LBA"):
        streams[f"found-{method.lower()}"] = {**stream, **found, "method": method}
    return read_collection(every_kind(**streams))


def transcript(
    collection: Collection,
    question: str,
    hear: Callable[[Ask], Sketch],
    count: Callable[[Count], CountResult],
    steps: int = STEPS,
) -> dict[str, Any]:
    """What a protocol says to what it hears, for some steps or to its end."""
    memory = Memory()
    talk = Conversation(collection.protocol(question, memory, first=FIRST))
    messages: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    told = 0
    while told < steps and talk.message is not None:
        if isinstance(talk.message, Release) and told + 1 == SNAPSHOT:
            state = json.loads(json.dumps(memory.state()))
        message, asks = talk.listen(), talk.asks
        if isinstance(message, Release):
            told += 1
            messages.append(released(message))
        elif isinstance(message, Count):
            counted = count(message)
            named = {"count": message.candidates_json(), "n": counted.n, "support": counted.support.tolist()}
            messages.append({**named, "places": list(counted.places), "tested": counted.tested})
            talk.reply_count(counted)
        else:
            sketches = [hear(ask) for ask in asks]
            for ask, sketch in zip(asks, sketches, strict=True):
                messages.append({"ask": ask.ask_id, "n": sketch.n, "counts": sketch.counts.tolist()})
            talk.reply_all(sketches)
    return {"said": messages, "snapshot": state}


def released(release: Release) -> dict[str, Any]:
    """A release as it is stored."""
    row = release_row(release, collection="", question="", time=0.0, minimum_batch=1)
    return {"release": json.loads(row.payload)}


class Crowd:
    """People who answer; what they do changes half way."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, int], Any] = {}
        self.kept: dict[str, Reports] = {}

    def __call__(self, ask: Ask) -> Sketch:
        """The sketch of everyone who is asked."""
        mechanism, rng = ask.mechanism, Random(seed=f"golden {ask.ask_id}")
        dark = 2 if ask.step < 6 else 7
        share = ask.cohort.length / 2**32
        people = range(round(PEOPLE * share))
        if isinstance(mechanism, ChangeStream):
            asked = np.flatnonzero(ask.cohort.holds(np.arange(60) * _TURN % CIRCLE)).tolist()
            codes = {person: int(person % 10 < dark) for person in asked}
            records = [{"theme": code, "side": person % 3} for person, code in codes.items()]
            seen = codes.values() if mechanism.one else ask.view(records).tolist()
            return self.symbols(mechanism, ask.step, dict(zip(codes, seen, strict=True)), rng)
        name = type(mechanism).__name__
        if name == "PSFO" or ask.view.spec()["kind"] == "subsetcount":
            assert isinstance(mechanism, Mechanism)
            baskets = [(1, 2, 3 + person % 9) if person % 10 < 4 else (1,) if person % 2 else () for person in people]
            return mechanism.accumulate(mechanism.randomize(ask.view(baskets), rng))
        if ask.view.spec()["kind"] == "joint":
            values: list[Any] = [
                {"theme": int(person % 10 < dark), "page": person % 41, "side": person % 3, "age": _age(person)}
                for person in people
            ]
        elif name == "Rappor" or isinstance(ask.view, Prefix):
            values = ["yes" if person % 10 < dark else "no" for person in people]
        elif hasattr(mechanism, "low") or ask.view.spec().get("view") == "Clipped":
            values = [10.0 * dark + person % 10 for person in people]
        elif name in ("Collision", "CoCo", "ExSub", "NetSub", "NetSeed"):
            values = [((0, 0.5), (1 + person % 3, -0.5)) if person % 10 < dark else ((2, 1.0),) for person in people]
        else:
            values = [int(person % 10 < dark) for person in people]
        assert isinstance(mechanism, Mechanism)
        reports = mechanism.randomize(ask.view.look(values, rng), rng)
        if ask.kept:
            self.kept[ask.ask_id] = reports
        return mechanism.accumulate(reports)

    def count(self, count: Count) -> CountResult:
        """Among the reports that were kept."""
        return count.among(lambda: [self.kept[count.ask.ask_id]])

    def symbols(self, symbols: ChangeStream, step: int, values: dict[int, Any], rng: Random) -> Sketch:
        """Those of sixty devices that are asked, of which ten are away in every fourth step."""
        counted = symbols.empty()
        at = FIRST + step - 1
        for person, value in values.items():
            if person >= 50 and step % 4 == 3:
                continue
            key = symbols.spec_id, person
            new = key not in self.states or symbols.place(at)[1] == 1
            state, paid = symbols.enroll(1, rng) if new else self.states[key], np.array([new])
            self.states[key], reports, speaks = symbols.step(state, at, [value], rng, paid)
            enrolling, _ = symbols.with_enrolment(self.states[key], reports, speaks, paid)
            counted = counted + symbols.accumulate(enrolling)
        return counted


def _age(person: int) -> float | None:
    return float(person % 100) if person % 7 else None


def replayed(collection: Collection, question: str, kept: dict[str, Any]) -> dict[str, Any]:
    """What a protocol says to the sketches of a transcript."""
    asks_kept = iter([entry for entry in kept["said"] if "ask" in entry])
    counts = iter([entry for entry in kept["said"] if "count" in entry])

    def counted(_count: Count) -> CountResult:
        told = next(counts)
        return CountResult(told["n"], np.array(told["support"], dtype=np.int64), tuple(told["places"]), told["tested"])

    return transcript(collection, question, lambda ask: sketch_of(ask, next(asks_kept)), counted)


def sketch_of(ask: Ask, kept: dict[str, Any]) -> Sketch:
    """The sketch that an ask of a transcript was answered with."""
    counts = np.array(kept["counts"], dtype=np.int64).reshape(ask.mechanism.sketch_shape)
    return Sketch(ask.mechanism.spec_id, kept["n"], counts)


def path_of(collection: Collection, question: str) -> Path:
    """The file of a question's transcript."""
    return FOLDER / f"{question}-{collection.questions[question].arithmetic}.json"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    collection = golden_collection()
    for question in collection.questions:
        path = path_of(collection, question)
        if not path.exists():
            crowd = Crowd()
            made = transcript(collection, question, crowd, crowd.count)
            path.write_text(json.dumps(made, separators=(",", ":")) + "\n")
