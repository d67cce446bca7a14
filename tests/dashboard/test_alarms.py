"""Alarms on the pages: a banner while one is raised, marks over time, and all of them with what they promise."""

import pytest

from hubbub.dashboard.reader import Reader
from hubbub.service.collector.collector import Collector, example_collector
from hubbub.service.http.service import Service
from tests.dashboard.alarm_pages import planes
from tests.dashboard.pages_outline import Element, Outline
from tests.dashboard.pages_visit import pages_of


@pytest.fixture(scope="module")
def raised() -> Collector:
    return planes(16)


@pytest.fixture(scope="module")
def over() -> Collector:
    return planes(24)


def page(collector: Collector, path: str) -> Outline:
    return pages_of(collector)(path).page


def banners(outline: Outline) -> list[Element]:
    return outline.having("div", "role", "alert")


@pytest.mark.parametrize("path", ["/results/planes", "/results/planes/delays", "/results/planes/delays?value=2"])
def test_a_raised_alarm_is_the_first_thing_said(raised: Collector, path: str):
    (banner,) = banners(page(raised, path))
    assert banner.text.startswith(("Alarm", "2 alarms", "3 alarms", "4 alarms"))
    assert "planes that are <late>: above 25" in banner.text
    assert "since " in banner.text


def test_other_pages_and_other_questions_have_no_banner(raised: Collector, over: Collector):
    assert banners(page(raised, "/results/planes/quiet")) == []
    assert banners(page(raised, "/privacy/planes")) == []
    assert not any("planes that are" in element.text for element in banners(page(over, "/results/planes")))


def test_every_alarm_is_there_with_its_guarantee_in_words(over: Collector):
    (section,) = page(over, "/results/planes").having("section", "id", "alarms")
    assert "All together: at most one false alarm in 30 days on average" in section.text
    assert "planes that are <late>" in section.text
    assert "Raised above" in section.text
    rows = [row.text for row in section.all("tr")]
    assert any("raised" in row and "planes that are <late>" in row for row in rows)
    assert any("cleared" in row and "planes that are <late>" in row for row in rows)


def marked(outline: Outline) -> list[bool]:
    """Whether each step of the chart is shaded, oldest first."""
    (figure,) = outline.having("figure", "id", "q-delays-time")
    return ["data-alarm" in row.given for row in figure.all("tr")[1:]][::-1]


def test_steps_with_an_alarm_are_marked(over: Collector):
    alarms = Reader(Service(over)).alarms("planes")
    steps = {(event.alarm, event.state): event.step for event in alarms.events if event.alarm == "late"}
    (release, *_) = over.releases("planes", "delays", first=0, last=1 << 40, most=1000)
    shaded = marked(page(over, "/results/planes/delays?value=2"))
    first, last = (steps["late", state] - release.step for state in ("raised", "cleared"))
    assert all(shaded[first:last])
    assert not any(shaded[:first])
    drawn = page(over, "/results/planes/delays?value=2").having("path", "class", "alarmed")
    assert len(drawn) == sum(shaded)


def test_without_alarms_nothing_is_said_of_them():
    outline = page(example_collector(), "/results/themes")
    assert banners(outline) == []
    assert outline.having("section", "id", "alarms") == []
