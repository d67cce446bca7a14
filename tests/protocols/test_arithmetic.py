"""The arithmetic of every protocol, next to its number: fixed sketches in, the same asks, releases and snapshots out.

A collector that is upgraded goes on from what an older one stored, unless the number of a protocol's arithmetic says
that it cannot. So whoever changes what a protocol asks, releases or remembers increases the number.
"""

import json
from typing import Any

import numpy as np
import pytest

from hubbub.core.estimate import Estimate
from hubbub.protocols.driver import Conversation, Count, CountResult, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.window import METHODS
from hubbub.protocols.window.filters import dissimilarity
from hubbub.questions import QUESTIONS as KINDS
from hubbub.service.rounds.releases import alike
from tests.golden.make_transcripts import FIRST, SNAPSHOT, golden_collection, path_of, released, replayed, sketch_of

COLLECTION = golden_collection()
QUESTIONS = sorted(COLLECTION.questions)


def golden_transcript(question: str) -> dict[str, Any]:
    path = path_of(COLLECTION, question)
    assert path.exists(), f"{path.name} is missing: run tests/golden/make_transcripts.py, and add what it makes"
    transcript: dict[str, Any] = json.loads(path.read_text())
    return transcript


def reproduces(question: str) -> bool:
    golden = golden_transcript(question)
    try:
        return alike(golden["said"], (replay := replayed(COLLECTION, question, golden))["said"]) and alike(
            golden["snapshot"], replay["snapshot"]
        )
    except StopIteration:  # it asks more often
        return False


@pytest.mark.parametrize("question", QUESTIONS)
def test_changed_arithmetic_has_a_higher_number(question: str) -> None:
    number = COLLECTION.questions[question].arithmetic
    assert reproduces(question), (
        f"{question}: what its protocol asks, releases or remembers has changed. If that is meant, increase the number "
        f"of its arithmetic, {number}: of a method in hubbub.protocols.window.METHODS, else ARITHMETIC in "
        "hubbub.protocols.steady, .statistic, .change_protocol, .topl.stream or .heavy_hitters.pem. Then run "
        "tests/golden/make_transcripts.py."
    )


@pytest.mark.parametrize("question", [name for name in QUESTIONS if COLLECTION.terms[name].study is None])
def test_it_goes_on_from_the_golden_snapshot(question: str) -> None:
    golden = golden_transcript(question)
    ends = [place for place, entry in enumerate(golden["said"]) if "release" in entry]
    memory = Memory(golden["snapshot"])
    conversation = Conversation(COLLECTION.protocol(question, memory, first=FIRST))
    entries_left = iter(golden["said"][ends[SNAPSHOT - 1] + 1 :])
    for entry in entries_left:
        message = conversation.listen()
        if isinstance(message, Release):
            assert alike(released(message), entry)
        elif isinstance(message, Count):
            conversation.reply_count(CountResult(entry["n"], np.array(entry["support"], dtype=np.int64)))
        else:
            entries = [entry, *(next(entries_left) for _ in conversation.asks[1:])]
            assert [ask.ask_id for ask in conversation.asks] == [part["ask"] for part in entries]
            conversation.reply_all([sketch_of(ask, part) for ask, part in zip(conversation.asks, entries, strict=True)])


def test_every_kind_and_method_has_a_transcript() -> None:
    questions = COLLECTION.questions.values()
    ours = {kind for kind in KINDS if KINDS[kind].__module__.startswith("hubbub.")}
    assert {question.kind for question in questions} == ours
    assert {getattr(question, "method", None) for question in questions if question.kind == "stream"} == set(METHODS)


def test_a_small_change_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a distance that decides, or in the variance of a release alone."""
    further = "hubbub.protocols.window.ldp_ids.dissimilarity"
    monkeypatch.setattr(further, lambda fresh, last: dissimilarity(fresh, last) + 1)
    assert not reproduces("lpa-theme")
    monkeypatch.undo()
    assert reproduces("lpa-theme")
    of_population = Estimate.of_population
    monkeypatch.setattr(Estimate, "of_population", lambda self, n: of_population(self, n + n // 100))
    assert not reproduces("lpa-theme")
