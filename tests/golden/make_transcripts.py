"""Makes the transcripts of every protocol: the sketches it heard, what it asked and released, what it remembered.

    python -m tests.golden.make_transcripts

One file a question and number of its arithmetic, in `tests/golden/transcripts`; a file that is there is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.authoring.toml import read_collection
from hubbub.collection.document import Collection
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import Conversation, Count, CountResult, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.views.basic import Prefix
from hubbub.protocols.window import METHODS
from hubbub.random.source import Random
from hubbub.service.rounds.releases import release_row

FOLDER = Path(__file__).parent / "transcripts"
STEPS, SNAPSHOT, FIRST = 11, 7, 16
PEOPLE = 600
HEAD = """
name = "golden"
version = 1
title = "Every protocol"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
user = 1000.0

[fields.theme]
kind = "categorical"
names = ["light", "dark", "blue"]

[fields.page]
kind = "ordinal"
size = 40

[fields.age]
kind = "numeric"
low = 0.0
high = 100.0
cells = 4

[fields.word]
kind = "strings"
longest = 8

[fields.rating]
kind = "keyvalue"
keys = ["a", "b", "c", "d"]
low = -1.0
high = 1.0
most = 2

[fields.basket]
kind = "sets"
most = 5

[fields.basket.items]
kind = "ordinal"
size = 30

[questions.grr]
kind = "histogram"
field = "theme"
epsilon = 1.0

[questions.large]
kind = "histogram"
field = "page"
epsilon = 1.0

[questions.spread]
kind = "distribution"
field = "age"
epsilon = 1.0

[questions.clipped]
kind = "release"
field = "age"
epsilon = 1.0
r = 3

[questions.mean]
kind = "mean"
field = "age"
epsilon = 1.0

[questions.memo]
kind = "memo"
field = "theme"
epsilon = 1.0
permanent = 2.0

[questions.loloha]
kind = "memo"
field = "page"
epsilon = 1.0
permanent = 2.0
mechanism = "Loloha"

[questions.words]
kind = "histogram"
field = "word"
epsilon = 2.0
candidates = ["yes", "no"]

[questions.ratings]
kind = "keyvalue"
field = "rating"
epsilon = 1.0

[questions.changes]
kind = "changes"
field = "theme"
epsilon = 2.0
steps = 8
changes = 3

[questions.itemsets]
kind = "itemsets"
field = "basket"
epsilon = 4.0
k = 4
start = "2026-12-01T00:00Z"

[questions.items]
kind = "itemsets"
of = "items"
field = "basket"
epsilon = 4.0
k = 4
start = "2026-12-01T00:00Z"

[questions.top]
kind = "top"
field = "word"
epsilon = 4.0
start = "2026-12-01T00:00Z"
every = "1d"
k = 2
longest = 4
query_limit = 4096
"""
HEAD += """
[fields.side]
kind = "categorical"
names = ["left", "right"]

[questions.grouped]
kind = "histogram"
field = "theme"
by = ["age", "side"]
epsilon = 1.0

[questions.grouped-mean]
kind = "mean"
field = "age"
by = "theme"
epsilon = 1.0

[questions.table]
kind = "table"
columns = ["page", "theme"]
epsilon = 1.0
"""
STREAM = """
[questions.{name}]
kind = "stream"
field = "{field}"
epsilon = 2.0
method = "{method}"
w = 4
"""


def golden_collection() -> Collection:
    """Every kind of question, and every method for shares and for means."""
    text = HEAD
    for method in METHODS:
        for field in ("theme", "age"):
            text += STREAM.format(name=f"{method.lower()}-{field}", field=field, method=method)
    return read_collection(text)


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
    said: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    told = 0
    while told < steps and talk.message is not None:
        if isinstance(talk.message, Release) and told + 1 == SNAPSHOT:
            state = json.loads(json.dumps(memory.state()))
        heard, asks = talk.listen(), talk.asks
        if isinstance(heard, Release):
            told += 1
            said.append(released(heard))
        elif isinstance(heard, Count):
            counted = count(heard)
            named = {"count": heard.candidates_json(), "n": counted.n, "support": counted.support.tolist()}
            said.append({**named, "places": list(counted.places), "tested": counted.tested})
            talk.reply_count(counted)
        else:
            sketches = [hear(ask) for ask in asks]
            for ask, sketch in zip(asks, sketches, strict=True):
                said.append({"ask": ask.ask_id, "n": sketch.n, "counts": sketch.counts.tolist()})
            talk.reply_all(sketches)
    return {"said": said, "snapshot": state}


def released(release: Release) -> dict[str, Any]:
    """A release as it is stored."""
    row = release_row(release, collection="", question="", time=0.0, minimum_batch=1)
    return {"release": json.loads(row.payload)}


class Crowd:
    """People who answer; what they do changes half way."""

    def __init__(self) -> None:
        self.states: dict[int, Any] = {}
        self.kept: dict[str, Reports] = {}

    def __call__(self, ask: Ask) -> Sketch:
        """The sketch of everyone who is asked."""
        mechanism, rng = ask.mechanism, Random(seed=f"golden {ask.ask_id}")
        dark = 2 if ask.step < 6 else 7
        share = ask.cohort.length / 2**32
        people = range(round(PEOPLE * share))
        if isinstance(mechanism, ChangeStream):
            return self.symbols(mechanism, ask.step, [int(person % 10 < dark) for person in range(60)], rng)
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

    def symbols(self, symbols: ChangeStream, step: int, values: list[int], rng: Random) -> Sketch:
        """Sixty devices, of which ten are away in every fourth step."""
        counted = symbols.empty()
        at = FIRST + step - 1
        for person in range(50 if step % 4 == 3 else 60):
            new = person not in self.states or symbols.place(at)[1] == 1
            state, paid = symbols.enroll(1, rng) if new else self.states[person], np.array([new])
            self.states[person], *said = symbols.step(state, at, [values[person]], rng, paid)
            counted = counted + symbols.accumulate(symbols.with_enrolment(self.states[person], *said, paid)[0])
        return counted


def _age(person: int) -> float | None:
    return float(person % 100) if person % 7 else None


def replayed(collection: Collection, question: str, kept: dict[str, Any]) -> dict[str, Any]:
    """What a protocol says to the sketches of a transcript."""
    heard = iter([one for one in kept["said"] if "ask" in one])
    counts = iter([one for one in kept["said"] if "count" in one])

    def counted(_count: Count) -> CountResult:
        told = next(counts)
        return CountResult(told["n"], np.array(told["support"], dtype=np.int64), tuple(told["places"]), told["tested"])

    return transcript(collection, question, lambda ask: sketch_of(ask, next(heard)), counted)


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
