"""Whoever sees a browser's uploads cannot tell what it recorded: not by what is answered, when, or at what length."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from hubbub.collection import Keys, seal
from hubbub.core.domain import Ordinal
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.js.tab import RunNode
from tests.shared.small_collections import changed

DAY = 86400
START = 20_000 * DAY
MEMO = Question.make(kind="memo", field="f", epsilon=0.5, permanent=1.0)
FIRST = Collection(
    name="c",
    title="Two questions about one field",
    fields={"f": Ordinal(3), "g": Ordinal(3)},
    questions={"shares": Question.make(kind="histogram", field="f", epsilon=1.0), "memo": MEMO},
    budget=Budget.of(user=6.0),
    step_seconds=DAY,
)
CHANGES: dict[str, dict[str, Any]] = {
    "a little less": {"budget": Budget.of(user=5.9)},
    "much more": {"budget": Budget.of(user=90.0)},
    "shorter steps": {"step_seconds": DAY // 4},
    "a window": {"budget": Budget.of(window=(2.0, 3), user=6.0)},
    "another memo": {"questions": {**FIRST.questions, "memo": changed(MEMO, permanent=1.5)}},
    "one more memo": {"questions": {**FIRST.questions, "other": changed(MEMO, field="g")}},
    "no memo": {"questions": {"shares": FIRST.questions["shares"]}},
}


DAYS = 4
EVERY = list(itertools.product((0, 1, None), repeat=DAYS))
FEW = [*itertools.product((0, None), repeat=DAYS), (1, 1, 1, 1), (0, 1, 0, 1), (1, None, 0, 1)]
"""Whatever is told must not depend on whether anything was recorded, nor on whether it was the same or changed."""


def served(second: Collection, keys: Keys) -> list[list[Any]]:
    """By day: the time, and the signed documents. After half of the days there is a new version."""
    found = []
    for day in range(DAYS):
        collection = FIRST if day < DAYS // 2 else second
        now = START + day * DAY
        step = collection.step_at(now)
        asks = []
        for name in collection.questions:
            ask = next(collection.protocol(name))
            assert isinstance(ask, Ask)
            place: dict[str, Any] = {"question": name, "run": 0, "round": 1, "part": 0, "step": step}
            asks.append({**place, "closes": collection.opens(step + 1), "ask": replace(ask, step=step).spec()})
        head: dict[str, Any] = {"format": 1, "collection": "c", "version": collection.version, "step": step}
        published = {**head, "asks": asks, "closes": collection.opens(step + 1)}
        documents = seal(collection.spec(), keys.private), seal(published, keys.private)
        found.append([["time", 1000 * now, 1000 * now], ["serve", *documents]])
    return found


def history(days: list[list[Any]], values: tuple[int | None, ...]) -> list[list[Any]]:
    """A device that records these values in every field, one per day, or nothing."""
    events: list[list[Any]] = []
    for day, value in zip(days, values, strict=True):
        first = [] if events else [["open", 0]]
        recorded = [] if value is None else [["record", field, value] for field in FIRST.fields]
        events += [*day, *first, *recorded, ["tick", 0]]
    return events


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cover", [False, True])
@pytest.mark.parametrize("recorded", [FEW, pytest.param(EVERY, marks=pytest.mark.slow)], ids=["few", "every"])
def test_all_histories_look_alike(
    run_node: RunNode, change: str, cover: bool, recorded: list[tuple[int | None, ...]]
) -> None:
    keys, second = Keys.new(), replace(FIRST, version=2, cover=cover, **CHANGES[change])
    days = served(second, keys)
    histories = [history(days, values) for values in recorded]
    given = "".join(f"{json.dumps({'keys': keys.public.hex(), 'events': events})}\n" for events in histories)
    seen = set()
    for line in run_node("browser_adversary.mjs", given=given).splitlines():
        answers = json.loads(line)["answers"]
        names = "version", "question", "step", "round", "cover"
        seen.add(tuple((*(each[name] for name in names), len(each["report"])) for each in answers))
    (look,) = seen
    assert len(look) >= 4
