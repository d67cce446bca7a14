"""Names, titles and labels come from files and candidates: whatever they hold, they stay text."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from hubbub import Categorical
from hubbub.collection import Collection
from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.markup import el
from hubbub.dashboard.pages import routes
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.service.http.service import Service
from tests.dashboard.pages_fleet import PageFleet, serve
from tests.dashboard.pages_outline import Outline
from tests.dashboard.pages_visit import ask

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "javascript:alert(1)",
    "</td></tr></table><h1>gone</h1>",
    "\u202eright to left",
    "nul \x00 and bell \x07",
    "&lt;already&gt; &amp; more",
    "https://elsewhere.example/x",
    "",
    " ",
    "x" * 300,
)
PATHS = ["/results/h", "/results/h/q", "/results/h/q?value=1", "/results/h/s", "/ingest/h", "/privacy/h"]


@pytest.fixture(scope="module")
def app() -> Starlette:
    title = "<b>bold</b> & \"quoted\" 'title'"
    collection = Collection(
        name="h",
        title=title,
        fields={"f": Categorical(HOSTILE)},
        questions={
            "q": Question.make(kind="histogram", field="f", epsilon=4.0, title=title),
            "s": Question.make(kind="stream", field="f", epsilon=4.0, method="LPU", w=2, title=title),
        },
        budget=Budget.of(event=8.0),
        step_seconds=3600,
        overrides={"epsilon_above_8": title},
    )
    fleet = PageFleet(collection, 3000, lambda step: {"f": np.arange(3000) % len(HOSTILE)}, seed=3)
    collector = serve([fleet], start=36000.0, seconds=4 * 3600)
    return Starlette(routes=routes(ServiceReader(Service(collector))))


@pytest.mark.parametrize("path", [*PATHS, "/collections/h"])
def test_hostile_labels_stay_text(app: Starlette, path: str):
    answered = ask(app, path)
    assert answered.status == 200
    page = Outline(answered.text)
    assert page.all("img") == []
    assert [element for element in page.all("b") if element.text == "bold"] == []
    assert len(page.all("h1")) == 1
    assert all(not element.text for element in page.all("script"))
    for element in page.elements:
        assert not [name for name in element.given if name.startswith("on") or name in ("autofocus", "style")]
        assert not any(element.given.get(name, "").startswith(("javascript:", "http")) for name in ("href", "src"))
    assert "\x00" not in answered.text
    assert "\x07" not in answered.text


def test_all_labels_are_shown_whole_and_kept_apart_from_their_surroundings(app: Starlette):
    page = Outline(ask(app, "/results/h/q").text)
    rows = [row for table in page.all("table") if table.given.get("class") == "bars" for row in table.all("tr")[1:]]
    shown = {row.below[0].all("bdi")[0].text for row in rows}
    expected = {label.replace("\x00", "\ufffd").replace("\x07", "\ufffd") for label in (*HOSTILE, "(none)")}
    assert shown == expected


def test_hostile_addresses_are_not_echoed(app: Starlette):
    for path in ("/results/<script>", "/results/h/<img src=x>", '/privacy/"><b>', "/live/../../etc"):
        answered = ask(app, path)
        assert answered.status == 404
        assert "<script>" not in answered.text
        assert "<img" not in answered.text


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.values, self.tags = "", [], []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_any_text_comes_back_as_it_was(text: str, value: str):
    # Characters that HTML has no way to hold come back as the one that stands for them.
    reader = Reader()
    reader.feed(el("p", text, title=value))
    reader.close()
    assert reader.tags == ["p"]

    def held(given: str) -> str:
        return "".join(
            "\ufffd" if (ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 else c
            for c in given
        )

    assert reader.text == held(text)
    assert reader.values == [held(value)]


def test_the_probe_would_notice_text_that_is_not_escaped():
    reader = Reader()
    reader.feed(f"<p>{HOSTILE[1]}</p>")
    assert "img" in reader.tags
