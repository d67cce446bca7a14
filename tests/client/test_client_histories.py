"""The histories of the browser's tests: studies, parts, kept reports, and versions while a study runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.client.history_player import Player
from tests.client.local_server import KEYS
from tests.shared.recount import judge
from tests.shared.signed_history import Adversary

PLANTED = {
    "a version may postpone the end of a run": (48, "answer", "Answerer", "if ends > state.until:", "if False:"),
    "a version may raise what a run may tell": (309, "answer", "Answerer", "> state.limit:", "> terms.limit:"),
    "two parts of a round are answered": (8, "store", "Outbox", 'f"{round_name}:*"', "str(name)"),
    "a study counts as of its first answer": (6, "answer", "Answerer", "limit, until=ends)", "limit)"),
}
"""By what is wrong: a history that shows it, the module and its class, and what is changed in it."""
USED_BY = {"Answerer": "hubbub.client.respond", "Outbox": "hubbub.client.store"}


def play(folder: Path, seeds: Iterable[int], *, stop: bool = False) -> tuple[list[str], Counter[str], Counter[str]]:
    """What is wrong in these histories, what was refused in them, and how often each question was answered."""
    wrong: list[str] = []
    refused, answered = Counter[str](), Counter[str]()
    for seed in seeds:
        adversary = Adversary(seed, KEYS)
        history = adversary.history()
        record = Player(folder / str(seed), history["keys"]).play(history["events"])
        wrong += [f"history {seed}: {fault}" for fault in judge(adversary, record)]
        refused.update(error.partition(":")[0] for error in record["errors"])
        answered.update(answer["question"] for answer in record["answers"])
        if stop and wrong:
            break
    return wrong, refused, answered


@pytest.mark.parametrize("adopts", ["what promises no less", "any version"])
def test_no_promise_is_broken(folder: Path, request: pytest.FixtureRequest, adopts: str) -> None:
    if adopts == "any version":
        request.getfixturevalue("any_version")
    wrong, _, answered = play(folder, range(6))
    assert wrong == []
    assert answered.total() > 15


@pytest.mark.slow
@pytest.mark.usefixtures("any_version")
@pytest.mark.parametrize("part", range(20))
def test_no_promise_is_broken_in_ten_thousand_histories(folder: Path, part: int) -> None:
    wrong, refused, answered = play(folder, range(500 * part, 500 * (part + 1)))
    assert wrong == []
    # Something was answered, and everything was tried: else nothing would be shown.
    assert answered.total() > 1500
    assert min(answered[name] for name in "pqmnstz") > 100
    assert set(refused) >= {"arc", "budget", "limit", "mechanism", "part", "parts", "question", "round", "run", "view"}


@pytest.mark.usefixtures("any_version")
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    seed, name, changed, right, wrong = PLANTED[bug]
    source = Path(import_module(f"hubbub.client.{name}").__file__ or "")
    text = source.read_text(encoding="utf-8")
    assert text.count(right) == 1
    planted = ModuleType("planted")
    monkeypatch.setitem(sys.modules, "planted", planted)
    exec(compile(text.replace(right, wrong), str(source), "exec"), vars(planted))
    monkeypatch.setattr(f"{USED_BY[changed]}.{changed}", getattr(planted, changed))
    # Where that history has changed, another will do.
    assert play(folder, [seed, *range(300)], stop=True)[0]
