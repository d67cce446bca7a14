"""The pages in a real browser: wide and narrow, light and dark, by keyboard, live, and without programs."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.ingest.frames import Frame
from hubbub.service.kept.archive import Archive
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, Batch
from tests.dashboard.alarm_pages import planes
from tests.dashboard.pages_fleet import PageFleet, emoji_fleet, serve, three_weeks
from tests.dashboard.pages_visit import TOKEN, Site
from tests.js.chromium import chromium
from tests.served import THEMES, ServedCollector, wait_for
from tests.shared.asks import randomizer
from tests.shared.small_collections import collection_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "screenshots"
"""Where the tests leave pictures of what they saw, for people to look at."""

PASSWORD = {"username": "anyone", "password": TOKEN}
PAGES = {
    "overview": "/",
    "results": "/results/emoji",
    "question": "/results/emoji/trend",
    "telemetry": "/results/telemetry",
    "ingest": "/ingest/emoji",
    "privacy": "/privacy/telemetry",
    "collection": "/collections/emoji",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser, without a window; for one module, because its event loop is in the way of others."""
    from playwright.sync_api import sync_playwright

    program, environment = chromium()
    names = "--host-resolver-rules=MAP stats.example 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", names], env={**environment})
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    collector = three_weeks()  # of its own: it is closed in the end
    opened = Site(collector, None)
    fleet = emoji_fleet(600)
    assert isinstance(collector.clock, ManualClock)
    for _ in range(12):
        upload(opened, collector, fleet)
        collector.clock.advance(10.0)
    yield opened
    opened.close()


def upload(site: Site, collector: Collector, fleet: PageFleet) -> None:
    now, collection = collector.clock.now(), fleet.collection.collection_id
    (window,) = [ask for ask in collector.board.open(collection, now) if ask.question == "popular"]
    for body in fleet.bodies(window):
        asked = urllib.request.Request(f"{site.address}/v1/reports", body, {"Content-Type": BATCH_TYPE})
        with urllib.request.urlopen(asked, timeout=10) as answered:
            assert answered.status == 200


