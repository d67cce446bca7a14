"""Names, titles and labels stay text, whatever they hold; tokens never reach a page or a log."""

import base64
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import Categorical
from hubbub.dashboard.markup import el
from hubbub.dashboard.pages import dashboard
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from tests.dashboard.pages_fleet import PageFleet, serve
from tests.dashboard.pages_visit import TOKEN, Get, ask, pages_of

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
def get() -> Get:
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
    return pages_of(serve([fleet], start=36000.0, seconds=4 * 3600))


@pytest.mark.parametrize("path", [*PATHS, "/collections/h"])
def test_hostile_labels_stay_text(get: Get, path: str):
    answered = get(path)
    assert answered.status == 200
    page = answered.page
    assert page.all("img") == []
    assert [element for element in page.all("b") if element.text == "bold"] == []
    assert len(page.all("h1")) == 1
    assert all(not element.text for element in page.all("script"))
    for element in page.elements:
        assert not [name for name in element.given if name.startswith("on") or name in ("autofocus", "style")]
        assert not any(element.given.get(name, "").startswith(("javascript:", "http")) for name in ("href", "src"))
    assert "\x00" not in answered.text
    assert "\x07" not in answered.text


def test_all_labels_are_shown_whole_and_kept_apart_from_their_surroundings(get: Get):
    rows = get("/results/h/q").page.bars().values()
    shown = {row.below[0].all("bdi")[0].text for row in rows}
    expected = {label.replace("\x00", "\ufffd").replace("\x07", "\ufffd") for label in (*HOSTILE, "(none)")}
    assert shown == expected


def test_hostile_addresses_are_not_echoed(get: Get):
    for path in ("/results/<script>", "/results/h/<img src=x>", '/privacy/"><b>', "/live/../../etc"):
        answered = get(path)
        assert answered.status == 404
        assert "<script>" not in answered.text
        assert "<img" not in answered.text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.values: list[str | None] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_any_text_comes_back_as_it_was(text: str, value: str):
    # Characters that HTML has no way to hold come back as the one that stands for them.
    reader = Tags()
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
    reader = Tags()
    reader.feed(f"<p>{HOSTILE[1]}</p>")
    assert "img" in reader.tags


PRIVATE = ["/", "/results/emoji", "/results/emoji/popular", "/ingest/emoji", "/live/emoji", "/results/nothing"]
PUBLIC = ["/privacy/emoji", "/collections/emoji"]


@pytest.fixture(scope="module")
def app(collector: Collector) -> object:
    service, tokens = Service(collector), Tokens([TOKEN])
    return create_app(service, tokens, routes=dashboard(tokens)(service))


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()}


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "headers", [{}, basic("another"), {"Authorization": "Bearer another"}], ids=["no", "bad", "bearer"]
)
def test_without_a_token_a_page_asks_for_it_and_tells_nothing(app: object, path: str, headers: dict[str, str]):
    answered = ask(app, path, headers=headers)
    assert answered.status == 401
    assert answered.headers["www-authenticate"].startswith("Basic ")
    assert "%" not in answered.page.all("main")[0].text
    assert "default-src 'self'" in answered.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/", "/results/emoji", "/results/emoji/popular", "/ingest/emoji"])
def test_with_a_token_it_opens(app: object, path: str):
    assert ask(app, path, headers=basic(TOKEN)).status == 200
    assert ask(app, path, headers={"Authorization": f"Bearer {TOKEN}"}).status == 200


@pytest.mark.parametrize("path", PUBLIC)
def test_promises_need_none(app: object, path: str):
    page = ask(app, path).page
    assert not page.all("script")
    assert not page.all("data")


@pytest.mark.parametrize("path", [*PUBLIC, "/results/telemetry"])
def test_a_page_that_is_known_is_not_sent_again(app: object, path: str):
    first = ask(app, path, headers=basic(TOKEN))
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = ask(app, path, headers={**basic(TOKEN), "If-None-Match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == first.headers["cache-control"]
    assert ask(app, path, headers={**basic(TOKEN), "If-None-Match": '"other"'}).body == first.body
    if path not in PUBLIC:
        assert ask(app, path, headers={"If-None-Match": tag}).status == 401
