"""What the pages say is what was released, and no more than that."""

import math
import re
from typing import Any

import numpy as np
import pytest

from hubbub.authoring import load_collection, promise
from hubbub.authoring.forecast import poisoning
from hubbub.core.estimate import Estimate
from hubbub.dashboard.answers import Value, headline, sentence_of
from hubbub.dashboard.ingest import EXPLAINED
from hubbub.protocols.driver import MAIN, Release
from hubbub.service.base.limits import REASONS
from hubbub.service.collector.collector import Collector
from hubbub.service.rounds.releases import release_row, told_release
from tests.dashboard.pages_fleet import PageFleet, emoji_fleet, serve
from tests.dashboard.pages_outline import Outline
from tests.dashboard.pages_visit import Get, pages_of
from tests.shared.releases import release_json
from tests.shared.small_collections import collection_text


def released(collector: Collector, where: str, most: int = 1) -> list[dict[str, Any]]:
    """The latest releases of a question, as the API has them."""
    rows = collector.releases(*where.split("/"), first=0, last=1 << 62, most=most)
    return [release_json(row) for row in rows]


def possible(number: float) -> float:
    """As much of a share as can be."""
    return min(max(number, 0.0), 1.0)


@pytest.mark.parametrize("where", ["emoji/popular", "emoji/trend", "telemetry/stability", "telemetry/slow_starts"])
def test_grey_is_exactly_what_cannot_be_told_from_zero(get: Get, collector: Collector, where: str):
    (release,) = released(collector, where)
    rows = get(f"/results/{where}").page.bars()
    assert len(rows) == len(release["labels"])
    clear = {label for label, low in zip(release["labels"], release["low"], strict=True) if low > 0}
    assert 0 < len(clear) < len(rows)
    for label, row in rows.items():
        assert (row.given.get("class") == "grey") == (label not in clear)
        assert ("not distinguishable from zero" in row.text) == (label not in clear)


@pytest.mark.parametrize("where", ["emoji/popular", "emoji/trend", "telemetry/platforms"])
def test_every_estimate_is_there_as_a_number_with_its_interval(get: Get, collector: Collector, where: str):
    (release,) = released(collector, where)
    rows = get(f"/results/{where}").page.bars()
    for label, value, low, high in zip(*(release[key] for key in ("labels", "value", "low", "high")), strict=True):
        text = rows[label].text.replace("−", "-")
        for number in map(possible, (value, low, high)):
            # As many digits as the interval's width leaves a meaning.
            assert f"{100 * number:.1f}%" in text or f"{100 * number:.0f}%" in text, label


def test_bars_are_as_long_as_the_numbers_are_large(get: Get, collector: Collector):
    (release,) = released(collector, "emoji/popular")
    rows = get("/results/emoji/popular").page.bars()
    widths = [float(rows[label].all("rect")[0].given["width"]) for label in release["labels"]]
    scale = max(widths) / max(release["value"])
    for width, value in zip(widths, release["value"], strict=True):
        assert width == pytest.approx(max(value, 0.0) * scale, abs=0.2)  # as far as it is possible


def test_reports_step_and_bias_are_said(get: Get, collector: Collector):
    (release,) = released(collector, "emoji/popular")
    facts = {row.below[0].text: row.below[1].text for row in get("/results/emoji/popular").page.all("dl")[0].below}
    assert facts["Reports"] == f"{release['n']:,}" == "12,000"
    assert f"(no. {release['step']})" in facts["Step"]
    assert facts["Bias"].startswith("none")
    assert "may be too narrow" in get("/results/telemetry/help_wanted").text


def test_a_stream_is_drawn_with_its_gaps_stand_ins_and_marks(get: Get, collector: Collector):
    stored = released(collector, "emoji/trend", most=120)
    (figure,) = [
        element for element in get("/results/emoji/trend?value=0").page.all("figure") if element.given.get("data-chart")
    ]
    rows = figure.all("tr")[1:]
    assert len(rows) == len(stored) == 21
    for row, release in zip(reversed(rows), stored, strict=True):
        numbers = [float(element.given["value"]) for element in row.all("data")]
        expected = [] if release["withheld"] else [release[key][0] for key in ("value", "low", "high")]
        assert numbers == [possible(number) for number in expected]
        assert ("data-marked" in row.given) == (release["published"] and not release["withheld"])
    drawing = figure.all("svg")[0]
    dots = [element for element in drawing.all("path") if element.given["class"] == "dot"]
    assert len(dots) == sum(release["published"] and not release["withheld"] for release in stored) > 1
    assert any(not release["published"] for release in stored)


def test_a_mean_has_its_number_its_range_and_its_history(get: Get, collector: Collector):
    (release,) = released(collector, "telemetry/startup_time")
    page = get("/results/telemetry/startup_time").page
    (figure,) = page.having("figure", "class", "mean")
    assert f"{release['value'][0]:.1f}" in figure.all("figcaption")[0].text
    assert "from 0 to 20" in figure.all("svg")[0].given["aria-label"]
    assert "not distinguishable from zero" not in page.all("main")[0].text


def test_values_with_an_order_keep_it(get: Get):
    labels = list(get("/results/telemetry/stability").page.bars())
    assert labels == [*map(str, range(10)), "(none)"]
    ranked = list(get("/results/emoji/popular").page.bars())
    assert ranked != sorted(ranked)


# -- sentences -----------------------------------------------------------------------------------------------


A, B, C, D = (Value(at, "abcd"[at], mid, mid - 0.1, mid + 0.1) for at, mid in enumerate((0.60, 0.55, 0.20, 0.05)))


