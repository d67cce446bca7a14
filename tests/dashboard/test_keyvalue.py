"""The pages of key-value questions: bars in the field's own unit, grey where nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from hubbub.authoring import load_collection
from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.pages import routes
from hubbub.dashboard.reader import Value
from hubbub.service.http.service import Service
from tests.dashboard.pages_fleet import EXAMPLES, PageFleet, serve
from tests.dashboard.pages_outline import Element, Outline
from tests.dashboard.pages_visit import ask

Get = Callable[[str], Any]
DAY = 86400
PEOPLE = [((0, 5.0), (1, 2.0)), ((0, 4.0),), ((1, 3.0), (2, 3.0)), ((5, 4.5),)]


@pytest.fixture(scope="module")
def get() -> Get:
    collection = load_collection(EXAMPLES / "ratings.toml")
    fleet = PageFleet(collection, 8000, lambda step: {"films": PEOPLE * 2000}, seed=1)
    collector = serve([fleet], start=collection.opens(400) + 600, seconds=3 * DAY)
    app = Starlette(routes=routes(ServiceReader(Service(collector))))
    return lambda path: ask(app, path)


def rows_of(page: Outline) -> dict[str, Element]:
    tables = [table for table in page.all("table") if table.given.get("class") == "bars"]
    return {row.below[0].text: row for table in tables for row in table.all("tr")[1:]}


def test_conditional_means_are_bars_with_intervals_and_grey_where_nothing_is_known(get: Get):
    page = Outline(get("/results/ratings/stars").text)
    rows = rows_of(page)
    assert len(rows) == 8
    grey = {label for label, row in rows.items() if row.given.get("class") == "grey"}
    # Nobody holds these; that one of them seems to be held by some happens once in forty times each, here not.
    assert grey == {"Dune", "Eraserhead", "Gattaca", "Heat"}
    for label, row in rows.items():
        assert bool(row.all("rect")) == (label not in grey)
        assert ("not known" in row.text) == (label in grey)
    assert "4 values of which nothing is known yet" in get("/results/ratings/stars").text


def test_the_overview_says_which_is_the_highest(get: Get):
    text = get("/results/ratings").text
    assert "The highest is " in text
    assert "The most common is " in text  # of how many hold each
    assert "The mean of their shares" in text
    assert "numbers from 1 to 5 for at most 3 of 8 keys: " in get("/collections/ratings").text


def test_a_quantity_may_be_below_zero():
    assert Value(0, "a", -0.5, -0.9, -0.1, signed=True).standing == "clear"
    assert Value(0, "a", -0.5, -0.9, -0.1).standing == "zero"
