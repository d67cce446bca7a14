"""Pages of kinds of their own: key-value questions, streams of changes, and vectors."""

import re
from pathlib import Path

import numpy as np
import pytest

from hubbub.authoring import load_collection
from hubbub.core.estimate import Estimate
from hubbub.dashboard.answers import Value
from hubbub.dashboard.reader import Reader
from hubbub.dashboard.results import question_page, results_page
from hubbub.dashboard.vectors import length_of, vector_figure, vector_headline
from hubbub.protocols.driver import Release
from hubbub.service.base.api import ReleaseBody
from hubbub.service.http.service import Service
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds.releases import release_row, told_release
from tests.client.test_client_models import ROUNDS, World
from tests.dashboard.pages_fleet import EXAMPLES, PageFleet, serve
from tests.dashboard.pages_visit import Get, pages_of

DAY = 86400
PEOPLE = [((0, 5.0), (1, 2.0)), ((0, 4.0),), ((1, 3.0), (2, 3.0)), ((5, 4.5),)]


@pytest.fixture(scope="module")
def ratings() -> Get:
    collection = load_collection(EXAMPLES / "ratings.toml")
    fleet = PageFleet(collection, 8000, lambda step: {"films": PEOPLE * 2000}, seed=1)
    return pages_of(serve([fleet], start=collection.opens(400) + 600, seconds=3 * DAY))


def test_conditional_means_are_bars_with_intervals_and_grey_where_nothing_is_known(ratings: Get):
    rows = ratings("/results/ratings/stars").page.bars()
    assert len(rows) == 8
    grey = {label for label, row in rows.items() if row.given.get("class") == "grey"}
    # Nobody holds these; that one of them seems to be held by some happens once in forty times each, here not.
    assert grey == {"Dune", "Eraserhead", "Gattaca", "Heat"}
    for label, row in rows.items():
        assert bool(row.all("rect")) == (label not in grey)
        assert ("not known" in row.text) == (label in grey)
    assert "4 values of which nothing is known yet" in ratings("/results/ratings/stars").text


def test_the_overview_says_which_is_the_highest(ratings: Get):
    text = ratings("/results/ratings").text
    assert "The highest is " in text
    assert "The most common is " in text  # of how many hold each
    assert "The mean of their shares" in text
    assert "numbers from 1 to 5 for at most 3 of 8 keys: " in ratings("/collections/ratings").text


def test_a_quantity_may_be_below_zero():
    assert Value(0, "a", -0.5, -0.9, -0.1, signed=True).standing == "clear"
    assert Value(0, "a", -0.5, -0.9, -0.1).standing == "zero"


class LosingFleet(PageFleet):
    """From the third hour on some of the reports are lost."""

    def bodies(self, window: OpenAsk) -> list[bytes]:
        bodies = super().bodies(window)
        return bodies[1:] if window.ask.step > 2402 and len(bodies) > 1 else bodies


def test_changes_are_shares_over_time_and_what_was_lost():
    """Everyone is at home for five hours."""
    collection = load_collection(EXAMPLES / "places.toml")
    fleet = LosingFleet(collection, 30_000, lambda _: {"place": np.zeros(30_000, dtype=np.int64)}, seed=1)
    get = pages_of(serve([fleet], start=collection.opens(2400) + 60, seconds=5 * 3600, then=1000))
    text = " ".join(element.text for element in get("/results/places/where").page.all("main"))
    assert "home is the most common" in text
    assert "home, step by step" in text
    assert "Devices enrolled" in text
    assert "the lost ones may have biased shares by up to" in text
    assert "1 once for 24 steps" in get("/privacy/places").text


def told(value: list[float], variance: float, *, n: int = 100, number: int = 0) -> ReleaseBody:
    update = Estimate(np.array(value), np.full(len(value), variance), n, kind="quantity")
    release = Release(step=0, estimates={"update": update, "model": update}, published=True, spent=0.1, n=1000.0)
    place = {"collection": "learn", "question": "model", "time": 0.0, "minimum_batch": 20}
    return told_release(release_row(release, **place, number=number))  # type: ignore[arg-type]


def test_the_length_is_freed_of_what_noise_adds() -> None:
    truth, variance = np.full(100, 0.1), 0.01
    draw = np.random.default_rng(1)
    lengths = [length_of(told((truth + 0.1 * draw.standard_normal(100)).tolist(), variance)) for _ in range(400)]
    known = [length for length in lengths if length is not None]
    assert len(known) == 400
    assert np.mean([length.value**2 for length in known]) == pytest.approx(1.0, abs=0.05)  # 4 standard errors
    inside = np.mean([length.low <= 1.0 <= length.high for length in known])
    assert 0.90 <= inside <= 0.99


def test_what_is_said_of_a_round() -> None:
    text = re.sub("<[^>]*>", "", vector_headline(told([3.0, 4.0], 0.0001, number=1), 5))
    assert text == "Round 2 of 5: the mean update is 5.000 (4.980 to 5.020) long."
    assert "nobody answered" in vector_headline(told([0.0], np.inf), 5)
    assert "Withheld: 3 reports" in vector_headline(told([1.0], 1.0, n=3), 5)


def test_one_round_is_no_chart() -> None:
    assert vector_figure("model", [told([1.0], 0.1)]) is None
    figure = vector_figure("model", [told([1.0], 0.1), told([2.0], 0.1, number=1), told([1.0], 1.0, n=3, number=2)])
    assert figure is not None
    assert re.findall("round [0-9]", figure)[-3:] == ["round 3", "round 2", "round 1"]


def test_the_pages_show_the_rounds(tmp_path: Path) -> None:
    world = World(tmp_path)
    for round in range(1, ROUNDS + 2):
        world.go(round)
        for number in range(60) if round < ROUNDS else ():
            with world.device(number) as device:
                device.tick()
                device.upload()
    collector = world.server.collector
    reader, collection = Reader(Service(collector)), collector.collections["learn"]
    for page in (question_page(reader, collection, "model"), results_page(reader, collection)):
        assert f"Withheld: {world.releases()[-1]['n']} reports; at least 20 are needed." in page
        assert len(set(re.findall("round [0-9]", page))) == ROUNDS
