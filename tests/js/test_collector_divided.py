"""Browsers and Python's clients divide the questions of a collection: a device answers one, the same at every step."""

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.protocols.ask import group_on_circle
from hubbub.protocols.driver import Conversation, Release
from tests.client.device import store_of
from tests.js.both_clients import BothClients, OpenBothClients
from tests.shared.small_collections import THEME, collection_text

EACH, STEP, STEPS = 30, 8, 2
TOML = collection_text(
    "parts",
    "One question each",
    schedule={"step": "1h", "lateness": "60s"},
    privacy={"event": 8.0, "minimum_batch": 5},
    population={"divide": True},
    fields={"theme": THEME, "age": {"kind": "numeric", "low": 0.0, "high": 100.0, "cells": 10}},
    questions={
        "ages": {"kind": "release", "field": "age", "epsilon": 8.0, "r": 4},
        "moves": {"kind": "changes", "field": "theme", "epsilon": 8.0, "steps": 8, "changes": 2},
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 8.0},
    },
    override={"minimum_batch_below_20": "a test"},
)
VALUES = """await client.record("theme", "dark");
await client.record("age", 50);"""


def test_each_device_answers_one_question_and_releases_are_of_all_devices(both_clients: OpenBothClients) -> None:
    """A group of 60 devices has fewer than 5 of them, which withholds its releases, once in 200,000 times."""
    parts = load_collection(TOML)
    here, names = both_clients(parts, parts.opens(STEP) + 1.0), sorted(parts.questions)
    groups: list[list[int]] = []
    for step in range(STEP, STEP + STEPS):
        here.go(step)
        before = here.accepted if groups else 0
        mine = []
        for number in range(EACH):
            with here.python(number, Random(seed=f"{step} {number}")) as device:
                device.record("theme", "dark")
                device.record("age", 50.0)
                mine.append(group_on_circle(store_of(device).device_key, "parts", len(names)))
        at_python = here.accepted - before
        here.browsers(EACH, VALUES)
        groups.append(mine)
        # A stream of changes is silent but for the first step and the ends of a level's intervals.
        others = EACH - mine.count(names.index("moves"))
        assert others <= at_python <= EACH
    here.go(STEP + STEPS)
    assert groups[0] == groups[1]
    total = 0
    for number, name in enumerate(names):
        releases, said = here.releases(name), replayed(here, name)
        assert [release["step"] for release in releases] == list(range(STEP, STEP + STEPS))
        (n,) = {release["n"] for release in releases}  # the same devices at both steps
        total, last = total + n, releases[-1]
        assert n > groups[0].count(number)  # browsers are among them
        for release, expected in zip(releases, said, strict=True):
            assert release["population"] == pytest.approx(expected.n, rel=1e-3)
            # Of a stream of changes, levels that nobody is on are estimated to have people too.
            assert expected.n == pytest.approx(len(names) * n, rel=1e-3) or (
                name == "moves" and expected.n > len(names) * n
            )
            known = np.isfinite(expected.estimate.variance)
            assert [value is not None for value in release["variance"]] == known.tolist()
            if known.all():
                assert release["value"] == pytest.approx(expected.estimate.value.tolist())
        if name == "ages":
            mean, error = last["value"][0], np.sqrt(last["variance"][0])
            assert abs(mean - 50.0) < 6 * error < 60
            sums = last["estimates"]["Sums"]
            assert sums["value"][0] == pytest.approx(len(names) * n * mean)
            assert abs(sums["value"][1] - 2 * EACH * STEPS * 50.0) < 6 * np.sqrt(sums["variance"][1])
        elif name == "popular":
            assert last["labels"][:2] == ["light", "dark"]
            assert last["value"][1] == pytest.approx(1.0, abs=0.3)
    assert total == 2 * EACH


def replayed(here: BothClients, name: str) -> list[Release]:
    """What the protocol of a question says to what was heard."""
    terms = here.collection.terms[name]
    talk = Conversation(here.collection.protocol(name, first=STEP), rounds=terms.rounds, parts=terms.parts)
    sketches, said = here.sketches(name, STEP), []
    for _ in range(STEPS):
        talk.reply_all([sketches.pop(0) for _ in talk.asks])
        release = talk.listen()
        assert isinstance(release, Release)
        said.append(release)
        talk.listen()
    return said
