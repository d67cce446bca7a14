"""A server that signs, asks and answers whatever it likes hears no more than the smallest promise that was ever made."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from hubbub.collection import Keys

HERE = Path(__file__).parent
_adversary = run_path(str(HERE / "adversary.py"))


def play(node: list[str], bundle: Path, seeds: range) -> tuple[dict[int, list[str]], Counter[str], int]:
    """What is wrong in the histories of these seeds, what was refused in them, and how much was answered."""
    keys = Keys.new()
    adversaries = [_adversary["Adversary"](seed, keys) for seed in seeds]
    given = "".join(f"{json.dumps(adversary.history())}\n" for adversary in adversaries)
    done = subprocess.run(
        [*node, str(HERE / "adversary.mjs")],
        env={"HUBBUB_JS": str(bundle)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wrong, refused, answered = {}, Counter[str](), 0
    for seed, adversary, line in zip(seeds, adversaries, done.stdout.splitlines(), strict=True):
        told: dict[str, Any] = json.loads(line)
        refused.update(told["errors"])
        answered += len(told["answers"])
        found = _adversary["judge"](adversary, told)
        if found:
            wrong[seed] = found
    return wrong, refused, answered


@pytest.mark.parametrize("histories", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_promise_is_broken(built: Path, node: list[str], histories: int) -> None:
    answered, refused = 0, Counter[str]()
    for first in range(0, histories, 250):
        wrong, why, count = play(node, built / "internals.mjs", range(first, min(first + 250, histories)))
        assert not wrong
        answered += count
        refused.update(why)
    assert answered > 3 * histories
    print(answered, refused)
