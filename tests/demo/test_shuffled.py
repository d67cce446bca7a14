"""The demonstration of shuffled reports: real shufflers, real HTTP, and nothing left behind."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import load_collection
from hubbub.collection.shuffle_route import RouteShuffler, ShuffleRoute
from hubbub.core.errors import InvalidValue
from hubbub.demo.shuffled import ShuffledDemo, collection_file
from tests.cli.commands import Hubbub


def test_its_file_is_a_good_collection() -> None:
    shufflers = tuple(RouteShuffler(f"http://127.0.0.1:{k}", f"{k}a" * 32, f"{k}b" * 32) for k in (1, 2))
    route = ShuffleRoute(shufflers=shufflers, collector_key="0c" * 32, delta=1e-6, least=100, fakes=50)
    collection = load_collection(collection_file(route, 8, 1_000_000))
    assert collection.shuffle == route
    assert collection.opens(0) == 1_000_000
    without_fakes = replace(route, fakes=0)
    stream = load_collection(collection_file(without_fakes, 8, 1_000_000, stream=True))
    assert (stream.shuffle, stream.questions["went"].horizon) == (without_fakes, 4)


@pytest.mark.parametrize("change", [{"devices": 10}, {"step_seconds": 2}, {"stream": True, "trust": "oblivious"}])
def test_what_cannot_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        ShuffledDemo(**change)


def run(trust: str, *options: str, devices: int) -> Any:
    done = Hubbub(Path()).process("demo", "--trust", trust, *options, "--json", "--devices", devices)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_one_step_by_three_shufflers_of_shares() -> None:
    result = run("oblivious", devices=100)
    assert result["processes"] == 5
    (batch,) = result["batches"]
    assert (batch["fakes"], batch["unreadable"]) == (300, 0)
    assert 50 <= batch["people"] <= 100
    assert all(counts["batches handed"] >= 1 for counts in result["shufflers"])
    epsilons = [coalition["epsilon"] for coalition in result["coalitions"]]
    assert epsilons[0] < max(epsilons)
    assert epsilons[-1] == 0  # all shufflers, without the collector
    assert result["covered"] >= 8


@pytest.mark.slow
def test_one_step_by_two_shufflers() -> None:
    """Devices, two shufflers and a collector in five processes; the numbers, the batch and who learns what."""
    result = run("shuffle", devices=200)
    assert result["processes"] == 4
    (batch,) = result["batches"]
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
def test_a_stream_of_four_steps_by_two_shufflers() -> None:
    result = run("shuffle", "--stream", devices=400)
    assert {batch["step"] for batch in result["batches"]} == {0, 1, 2, 3}
    assert 4 <= len(result["batches"]) <= 7  # three levels
    assert result["present"] >= 20
    assert all(batch["people"] >= result["present"] and batch["fakes"] == 0 for batch in result["batches"])
    alone, *_, everyone = result["coalitions"]
    assert alone["epsilon"] < everyone["epsilon"] <= 2
    assert result["covered"] >= 2  # 4 intervals


@pytest.mark.slow
def test_nothing_is_left_behind() -> None:
    with ShuffledDemo(devices=50) as demo:
        processes = demo.processes
        assert len(processes) == 4
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