def test_a_leader_is_named_only_if_no_other_may_be_ahead():
    assert "is the most common" in sentence_of([A, C, D])
    tied = sentence_of([A, B, C, D])
    assert tied == "The most common is <bdi>a</bdi> or <bdi>b</bdi>: the reports so far do not show which."
    many = sentence_of([Value(k, str(k), 0.1, 0.05, 0.15) for k in range(6)])
    assert many == "The most common is <bdi>0</bdi> or one of 5 other values: the reports so far do not show which."


def test_what_cannot_be_told_from_zero_may_still_be_ahead():
    barely = Value(0, "a", 0.27, 0.02, 0.52)
    assert "the reports so far do not show which" in sentence_of([barely, D])
    assert "the reports so far do not show which" in sentence_of([A, Value(1, "b", 0.1, None, None)])
    assert "is the most common: " in sentence_of([A, D])


def test_nothing_is_claimed_where_nothing_is_known():
    assert "No value is clearly above zero" in sentence_of([D])
    assert "not known" in sentence_of([Value(0, "a", 0.5, None, None)])
    few = Release(step=1, estimates={MAIN: Estimate([0.5], [0.01], 3)}, published=True, spent=0.0, n=3.0)
    row = release_row(few, collection="0" * 32, question="q", time=0.0, minimum_batch=100)
    assert headline(told_release(row)) == ("Withheld: 3 reports; at least 100 are needed.")


@pytest.mark.parametrize("low", [-0.1, 0.0, 1e-12])
def test_an_interval_that_touches_zero_is_grey(low: float):
    assert Value(0, "a", 0.5, low, 0.9).standing == ("clear" if low > 0 else "zero")


# -- the other pages -----------------------------------------------------------------------------------------


def test_pages_show_what_is_possible_and_the_api_the_unbiased_numbers():
    """Everyone holds the same: half of the estimates lie beyond what can be, by as much as the noise is wide."""
    collection = load_collection(EVERYONE)
    n = 100
    fleet = PageFleet(collection, n, lambda _: {"theme": np.zeros(n, np.int64), "sessions": np.zeros(n)}, seed=5)
    collector = serve([fleet], start=collection.opens(100), seconds=12 * 3600)
    get = pages_of(collector)
    themes, means = (released(collector, f"possible/{name}", most=20) for name in ("theme", "sessions"))
    assert max(row["value"][0] for row in themes) > 1.04, "a share of 105% was released"
    assert min(row["value"][0] for row in means) < -1, "and a negative number of sessions"
    assert all(row["interval"] == "known" for row in (*themes, *means))
    for path in ("/results/possible", "/results/possible/theme", "/results/possible/sessions"):
        page = get(path).text
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
    fleet = emoji_fleet(60)
    get = pages_of(serve([fleet], start=fleet.collection.opens(100), seconds=3 * 86400))
    for path in ("/results/emoji", "/results/emoji/popular", "/results/emoji/trend"):
        page = get(path).page
        assert "Withheld: 60 reports; at least 100 are needed." in page.all("main")[0].text or "trend" in path
        assert not page.bars()
        assert not page.all("data")
        names = {term.text for term in page.all("dt")}
        assert not names & {"Bias", "Made from"}  # there is no number that these could be about


def test_ingest_shows_what_was_counted_and_explains_it(get: Get, collector: Collector):
    emoji, counts = collector.collections["emoji"].collection_id, collector.counts().items()
    mine = {outcome: number for (collection, outcome), number in counts if collection == emoji}
    tables = {table.below[0].text: table for table in get("/ingest/emoji").page.all("table")}
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
    text = "".join(get(f"/privacy/{name}").page.all("main")[0].text.split())
    for paragraph in promise(collector.collections[name]).split("\n\n")[1:]:
        lead, _, rest = paragraph.partition(". ")
        assert "".join((lead + rest).split()) in text


@pytest.mark.parametrize("name", ["emoji", "telemetry"])
def test_what_forged_reports_can_do_is_said_of_every_question(get: Get, collector: Collector, name: str):
    collection = collector.collections[name]
    tables = get(f"/privacy/{name}").page.all("table")
    (rows,) = [table.all("tr")[1:] for table in tables if table.below[0].text == "Forged reports by question"]
    texts = {row.below[0].text: row.below[1].text for row in rows}
    assert texts == {asked: poisoning(question).text() for asked, question in collection.questions.items()}


def test_spending_never_shows_more_than_a_window(get: Get, collector: Collector):
    spent = sum(release["spent"] for release in released(collector, "telemetry/slow_starts", most=7))
    assert spent <= 1
    assert f"{spent:.0%} of what 7 steps may take" in get("/privacy/telemetry").text


def test_steps_together_are_sharper_than_one_and_still_right(get: Get, collector: Collector):
    releases = [release for release in released(collector, "emoji/popular", most=120) if not release["withheld"]]
    (section,) = get("/results/emoji").page.having("section", "aria-labelledby", "together-popular-title")
    assert f"The last {len(releases)} steps together" in section.text
    assert f"{sum(release['n'] for release in releases):,} reports" in section.text
    top = max(
        range(len(releases[0]["labels"])),
        key=lambda code: sum(step_release["value"][code] for step_release in releases),
    )
    mean = sum(step_release["value"][top] for step_release in releases) / len(releases)
    reach = math.hypot(
        *((step_release["high"][top] - step_release["low"][top]) / 2 for step_release in releases)
    ) / len(releases)
    first = next(row for table in section.all("table") for row in table.all("tr")[1:])
    assert releases[0]["labels"][top] in first.text
    for number in (mean, mean - reach, mean + reach):
        assert f"{100 * number:.2f}%" in first.text.replace("−", "-")
    # A stream's releases lean on each other, and memos share their noise: neither may be added up like this.
    assert "steps together" not in get("/results/emoji").text.split('id="q-trend"')[1]
    assert "together-platforms" not in get("/results/telemetry").text