@contextmanager
def watched(browser: Browser, site: Site, *, sound: bool = True, **options: Any) -> Iterator[Page]:
    """A page that may ask nobody but the site; if it is sound, nothing may go wrong in it."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", **options})
    context.set_default_timeout(8000)
    page, home = context.new_page(), site.address
    wrong: list[str] = []
    own = home, home.replace("//", f"//anyone:{TOKEN}@")

    def said(message: ConsoleMessage) -> None:
        # A browser has advice for tests that look at a canvas.
        if message.type in ("error", "warning") and "willReadFrequently" not in message.text:
            wrong.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(own) else wrong.append(f"asked {asked.url}"))
    yield page
    context.close()
    assert not (sound and wrong), wrong


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1280, "light"), (390, "light"), *(pytest.param(width, "dark", marks=pytest.mark.slow) for width in (390, 1280))],
)
def test_pages_fit_their_screen_and_nothing_goes_wrong(browser: Browser, site: Site, width: int, scheme: str):
    with watched(browser, site, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
        PICTURES.mkdir(parents=True, exist_ok=True)
        for name, path in PAGES.items():
            if scheme == "dark" and name not in ("results", "question", "ingest"):
                continue
            page.goto(site.address + path)
            assert page.locator("figure[data-chart]").count() > 0 or name in ("overview", "privacy", "collection")
            if page.locator("figure[data-chart]").count():
                page.locator("figure[data-chart] canvas").first.wait_for()
                assert page.locator("figure[data-chart] .plot > [role=img][aria-label]").count()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            page.screenshot(path=PICTURES / f"{name}-{width}-{scheme}.png", full_page=True)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(252, 251, 249)" if scheme == "light" else "rgb(21, 22, 23)")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_an_alarm_is_seen_and_fits(browser: Browser, width: int, scheme: str):
    site = Site(planes(16), None)
    with watched(browser, site, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.goto(f"{site.address}/results/planes/delays?value=2")
        page.locator("figure[data-chart] canvas").first.wait_for()
        assert page.locator(".alarm[role=alert]").bounding_box()["y"] < 400  # type: ignore[index]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=PICTURES / f"alarm-{width}-{scheme}.png", full_page=True)
        # The last step is shaded, the first is not: of each, a point of the canvas near its upper end.
        tints = page.evaluate(
            """() => {
              const canvas = document.querySelector("#q-delays-time canvas");
              const at = (part) => [...canvas.getContext("2d").getImageData(canvas.width * part, 20, 1, 1).data];
              return [at(0.2), at(0.9)];
            }"""
        )
        assert tints[0][3] == 0
        assert tints[1][0] > tints[1][1]  # more red than green
    site.close()


def test_charts_follow_the_scheme_and_tell_what_is_under_the_pointer(browser: Browser, site: Site):
    with watched(browser, site, color_scheme="light") as page:
        page.goto(f"{site.address}/results/emoji/trend")
        readout = page.locator(".readout")
        rows = page.locator("figure[data-chart] tbody tr th")
        assert readout.inner_text().startswith(rows.first.text_content() or "?")
        box = page.locator(".u-over").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
        assert not readout.inner_text().startswith(rows.first.text_content() or "")
        page.emulate_media(color_scheme="dark")
        page.locator("figure[data-chart] canvas").wait_for()
        assert page.locator("figure[data-chart] canvas").count() == 1
        page.set_viewport_size({"width": 390, "height": 844})
        for _ in range(100):  # the policy of the page forbids the browser's own way to wait, which evaluates text
            page.wait_for_timeout(20)
            if page.evaluate("document.querySelector('.uplot').clientWidth") < 380:
                break
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_without_programs_everything_is_there(browser: Browser, site: Site):
    with watched(browser, site, java_script_enabled=False) as page:
        page.goto(f"{site.address}/results/emoji/trend")
        assert page.locator("figure[data-chart] svg[role=img]").is_visible()
        assert page.locator("table.bars tr").first.is_visible()
        page.locator("#q-trend-time-table summary").click()
        assert page.locator("#q-trend-time-table table").is_visible()
        assert page.locator("#live").is_hidden()
        page.locator("a", has_text="😂").first.click()
        assert page.url.endswith("?value=0")
        assert "😂, step by step" in page.locator("figcaption").first.inner_text()
        page.screenshot(path=PICTURES / "question-1280-without-programs.png", full_page=True)


def test_the_keyboard_reaches_everything(browser: Browser, site: Site):
    with watched(browser, site) as page:
        page.goto(f"{site.address}/results/emoji")
        page.keyboard.press("Tab")
        skip = page.locator(".skip")
        assert skip.evaluate("one => one === document.activeElement && one.getBoundingClientRect().top >= 0")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("Tab")
        focus = "document.activeElement"
        first = page.evaluate(f"[{focus}.textContent, getComputedStyle({focus}).outlineStyle]")
        assert first == ["Which emoji is used most?", "solid"]
        details = page.locator("#q-popular-rest")
        details.locator("summary").focus()
        page.keyboard.press("Enter")
        assert details.locator("table").is_visible()


# -- live ----------------------------------------------------------------------------------------------------


@pytest.fixture
def living() -> Iterator[tuple[Site, Collector, PageFleet]]:
    """A collector that nobody has answered in this step yet; a token opens its results."""
    fleet = emoji_fleet(4000)
    collector = serve([fleet], start=fleet.collection.opens(100), seconds=2 * 86400, then=3 * 3600)
    opened = Site(collector, Tokens([TOKEN]))
    yield opened, collector, fleet
    opened.close()


def test_reports_and_releases_appear_as_they_come(browser: Browser, living: tuple[Site, Collector, PageFleet]):
    site, collector, fleet = living
    with watched(browser, site) as page:
        # The address holds the token, as one that is printed for people may.
        page.goto(site.address.replace("//", f"//anyone:{TOKEN}@") + "/results/emoji")
        page.locator("#live", has_text="Live").wait_for()
        part = page.locator("#q-popular")
        part.locator("text=0 reports so far for step 102").wait_for()
        page.locator("#q-popular-rest summary").click()
        page.locator("#q-popular-rest summary").focus()
        upload(site, collector, fleet)
        part.locator("text=4,000 reports so far for step 102").wait_for()
        assert part.locator("dl", has_text="(no. 101)").is_visible()
        assert isinstance(collector.clock, ManualClock)
        collector.clock.set(fleet.collection.opens(103) + fleet.collection.lateness_seconds + 1)
        part.locator("dl", has_text="(no. 102)").wait_for()
        part.locator("text=0 reports so far for step 103").wait_for()
        assert page.locator("#q-popular-rest").get_attribute("open") is not None
        assert page.evaluate("document.activeElement.closest('details').id") == "q-popular-rest"
        page.locator("#live button").click()
        assert "Paused" in page.locator("#live").inner_text()


def test_a_browser_asks_for_the_token_of_a_query_route(browser: Browser, living: tuple[Site, Collector, PageFleet]):
    """It gives a password only where it understands that it is asked for one."""
    site, _, _ = living
    with watched(browser, site, sound=False, http_credentials=PASSWORD) as page:
        answered = page.goto(f"{site.address}/v1/collections/emoji/counts")
        assert answered is not None
        assert answered.status == 200


TABLE = collection_text(
    "people",
    "People",
    schedule={"step": "1h", "lateness": "10s"},
    privacy={"event": 2.0, "minimum_batch": 20},
    fields={
        "os": {"kind": "categorical", "names": ["a", "b"]},
        "crashed": {"kind": "categorical", "names": ["no", "yes"]},
    },
    questions={"people": {"kind": "table", "columns": ["os", "crashed"], "epsilon": 2.0}},
)


def table_site(folder: Path) -> Site:
    """The pages of a collector with one closed step of a table of 600 people."""
    clock, rng, people = ManualClock(0.0), Random(seed=1), load_collection(TABLE)
    collector = Collector([people], SqliteStore(":memory:"), clock=clock, keys=Keys.new(), archive=Archive(folder))
    collector.tick()
    for open_ask in collector.board.open(people.collection_id, 0.0):
        codes = open_ask.ask.view.look({"os": np.zeros(200, int), "crashed": np.ones(200, int)}, rng)
        reports = randomizer(open_ask.ask).randomize(codes, rng)
        batch = Batch("people", 1, open_ask.name, rng.bytes(16 * len(reports)), reports.to_bare())
        assert collector.ingest([Frame(people.collection_id, batch=batch)])[0].accepted == 200
    clock.set(3611.0)
    collector.tick()
    return Site(collector, Tokens([TOKEN]))


@pytest.mark.parametrize("host", ["127.0.0.1", "stats.example"])  # to the second browsers send no Sec-Fetch-Site
def test_the_query_box_asks_without_scripts_and_no_other_site_can(browser: Browser, tmp_path: Path, host: str):
    pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    site = table_site(tmp_path)
    site.address = f"http://{host}:{site.port}"
    with watched(browser, site, sound=False, http_credentials=PASSWORD, java_script_enabled=False) as page:
        page.goto(f"{site.address}/results/people/people")
        page.locator("textarea").fill("SELECT os, COUNT(*) AS n FROM people GROUP BY os")
        page.get_by_role("button", name="Ask").click()
        assert "From 600 reports." in page.locator("section.sql").inner_text()
        with page.expect_download() as download:
            page.get_by_role("button", name="The answer as CSV").click()
        assert Path(download.value.path()).read_text(encoding="utf-8").startswith("os,n,n_low,n_high")
        elsewhere = f"http://localhost:{site.port}"  # another site to a browser
        form = f'<form method="post" action="{site.address}/results/people/people"><input name="sql" value="SELECT 1">'
        evil = f"{form}<button>Win</button>"
        page.route(f"{elsewhere}/evil", lambda route: route.fulfill(body=evil, content_type="text/html"))
        page.goto(f"{elsewhere}/evil")
        with page.expect_navigation() as answered:
            page.get_by_role("button", name="Win").click()
        assert answered.value is not None
        assert answered.value.status == 403
    site.close()


def test_where_events_do_not_come_through_the_page_asks(browser: Browser, living: tuple[Site, Collector, PageFleet]):
    site, collector, fleet = living
    with watched(browser, site, sound=False, http_credentials=PASSWORD) as page:
        page.clock.install()
        page.route("**/live/**", lambda route: route.fulfill(status=502))
        page.goto(f"{site.address}/results/emoji")
        page.locator("#q-popular", has_text="0 reports so far for step 102").wait_for()
        upload(site, collector, fleet)
        page.clock.run_for(30_000)
        page.locator("#q-popular", has_text="4,000 reports so far for step 102").wait_for()
        assert "Up to date" in page.locator("#live").inner_text()


@pytest.mark.parametrize("end", [ServedCollector.kill, ServedCollector.stop])
def test_numbers_are_old_while_the_collector_is_gone_and_live_once_it_is_back(
    browser: Browser, tmp_path: Path, end: Callable[[ServedCollector], object]
):
    served = ServedCollector(tmp_path, THEMES)
    try:
        context = browser.new_context(http_credentials={"username": "anyone", "password": served.token})
        context.set_default_timeout(60_000)
        page = context.new_page()
        failed: list[str] = []
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.goto(f"{served.url}/results/themes")
        badge = page.locator("#live span")
        page.locator("#live.on", has_text="Live").wait_for()
        page.evaluate(
            """() => {
              const badge = document.querySelector("#live span");
              window.shown = [badge.textContent];
              new MutationObserver(() => window.shown.push(badge.textContent)).observe(badge, { childList: true });
            }"""
        )
        end(served)
        page.locator("#live:not(.on)", has_text="No connection: as of").wait_for()
        page.locator("main.old").wait_for()
        since = badge.inner_text()
        # The events are given up, and only pages are asked for.
        wait_for(lambda: page.wait_for_timeout(100) or failed.count(f"{served.url}/live/themes") >= 3)
        failed.clear()
        wait_for(lambda: page.wait_for_timeout(100) or len(failed) >= 3)
        assert (badge.inner_text(), page.evaluate("window.shown")) == (since, ["Live", since])
        served = ServedCollector(tmp_path, THEMES, port=served.port)
        page.locator("#live.on", has_text="Live").wait_for()
        assert page.locator("main.old").count() == 0
        context.close()
    finally:
        served.close()
