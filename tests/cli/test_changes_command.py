"""`hubbub changes`, on a file and on a collector."""

import json
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import Hubbub
from tests.dashboard.pages_visit import TOKEN, Site
from tests.service.test_horizon_ranges import BEGINS, HOUR, LIVES, MovingCrowd, horizon
from tests.shared.in_process import World

N = 3000


def rows() -> list[tuple[str, int, str, str]]:
    """Everybody begins somewhere at step 5; a half moves to another place at step 8, a third wakes at step 7."""
    places = ["home", "work", "[b]away"]
    begin = [(f"d{number}", 5, places[number % 2], "0") for number in range(N)]
    moved = [(f"d{number}", 8, places[2], "") for number in range(0, N, 2)]
    woke = [(f"d{number}", 7, "", "1") for number in range(0, N, 3)]
    return [*begin, *moved, *woke, ("d0", 12, "home", "")]


def write(hubbub: Hubbub) -> object:
    return hubbub.write(
        "lives.csv", "device,step,place,awake\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows())
    )


OPTIONS = ["-f", "place", "-e", 6, "--changes", 5, "--seed", 1, "--truth"]


def test_a_range_of_a_file(hubbub: Hubbub) -> None:
    """Six shares within 4.2 standard errors: once in 6,000 times one is not."""
    path = write(hubbub)
    body = hubbub.answer("changes", path, *OPTIONS, "--from", 6, "--to", 9)
    mean = body["mean"]
    assert dict(zip(mean["labels"], body["truth"], strict=True)) == {"home": 0.25, "work": 0.5, "[b]away": 0.25}
    value, truth, variance = (np.array(numbers) for numbers in (mean["value"], body["truth"], mean["variance"]))
    assert np.abs((value - truth) / np.sqrt(variance)).max() < 4.2
    assert (body["first"], body["last"], body["as_of"], mean["n"]) == (6, 9, 12, N)
    both = ["-f", "place", "-f", "awake=0..1", "-e", 6, "--changes", 6, "--seed", 1, "--truth"]
    several = hubbub.answer("changes", path, *both, "--mechanism", "NetSub", "--fanout", 3)
    assert several["mean"]["labels"] == ["place: [b]away", "place: home", "place: work", "awake"]
    assert several["truth"][3] == pytest.approx(6 / 8 / 3)
    value, truth, variance = (np.array(each) for each in (
        several["mean"]["value"], several["truth"], several["mean"]["variance"]))  # fmt: skip
    assert np.abs((value - truth) / np.sqrt(variance)).max() < 4.2


def test_the_table(hubbub: Hubbub) -> None:
    shown = hubbub.shown("changes", write(hubbub), *OPTIONS, "--from", 6, "--to", 9)
    for text in ("steps 6 to 9, 3,000 devices", "[b]away", "25.00%", "95% interval"):
        assert text in shown
    clipped = hubbub.shown("changes", write(hubbub), "-f", "place", "-e", 6, "--changes", 1, "--seed", 1)
    assert "changed more often than it may tell" in clipped


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", 1, "-k", 2], "field: got nothing"),
        (["-f", "place", "-k", 2], "epsilon: got nothing"),
        (["-f", "place", "-e", 1], "changes: got nothing"),
        (["-f", "place", "-e", 1, "-k", 0], "changes: got 0"),
        (["-f", "place", "-e", 1, "-k", 2, "--to", 13], "steps from 5 to 12"),
        (
            ["-f", "place", "-e", 1, "-k", 2, "--queries", "median"],
            "queries: got 'median'; allowed: one of mean, prefix",
        ),
        (["-f", "place", "-e", 1, "-k", 2, "--mechanism", "CoCo"], "mechanism: got 'CoCo'; allowed: ExSub or NetSub"),
        (["-f", "place", "-e", 1, "-k", 2, "--step", "place"], "place: got '[b]away'; allowed: whole numbers"),
        (["-f", "place", "-e", 1, "-k", 2, "--step", "awake"], "awake: got '(missing)'"),
        (["-f", "place", "-e", 1, "-k", 2, "--device", "awake"], "awake: got '(missing)'; allowed: a device"),
        (["-f", "place=0..4", "-e", 1, "-k", 2], "place: got"),
        (["-f", "boat", "-e", 1, "-k", 2], "column: got 'boat'; allowed: one of device, step, place, awake"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(hubbub: Hubbub, options: list[object], message: str) -> None:
    assert message in hubbub.refused("changes", write(hubbub), *options)


def test_a_collector_is_asked_for_the_same(hubbub: Hubbub) -> None:
    world = horizon(World(LIVES, BEGINS * HOUR), MovingCrowd(), BEGINS)
    served = Site(world.collector, None)
    try:

        def run(*more: Any) -> Any:
            done = hubbub("changes", served.address, "--question", "where", *more, HUBBUB_TOKEN=TOKEN)
            assert done.exit_code == 0, done.output
            return done.stdout

        steps = ["--from", BEGINS + 1, "--to", BEGINS + 4]
        body = json.loads(run(*steps, "--json"))
        assert (body["first"], body["last"], body["as_of"]) == (BEGINS + 1, BEGINS + 4, BEGINS + 5)
        assert np.array(body["mean"]["value"]) == pytest.approx(MovingCrowd().truth("where", 1, 4), abs=0.15)
        assert f"steps {BEGINS + 1} to {BEGINS + 4}, 12,000 devices" in run(*steps)
        assert "both, where" in hubbub("changes", served.address, HUBBUB_TOKEN=TOKEN).stderr
    finally:
        served.close()
