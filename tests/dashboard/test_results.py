"""What the pages say is what was released, and no more than that."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hubbub.authoring import promise
from hubbub.authoring.forecast import poisoning
from hubbub.dashboard.headline import headline
from hubbub.dashboard.ingest import EXPLAINED
from hubbub.dashboard.reader import AnswerCard, Value
from hubbub.service.base.limits import REASONS
from hubbub.service.collector.collector import Collector
from hubbub.service.rounds.releases import release_json
from tests.dashboard.pages_outline import Element, Outline
from tests.shared.small_collections import collection_text

Get = Callable[[str], Any]


def latest(collector: Collector, collection: str, question: str) -> dict[str, Any]:
    rows = collector.releases(collection, question, first=0, last=1 << 62, most=1)
    return release_json(rows[-1])


def rows_of(page: Outline) -> dict[str, Element]:
    tables = [table for table in page.all("table") if table.given.get("class") == "bars"]
    return {row.below[0].text: row for table in tables for row in table.all("tr")[1:]}


@pytest.mark.parametrize("where", ["emoji/popular", "emoji/trend", "telemetry/stability", "telemetry/slow_starts"])
def test_grey_is_exactly_what_cannot_be_told_from_zero(get: Get, collector: Collector, where: str):
    release = latest(collector, *where.split("/"))
    rows = rows_of(Outline(get(f"/results/{where}").text))
    assert len(rows) == len(release["labels"])
    clear = {label for label, low in zip(release["labels"], release["low"], strict=True) if low > 0}
    assert 0 < len(clear) < len(rows)
    for label, row in rows.items():
        assert (row.given.get("class") == "grey") == (label not in clear)
        assert ("not distinguishable from zero" in row.text) == (label not in clear)


@pytest.mark.parametrize("where", ["emoji/popular", "emoji/trend", "telemetry/platforms"])
def test_every_estimate_is_there_as_a_number_with_its_interval(get: Get, collector: Collector, where: str):
    release = latest(collector, *where.split("/"))
    rows = rows_of(Outline(get(f"/results/{where}").text))
    for label, value, low, high in zip(*(release[key] for key in ("labels", "value", "low", "high")), strict=True):
        text = rows[label].text.replace("−", "-")
        for number in (min(max(number, 0.0), 1.0) for number in (value, low, high)):  # as far as it is possible
            # As many digits as the interval's width leaves a meaning.
            assert f"{100 * number:.1f}%" in text or f"{100 * number:.0f}%" in text, label


def test_bars_are_as_long_as_the_numbers_are_large(get: Get, collector: Collector):
    release = latest(collector, "emoji", "popular")
    rows = rows_of(Outline(get("/results/emoji/popular").text))
    widths = [float(rows[label].all("rect")[0].given["width"]) for label in release["labels"]]
    scale = max(widths) / max(release["value"])
    for width, value in zip(widths, release["value"], strict=True):
        assert width == pytest.approx(max(value, 0.0) * scale, abs=0.2)  # as far as it is possible


def test_reports_step_and_bias_are_said(get: Get, collector: Collector):
    release = latest(collector, "emoji", "popular")
    facts = {
        one.below[0].text: one.below[1].text for one in Outline(get("/results/emoji/popular").text).all("dl")[0].below
    }
    assert facts["Reports"] == f"{release['n']:,}" == "12,000"
    assert f"(no. {release['step']})" in facts["Step"]
    assert facts["Bias"].startswith("none")
    assert "may be too narrow" in get("/results/telemetry/help_wanted").text


def test_a_stream_is_drawn_with_its_gaps_stand_ins_and_marks(get: Get, collector: Collector):
    stored = [release_json(row) for row in collector.releases("emoji", "trend", first=0, last=1 << 62, most=120)]
    page = Outline(get("/results/emoji/trend?value=0").text)
    (figure,) = [one for one in page.all("figure") if one.given.get("data-chart")]
    rows = figure.all("tr")[1:]
    assert len(rows) == len(stored) == 21
    for row, release in zip(reversed(rows), stored, strict=True):
        numbers = [float(one.given["value"]) for one in row.all("data")]
        expected = [] if release["withheld"] else [release[key][0] for key in ("value", "low", "high")]
        wanted = [min(max(number, 0.0), 1.0) for number in expected]  # as far as it is possible
        assert numbers == wanted
        assert ("data-marked" in row.given) == (release["published"] and not release["withheld"])
    drawing = figure.all("svg")[0]
    dots = [one for one in drawing.all("path") if one.given["class"] == "dot"]
    assert len(dots) == sum(release["published"] and not release["withheld"] for release in stored) > 1
    assert any(not release["published"] for release in stored)


def test_a_mean_has_its_number_its_range_and_its_history(get: Get, collector: Collector):
    release = latest(collector, "telemetry", "startup_time")
    page = Outline(get("/results/telemetry/startup_time").text)
    (figure,) = [one for one in page.all("figure") if one.given.get("class") == "mean"]
    assert f"{release['value'][0]:.1f}" in figure.all("figcaption")[0].text
    assert "from 0 to 20" in figure.all("svg")[0].given["aria-label"]
    assert "not distinguishable from zero" not in page.all("main")[0].text


def test_values_with_an_order_keep_it(get: Get):
    labels = list(rows_of(Outline(get("/results/telemetry/stability").text)))
    assert labels == [*map(str, range(10)), "(none)"]
    ranked = list(rows_of(Outline(get("/results/emoji/popular").text)))
    assert ranked != sorted(ranked)


# -- sentences -----------------------------------------------------------------------------------------------


def answer(*values: Value, **given: Any) -> AnswerCard:
    card = AnswerCard("q", 1, 0.0, 100, values)
    return replace(card, **given)


A, B, C, D = (
    Value(0, "a", 0.60, 0.50, 0.70),
    Value(1, "b", 0.55, 0.45, 0.65),
    Value(2, "c", 0.20, 0.10, 0.30),
    Value(3, "d", 0.05, -0.05, 0.15),
)


def test_a_leader_is_named_only_if_no_other_may_be_ahead():
    assert "is the most common" in headline(answer(A, C, D))
    tied = headline(answer(A, B, C, D))
    assert tied == "The most common is <bdi>a</bdi> or <bdi>b</bdi>: the reports so far do not show which."
    many = headline(answer(*(Value(k, str(k), 0.1, 0.05, 0.15) for k in range(6))))
    assert many == "The most common is <bdi>0</bdi> or one of 5 other values: the reports so far do not show which."


def test_what_cannot_be_told_from_zero_may_still_be_ahead():
    barely = Value(0, "a", 0.27, 0.02, 0.52)
    assert "the reports so far do not show which" in headline(answer(barely, D))
    assert "the reports so far do not show which" in headline(answer(A, Value(1, "b", 0.1, None, None)))
    assert "is the most common: " in headline(answer(A, D))


def test_nothing_is_claimed_where_nothing_is_known():
    assert "No value is clearly above zero" in headline(answer(D))
    assert "not known" in headline(answer(Value(0, "a", 0.5, None, None)))
    assert headline(answer(withheld="3 reports; at least 100 are needed")) == (
        "Withheld: 3 reports; at least 100 are needed."
    )


@pytest.mark.parametrize("low", [-0.1, 0.0, 1e-12])
def test_an_interval_that_touches_zero_is_grey(low: float):
    assert Value(0, "a", 0.5, low, 0.9).standing == ("clear" if low > 0 else "zero")


# -- the other pages -----------------------------------------------------------------------------------------


def test_pages_show_what_is_possible_and_the_api_the_unbiased_numbers():
    """Everyone holds the same: half of the estimates lie beyond what can be, by as much as the noise is wide."""
    import numpy as np
    from starlette.applications import Starlette

    from hubbub.authoring import load_collection
    from hubbub.dashboard.app import ServiceReader
    from hubbub.dashboard.pages import routes
    from hubbub.service.http.service import Service
    from tests.dashboard.pages_fleet import PageFleet, serve
    from tests.dashboard.pages_visit import ask

    collection = load_collection(EVERYONE)
    n = 100
    fleet = PageFleet(collection, n, lambda _: {"theme": np.zeros(n, np.int64), "sessions": np.zeros(n)}, seed=5)
    collector = serve([fleet], start=collection.opens(100), seconds=12 * 3600)
    app = Starlette(routes=routes(ServiceReader(Service(collector))))
    rows = {
        name: [release_json(row) for row in collector.releases("possible", name, first=0, last=999, most=20)]
        for name in ("theme", "sessions")
    }
    themes, means = ([row["value"] for row in rows[name]] for name in ("theme", "sessions"))
    assert max(row[0] for row in themes) > 1.04, "a share of 105% was released"
    assert min(row[0] for row in means) < -1, "and a negative number of sessions"
    assert all(row["interval"] == "known" for several in rows.values() for row in several)
    for path in ("/results/possible", "/results/possible/theme", "/results/possible/sessions"):
        page = ask(app, path).text
        numbers = [float(part) for part in re.findall(r"(\d+(?:\.\d+)?)%", page)]
        assert numbers or "sessions" in path
        assert all(number <= 100 for number in numbers), path
        expected = [float(each.given["value"]) for each in Outline(page).all("data")]
        assert all(0 <= number <= (20 if "sessions" in path else 1) for number in expected if "possible/" in path), path
        assert "\u2212" not in page.split("<main", 1)[1], f"{path}: no number is below zero"


EVERYONE = collection_text(
    "possible",
    "What is possible",
    schedule={"step": "1h", "lateness": "1m"},
    privacy={"event": 2.0, "minimum_batch": 20},
    fields={
        "theme": {"kind": "categorical", "names": ["light", "dark", "sepia"]},
        "sessions": {"kind": "numeric", "low": 0.0, "high": 20.0, "cells": 20},
    },
    questions={
        "theme": {"kind": "histogram", "field": "theme", "epsilon": 1.0},
        "sessions": {"kind": "mean", "field": "sessions", "epsilon": 1.0},
    },
)


def test_withheld_releases_show_why_and_nothing_else():
    from starlette.applications import Starlette

    from hubbub.dashboard.app import ServiceReader
    from hubbub.dashboard.pages import routes
    from hubbub.service.http.service import Service
    from tests.dashboard.pages_fleet import emoji_fleet, serve
    from tests.dashboard.pages_visit import ask

    fleet = emoji_fleet(60)
    small = serve([fleet], start=fleet.collection.opens(100), seconds=3 * 86400)
    app = Starlette(routes=routes(ServiceReader(Service(small))))
    for path in ("/results/emoji", "/results/emoji/popular", "/results/emoji/trend"):
        page = Outline(ask(app, path).text)
        assert "Withheld: 60 reports; at least 100 are needed." in page.all("main")[0].text or "trend" in path
        assert not rows_of(page)
        assert not page.all("data")
        names = {term.text for term in page.all("dt")}
        assert not names & {"Bias", "Made from"}  # there is no number that these could be about


def test_ingest_shows_what_was_counted_and_explains_it(get: Get, collector: Collector):
    page = Outline(get("/ingest/emoji").text)
    mine = {
        outcome: number
        for (collection, outcome), number in collector.counts().items()
        if collection == collector.collections["emoji"].collection_id
    }
    tables = {table.below[0].text: table for table in page.all("table")}
    found = {row.below[0].text: row.below[1].text for row in tables["Reports by outcome"].all("tr")[1:]}
    assert found == {outcome: f"{number:,}" for outcome, number in mine.items()}
    assert set(found) == {"accepted", "duplicate", "unknown_ask"}
    nobodys = {row.below[0].text for row in tables["Reports of no collection"].all("tr")[1:]}
    assert nobodys == {"malformed", "unknown_collection", "too_large"}
    asks = [row.below[0].text for row in tables["Open asks"].all("tr")[1:]]
    assert asks == ["popular", "trend"]


def test_every_reason_is_explained():
    assert set(EXPLAINED) == {"accepted", "duplicate", "cover", *REASONS}


@pytest.mark.parametrize("name", ["emoji", "telemetry"])
def test_the_promise_is_there_word_for_word(get: Get, collector: Collector, name: str):
    text = "".join(Outline(get(f"/privacy/{name}").text).all("main")[0].text.split())
    for paragraph in promise(collector.collections[name]).split("\n\n")[1:]:
        lead, _, rest = paragraph.partition(". ")
        assert "".join((lead + rest).split()) in text


@pytest.mark.parametrize("name", ["emoji", "telemetry"])
def test_what_forged_reports_can_do_is_said_of_every_question(get: Get, collector: Collector, name: str):
    collection = collector.collections[name]
    (rows,) = [
        one.all("tr")[1:]
        for one in Outline(get(f"/privacy/{name}").text).all("table")
        if one.all("caption")[0].text == "Forged reports by question"
    ]
    said = {row.below[0].text: row.below[1].text for row in rows}
    assert said == {
        asked: poisoning(question, collection.setting(asked)).text() for asked, question in collection.questions.items()
    }


def test_spending_never_shows_more_than_a_window(get: Get, collector: Collector):
    latest_window = collector.releases("telemetry", "slow_starts", first=0, last=1 << 62, most=7)
    spent = sum(release_json(row)["spent"] for row in latest_window)
    assert spent <= 1
    assert f"{spent:.0%} of what 7 steps may take" in get("/privacy/telemetry").text


def test_steps_together_are_sharper_than_one_and_still_right(get: Get, collector: Collector):
    rows = collector.releases("emoji", "popular", first=0, last=1 << 62, most=120)
    releases = [release_json(row) for row in rows if row.withheld is None]
    (section,) = [
        one
        for one in Outline(get("/results/emoji").text).all("section")
        if one.given.get("aria-labelledby") == "together-popular-title"
    ]
    assert f"The last {len(releases)} steps together" in section.text
    assert f"{sum(release['n'] for release in releases):,} reports" in section.text
    top = max(range(len(releases[0]["labels"])), key=lambda code: sum(one["value"][code] for one in releases))
    mean = sum(one["value"][top] for one in releases) / len(releases)
    reach = math.hypot(*((one["high"][top] - one["low"][top]) / 2 for one in releases)) / len(releases)
    first = next(row for table in section.all("table") for row in table.all("tr")[1:])
    assert releases[0]["labels"][top] in first.text
    for number in (mean, mean - reach, mean + reach):
        assert f"{100 * number:.2f}%" in first.text.replace("−", "-")
    # A stream's releases lean on each other, and memos share their noise: neither may be added up like this.
    assert "steps together" not in get("/results/emoji").text.split('id="q-trend"')[1]
    assert "together-platforms" not in get("/results/telemetry").text
