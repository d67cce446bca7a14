"""Every page: sound markup, nothing from elsewhere; the notice of a clock in doubt, and the rates of the last hour."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from starlette.applications import Starlette

from hubbub.authoring import load_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import Keys, ManualClock
from hubbub.dashboard.ingest import rate_now
from hubbub.dashboard.layout import NAMES, address
from hubbub.dashboard.meter import Meter
from hubbub.dashboard.pages import routes
from hubbub.dashboard.reader import Reader
from hubbub.service.base.trusted_clock import ClockReading, TrustedClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from hubbub.service.store.sqlite import SqliteStore
from tests.dashboard.pages_outline import Outline
from tests.dashboard.pages_visit import Get, ask, pages_of

PAGES = [
    "/",
    "/results/emoji",
    "/results/emoji/popular",
    "/results/emoji/trend",
    "/results/emoji/trend?value=3",
    "/results/telemetry",
    *(
        f"/results/telemetry/{name}"
        for name in ("help_wanted", "platforms", "plugin_count", "slow_starts", "stability", "startup_time")
    ),
    "/ingest/emoji",
    "/ingest/telemetry",
    "/privacy/emoji",
    "/privacy/telemetry",
    "/collections/emoji",
    "/collections/telemetry",
    "/results/nothing",
]


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, get: Get) -> Outline:
    answered = get(request.param)
    assert answered.status == (404 if request.param.endswith("nothing") else 200)
    return answered.page


def test_ids_are_unique_and_whatever_is_referred_to_is_there(page: Outline):
    ids = [element.given["id"] for element in page.elements if "id" in element.given]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert element.given.get(name, ids[0]) in ids
        if element.given.get("href", "").startswith("#"):
            assert element.given["href"][1:] in ids


def test_landmarks_language_title_and_one_first_heading(page: Outline):
    (html,) = page.all("html")
    assert html.given["lang"] == "en"
    assert len(page.all("main")) == len(page.all("h1")) == len(page.all("title")) == 1
    assert page.all("a")[0].given == {"class": "skip", "href": "#main"}
    levels = [int(element.tag[1]) for element in page.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for element in (*page.all("nav"), *page.all("aside")):
        assert element.given["aria-label"]
    for element in page.all("section"):
        assert element.given["aria-labelledby"]


def test_every_drawing_is_labelled_or_stands_next_to_its_number(page: Outline):
    for element in page.all("svg"):
        if element.given.get("aria-hidden") == "true":
            assert element.above[-3:] == ("tbody", "tr", "td")
        else:
            assert element.given["role"] == "img"
            assert len(element.given["aria-label"]) > 10
    for element in (*page.all("progress"), *page.all("meter")):
        assert element.given["aria-label"]
    assert page.all("img") == []


def test_every_chart_has_a_table_and_every_table_says_what_it_is(page: Outline):
    for figure in page.all("figure"):
        if figure.given.get("class") != "mean":  # one number, which is its caption
            assert len(figure.all("table")) == 1
    for table in page.all("table"):
        assert table.below[0].tag == "caption"
        assert table.below[0].text
        assert all(cell.given.get("scope") for cell in table.all("th"))
        widths = {len(row.below) for row in table.all("tr")}
        assert len(widths) == 1


def test_nothing_is_inline_and_nothing_from_elsewhere(page: Outline):
    for element in page.elements:
        assert "style" not in element.given
        assert not [name for name in element.given if name.startswith("on")]
        for name in ("href", "src", "data-feed", "action"):
            assert re.fullmatch(r"(?:/(?!/)[^\s]*|#[a-z]+)", element.given.get(name, "/"))
    assert page.all("style") == []
    assert all(element.given["src"] and not element.text for element in page.all("script"))


def test_programs_only_add_what_is_there_without_them(page: Outline):
    for element in page.all("script"):
        assert "defer" in element.given
    if page.all("script"):
        (other,) = page.all("noscript")
        assert other.below[0].given == {"http-equiv": "refresh", "content": "60"}


@pytest.mark.parametrize("path", [*PAGES, address("style.css")])
def test_headers(get: Get, path: str):
    answered = get(path)
    assert answered.headers["x-content-type-options"] == "nosniff"
    if path.startswith("/static"):
        return
    policy = dict(part.strip().split(" ", 1) for part in answered.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert {policy[name] for name in ("object-src", "base-uri", "frame-ancestors")} == {"'none'"}
    assert policy["form-action"] == "'self'"
    assert "unsafe" not in answered.headers["content-security-policy"]
    public = path.startswith(("/privacy", "/collections"))
    assert answered.headers["cache-control"] == ("no-cache" if public else "no-store")
    assert answered.headers["content-type"] == "text/html; charset=utf-8"


def test_links_lead_somewhere(get: Get):
    seen, left = set(), ["/"]
    while left:
        path = left.pop()
        bare = path.partition("#")[0]
        if bare in seen or not bare or bare.startswith(("/v1", "/openapi")) or bare.count("value=") > 0:
            continue
        seen.add(bare)
        answered = get(bare)
        assert answered.status == 200, bare
        if answered.headers["content-type"].startswith("text/html"):
            given = [element.given for element in answered.page.elements]
            left += [attributes[name] for attributes in given for name in ("href", "src") if name in attributes]
    assert {path for path in PAGES if "value=" not in path and "nothing" not in path} <= seen


def test_assets_are_for_good_and_nothing_else_is_served(get: Get):
    for name, kind in NAMES.items():
        answered = get(address(name))
        assert (answered.status, answered.headers["content-type"].partition(";")[0]) == (200, kind)
        assert "immutable" in answered.headers["cache-control"]
    other = address("style.css").replace("style.css", "live.js")
    assert address("live.js") != other
    for path in (other, "/static/0/style.css", "/static/0/../app.py", "/static/../../pyproject.toml"):
        assert get(path).status == 404


def test_uplot_is_there_with_its_licence(get: Get):
    assert "The MIT License" in get(address("uplot/LICENSE")).text
    assert "uPlot (v1.6.32)" in get(address("uplot/uPlot.iife.min.js")).text


def test_one_collection_needs_no_overview(collector: Collector):
    class One(Reader):
        def collections(self) -> Any:
            return list(super().collections())[:1]

    app = Starlette(routes=routes(One(Service(collector))))
    answered = ask(app, "/")
    assert (answered.status, answered.headers["location"]) == (307, "/results/emoji")


def test_a_value_that_is_not_there_is_not_an_error(get: Get):
    plain = get("/results/emoji/trend").text
    for value in ("", "-1", "999", "9" * 40, "²", "abc", "%00"):
        assert get(f"/results/emoji/trend?value={value}").text == plain


def test_the_spec_is_shown_as_devices_get_it(get: Get, collector: Collector):
    (text,) = get("/collections/emoji").page.all("pre")
    assert json.loads(text.text) == collector.collections["emoji"].spec()
    assert collector.collections["emoji"].collection_id in get("/collections/emoji").text


NOTICED_ON = [
    "/results/themes",
    "/results/themes/popular",
    "/ingest/themes",
    "/privacy/themes",
    "/collections/themes",
    "/",
]


@pytest.mark.parametrize("path", NOTICED_ON)
@pytest.mark.parametrize(("days", "way"), [(40, "40 days ahead of"), (-2, "2 days behind"), (1096, "3 years ahead of")])
def test_every_page_says_that_the_clock_is_in_doubt_or_has_moved(path: str, days: int, way: str):
    reading = ClockReading(1e9, 100.0, "boot")
    clock = TrustedClock(None, hold=300.0, read=lambda: reading)
    # Two collections: an overview is a page of its own then.
    both = [load_collection(EXAMPLE), load_collection(EXAMPLE.replace('name = "themes"', 'name = "other"'))]
    collector = Collector(both, SqliteStore(":memory:"), clock=clock, keys=Keys.new())
    get = pages_of(collector)

    def notices() -> list[str]:
        return [element.text for element in get(path).page.having("p", "role", "alert")]

    assert notices() == []
    reading = ClockReading(1e9 + 86400 * days, 110.0, "boot")
    (doubt,) = notices()
    assert doubt.startswith("The clock is in doubt: it says ")
    assert way in doubt
    assert "goes on by 2001-09-09T01:46:50Z" in doubt
    assert "believed in 5 minutes" in doubt
    reading = ClockReading(1e9 + 86400 * days + 300, 410.0, "boot")
    (moved,) = notices()
    assert moved.startswith("The clock has moved")
    assert way in moved
    reading = ClockReading(1e9 + 311, 411.0, "boot")
    assert notices() == []


def test_nothing_is_lost_between_intervals_and_nothing_counted_twice():
    clock = ManualClock(1000.0)
    meter = Meter(clock, seconds=10.0, keep=50)
    for second in range(400):
        meter.add({("a", "accepted"): 3, ("a", "late"): 1, ("a", "duplicate"): 9, ("b", "accepted"): second})
        clock.advance(1.0)
    intervals = meter.intervals("a")
    assert sum(interval.accepted for interval in intervals) == 1200
    assert sum(interval.rejected for interval in intervals) == 400
    assert all(after.start - before.start == 10.0 for before, after in pairwise(intervals))
    assert round(rate_now(intervals), 3) == 3.0


def test_what_is_old_is_forgotten_and_memory_is_bounded():
    clock = ManualClock(0.0)
    meter = Meter(clock, seconds=1.0, keep=10)
    for _ in range(10_000):
        meter.add({("a", "accepted"): 1})
        clock.advance(1.0)
    assert len(meter._counts["a"]) <= 21
    intervals = meter.intervals("a")
    assert (len(intervals), intervals[-1].start) == (10, 10_000.0)
    clock.advance(1000.0)
    assert sum(interval.accepted for interval in meter.intervals("a")) == 0


def test_a_clock_that_jumps_breaks_nothing():
    clock = ManualClock(5000.0)
    meter = Meter(clock)
    meter.add({("a", "accepted"): 1})
    clock.set(100.0)
    meter.add({("a", "accepted"): 1})
    assert [interval.accepted for interval in meter.intervals("a")] == [2]
    assert all(interval.seconds > 0 for interval in meter.intervals("a"))
    assert meter.intervals("unknown")[0].accepted == 0


def test_what_came_before_a_restart_is_shown_minute_by_minute():
    clock = ManualClock(60_090.0)
    meter = Meter(clock, earlier={"a": [(997, 600, 6), (1000, 60, 0), (1001, 30, 1)], "b": []})
    meter.add({("a", "accepted"): 5})
    clock.advance(15.0)
    intervals = meter.intervals("a")
    assert [(interval.start, interval.seconds, interval.accepted, interval.rejected) for interval in intervals] == [
        (59_820.0, 60.0, 600, 6),
        (59_880.0, 60.0, 0, 0),
        (59_940.0, 60.0, 0, 0),
        (60_000.0, 60.0, 60, 0),
        (60_060.0, 30.0, 30, 1),
        (60_090.0, 10.0, 5, 0),
        (60_100.0, 5.0, 0, 0),
    ]
    assert len(meter.intervals("b")) == 2
    clock.advance(3600.0)
    assert {interval.seconds for interval in meter.intervals("a")[:-1]} == {10.0}
