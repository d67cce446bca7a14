"""The demonstration of shuffled reports: real shufflers, real HTTP, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from hubbub.authoring import load_collection
from hubbub.collection.shuffle_route import RouteShuffler, ShuffleRoute
from hubbub.core.errors import InvalidValue
from hubbub.demo.shuffled import ShuffledDemo, collection_file

COMMAND = [sys.executable, "-c", "from hubbub.cli import main; main()", "demo", "--trust", "shuffle"]
HANGS = 150.0  # seconds after which a test gives up, not a measure of anything


def test_its_file_is_a_good_collection() -> None:
    shufflers = tuple(RouteShuffler(f"http://127.0.0.1:{k}", f"{k}a" * 32, f"{k}b" * 32) for k in (1, 2))
    route = ShuffleRoute(shufflers=shufflers, collector_key="0c" * 32, delta=1e-6, least=100, fakes=50)
    collection = load_collection(collection_file(route, 8, 1_000_000))
    assert collection.shuffle == route
    assert collection.opens(0) == 1_000_000


@pytest.mark.parametrize("change", [{"devices": 10}, {"step_seconds": 2}])
def test_what_cannot_be_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        ShuffledDemo(**change)  # type: ignore[arg-type]


@pytest.mark.slow
def test_one_step_by_two_shufflers() -> None:
    """Devices, two shufflers and a collector in five processes; the numbers, the batch and who learns what."""
    done = subprocess.run(
        [*COMMAND, "--json", "--devices", "200"], capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["processes"] == 4
    batch = result["batch"]
    assert (batch["fakes"], batch["unreadable"], batch["repeated"]) == (600, 0, 0)
    assert 100 <= batch["people"] <= 200  # a busy machine may be late with some
    assert set(result["outcomes"]) == {"accepted"}
    assert result["outcomes"]["accepted"] >= batch["people"] + 600
    assert all(counts["batches handed"] >= 1 for counts in result["shufflers"])
    epsilons = [coalition["epsilon"] for coalition in result["coalitions"]]
    assert min(epsilons) == epsilons[0] < epsilons[-1] == max(epsilons)
    # 15 nearly independent intervals of 95%: fewer than 8 hold the truth with probability 2e-7.
    assert result["covered"] >= 8


@pytest.mark.slow
def test_nothing_is_left_behind() -> None:
    with ShuffledDemo(devices=50) as demo:
        processes = demo.processes
        assert len(processes) == 4
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
