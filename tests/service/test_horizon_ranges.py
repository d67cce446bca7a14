"""Ranges of a horizon's steps at a collector: by the API and the page, after a restart, and for few people."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.mechanisms.stateful import States
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.service.collector.candidates import range_of_steps
from hubbub.service.kept.archive import ReportsMissing
from hubbub.service.rounds.releases import read_ended, told_release
from tests.service.web import AUTHORIZED, problem, site
from tests.shared.in_process import World, run_in, send_reports
from tests.shared.loopback import Loopback
from tests.shared.small_collections import collection_text

PLACE = {"kind": "categorical", "names": ["home", "work", "away"]}
KEYS: dict[str, Any] = {"kind": "changes", "epsilon": 3.0, "steps": 6, "queries": "range"}
TEXT = collection_text(
    "lives",
    "Lives",
    schedule={"step": "1h", "lateness": "10s", "retention": "1d"},
    privacy={"user": 100.0, "minimum_batch": 200},
    fields={"place": PLACE, "awake": {"kind": "ordinal", "size": 2}},
    questions={
        "where": {**KEYS, "field": "place", "changes": 5},
        "both": {**KEYS, "fields": ["place", "awake"], "changes": 7, "mechanism": "NetSub", "fanout": 3},
        "now": {"kind": "histogram", "field": "place", "epsilon": 1.0},
    },
)
LIVES = load_collection(TEXT)
N, HOUR, BEGINS = 12_000, 3600, 12
PATH = "/v1/collections/lives/questions"


class MovingCrowd:
    """People who move at most twice in a horizon, and wake or fall asleep once; they answer each step once."""

    def __init__(self, n: int = N) -> None:
        draws = np.random.default_rng(5)
        self.n, self.circle = n, draws.integers(0, 1 << 32, n, dtype=np.uint64)
        times, places = np.sort(draws.integers(1, 9, (n, 2)), axis=1), draws.integers(0, 3, (n, 3))
        rows = np.zeros((6, n), dtype=[("place", "i8"), ("awake", "i8")])
        for at in range(6):
            rows["place"][at] = places[np.arange(n), (times <= at).sum(axis=1)]
            rows["awake"][at] = at >= times[:, 0]
        self.rows, self.states = rows, dict[tuple[str, int], States]()

    def truth(self, question: str, first: int, last: int) -> np.ndarray:
        """The mean shares of the steps of the horizon, which are counted from 0."""
        here = self.rows[first : last + 1]
        shares = [np.mean(here["place"] == place) for place in range(3)]
        return np.array([*shares, *([here["awake"].mean()] if question == "both" else [])])

    def send_all(self, world: World) -> None:
        for opened in world.open:
            stream, ask = opened.ask.mechanism, opened.ask
            if not isinstance(stream, ChangeStream):
                continue
            step = opened.name.step
            horizon, at = stream.place(step)
            here = np.flatnonzero(ask.cohort.holds(self.circle))
            rng, key = Random(seed=f"{ask.ask_id} {step}"), (stream.spec_id, horizon)
            new = np.full(here.size, key not in self.states)
            states = stream.enroll(here.size, rng) if new.all() else self.states[key]
            row = self.rows[at - 1][here]
            values = ask.view(row["place"] if opened.question == "where" else row)
            states, reports, speaks = stream.step(states, step, values, rng, new)
            self.states[key] = states
            reports, _ = stream.with_enrolment(states, reports, speaks, new)
            ids = rng.bytes(16 * len(reports))
            receipts = [send_reports(world.collector, opened, reports, ids) for _ in range(2)]  # each upload twice
            assert [receipt.accepted for receipt in receipts] == [len(reports), 0]


def horizon(world: World, crowd: MovingCrowd, begins: int, steps: int = 6) -> World:
    """Let the crowd live through some steps; the collector is another one from the fourth on."""
    for at in range(steps):
        world.at((begins + at) * HOUR + 20)
        crowd.send_all(world)
        if at == 3:
            world.begin().at((begins + at) * HOUR + 30)
    return world.at((begins + steps) * HOUR + 20)


class Lives(NamedTuple):
    """A collector that has heard a horizon and the beginning of the next, and requests to it."""

    world: World
    crowd: MovingCrowd
    client: Loopback

    def get(self, path: str, question: str = "where") -> Any:
        return self.client.get(f"{PATH}/{question}/{path}", headers=AUTHORIZED)


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    world, crowd = World(LIVES, BEGINS * HOUR), MovingCrowd()
    horizon(world, crowd, BEGINS)
    horizon(world, crowd, BEGINS + 6, steps=2)
    with site(world.collector, pages=True) as client:
        yield Lives(world, crowd, client)


@pytest.mark.parametrize("question", ["where", "both"])
def test_a_range_by_the_api_has_its_own_interval(lives: Lives, question: str) -> None:
    """21 means are within 4.2 standard errors: once in 1,700 times one is not."""
    for first, last in ((0, 5), (1, 4), (2, 2)):
        body = lives.get(f"range?from={BEGINS + first}&to={BEGINS + last}", question).json()
        assert (body["first"], body["last"], body["as_of"]) == (BEGINS + first, BEGINS + last, BEGINS + 5)
        mean, total = body["mean"], body["sum"]
        value, variance = np.array(mean["value"]), np.array(mean["variance"])
        assert np.abs((value - lives.crowd.truth(question, first, last)) / np.sqrt(variance)).max() < 4.2
        assert total["value"] == pytest.approx(value * (last - first + 1))
        assert (mean["kind"], total["kind"], mean["n"]) == ("share", "quantity", N)
        assert np.array(mean["high"]) - mean["low"] == pytest.approx(2 * 1.959964 * np.sqrt(variance))
        assert (body["due"], body["lost"]) == (body["came"], [0.0] * len(value))
    assert mean["labels"] == (["home", "work", "away"] if question == "where" else
                              ["place: home", "place: work", "place: away", "awake"])  # fmt: skip


def test_a_range_is_narrower_than_its_steps_and_open_ends_are_the_horizons(lives: Lives) -> None:
    whole = lives.get(f"range?to={BEGINS + 5}").json()
    assert (whole["first"], whole["steps"]) == (BEGINS, 6)
    steps = [lives.get(f"range?from={BEGINS + at}&to={BEGINS + at}").json()["sum"] for at in range(6)]
    width = sum(step["high"][0] - step["low"][0] for step in steps)
    assert whole["sum"]["high"][0] - whole["sum"]["low"][0] < 0.8 * width
    latest = lives.get("range").json()
    assert (latest["first"], latest["last"], latest["as_of"]) == (BEGINS + 6, BEGINS + 7, BEGINS + 7)
    ninety = lives.get(f"range?to={BEGINS + 5}&level=0.9").json()["mean"]
    assert ninety["high"][0] < whole["mean"]["high"][0]


@pytest.mark.parametrize(
    ("path", "question", "status", "words"),
    [
        (f"range?from={BEGINS + 4}&to={BEGINS + 7}", "where", 400, f"a step from {BEGINS + 6} to {BEGINS + 7}"),
        (f"range?from={BEGINS + 3}&to={BEGINS + 2}", "where", 400, f"a step from {BEGINS} to {BEGINS + 2}"),
        (f"range?to={BEGINS + 9}", "where", 400, f"a step from {BEGINS + 6} to {BEGINS + 7}, the last"),
        ("range?to=900", "where", 404, "no such release"),
        ("range?to=-1", "where", 404, "no such release"),
        ("range?to=x", "where", 400, "an integer"),
        ("range", "now", 404, "no values over a horizon"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(
    lives: Lives, path: str, question: str, status: int, words: str
) -> None:
    answer = lives.get(path, question)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_releases_do_not_tell_the_sums_of_their_reports(lives: Lives) -> None:
    rows = lives.world.rows("where")
    assert all(read_ended(row) is not None for row in rows)
    assert "ended" not in json.dumps(lives.get("releases").json())
    assert not hasattr(told_release(rows[0]), "ended")


def test_the_page_asks_for_a_range(lives: Lives) -> None:
    page = lives.client.get(f"/results/lives/where?from={BEGINS + 1}&to={BEGINS + 4}").text
    assert "The mean of 4 steps" in page
    assert "Over a range of steps" in page
    assert f'value="{BEGINS + 1}"' in page
    refused = lives.client.get(f"/results/lives/where?from={BEGINS + 1}&to={BEGINS + 7}").text
    assert "a range is of one horizon" in refused
    assert "The mean of 2 steps" in lives.client.get("/results/lives/where?from=x").text
    assert "Over a range of steps" not in lives.client.get("/results/lives/now").text


def test_ranges_of_few_people_are_withheld() -> None:
    """Of 400 people, fewer than 200 are on the lowest level: what it alone can tell is not told."""
    world = horizon(World(LIVES, BEGINS * HOUR), MovingCrowd(400), BEGINS)
    with site(world.collector, pages=True) as client:
        step = f"range?from={BEGINS + 1}&to={BEGINS + 1}"
        answer = client.get(f"{PATH}/both/{step}", headers=AUTHORIZED).json()
        withheld = "on a level that is needed, fewer than 200 reports came at the end of an interval"
        assert answer["mean"]["withheld"] == withheld
        assert (answer["mean"]["value"], answer["sum"]["value"], answer["lost"]) == (None, None, None)
        assert "Withheld: on a level" in client.get(f"/results/lives/both?from={BEGINS + 1}&to={BEGINS + 1}").text
        assert client.get(f"{PATH}/both/releases/latest", headers=AUTHORIZED).json()["value"] is not None
        told = client.get(f"{PATH}/where/range", headers=AUTHORIZED).json()["mean"]  # no level has 200 reports
        assert (told["value"], told["withheld"]) == (None, "0 reports; at least 200 are needed")


def test_ranges_stay_when_reports_are_deleted() -> None:
    world = horizon(World(LIVES, BEGINS * HOUR), MovingCrowd(2_000), BEGINS)
    steps = {"first": BEGINS + 1, "last": BEGINS + 4}
    before = range_of_steps(world.collector, LIVES, "where", **steps)
    assert before is not None
    world.begin().at((BEGINS + 60) * HOUR)
    assert not world.store.closed_asks(LIVES.collection_id, "where", 0, BEGINS + 6)
    assert range_of_steps(world.collector, LIVES, "where", **steps) == before
    run_in(world.store, "DELETE FROM releases WHERE question = ? AND step = ?", "where", BEGINS + 1)
    with pytest.raises(ReportsMissing, match="releases of earlier steps are missing"):
        range_of_steps(world.collector, LIVES, "where", **steps)
    with site(world.collector) as client:
        after = client.get(f"{PATH}/where/range?to={BEGINS + 5}", headers=AUTHORIZED)
        assert (after.status_code, problem(after)) == (409, "reports_missing")
