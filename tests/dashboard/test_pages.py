"""Every page: sound markup, nothing from elsewhere, nothing that only a pointer or a program can get at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from starlette.applications import Starlette

from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.layout import NAMES, address
from hubbub.dashboard.pages import routes
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from tests.dashboard.pages_outline import Outline

Get = Callable[[str], Any]
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
    return Outline(answered.text)


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


def test_every_drawing_is_labelled_or_stands_beside_its_number(page: Outline):
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
            outline = Outline(answered.text)
            left += [
                element.given[name] for element in outline.elements for name in ("href", "src") if name in element.given
            ]
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
    from tests.dashboard.pages_visit import ask

    class One(ServiceReader):
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
    (text,) = Outline(get("/collections/emoji").text).all("pre")
    assert json.loads(text.text) == collector.collections["emoji"].spec()
    assert collector.collections["emoji"].collection_id in get("/collections/emoji").text
