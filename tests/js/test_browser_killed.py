"""A browser that is killed while it answers, and servers that answer slowly: nothing is spent twice, nothing hangs."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, sync_playwright

from tests.js import chromium as browsers
from tests.js.tab import OpenSite, Visit, blank
from tests.js.test_browser_shuffle import THEMES, Sites
from tests.js.test_browser_studies import HOUR, PLAIN, ROUND, UNITS, Study
from tests.shared.slow_peers import ENDLESS, HANG, SLOW, SlowAnswer, SlowPeer, slow_peer


@contextmanager
def chromium(folder: Path) -> Iterator[tuple[BrowserContext, subprocess.Popen[bytes]]]:
    """A browser with a folder of its own, and its process, which may be killed."""
    program, environment = browsers.chromium()
    options = ["--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-first-run"]
    said = folder.with_suffix(".txt")
    with said.open("wb") as output:
        process = subprocess.Popen([program, *options], env=environment, stderr=output, start_new_session=True)
    try:
        while not (found := re.search(r"DevTools listening on (ws://\S+)", said.read_text(encoding="utf-8"))):
            assert process.poll() is None, said.read_text(encoding="utf-8")
            time.sleep(0.05)
        with sync_playwright() as playwright:
            yield playwright.chromium.connect_over_cdp(found[1]).contexts[0], process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("turns", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_in_the_middle_of_a_study_it_goes_on(site: OpenSite, tmp_path: Path, turns: int) -> None:
    # The browser is killed at some moment of every round, and goes on in the same one.
    home = site(PLAIN)
    begins = int(home.clock.now())
    # The trusted time of a browser that is killed again and again stands still: no run leaves the hour of its promise.
    hourly = {"limit": (turns + 2) // 3 * 3 * UNITS, "steps": 1, "interval": HOUR, "origin": 0}
    study = Study(home, study={"start": begins, "round_seconds": ROUND, "every": 3 * ROUND}, promises=[hourly])
    for turn in range(turns + 1):
        with chromium(tmp_path / "profile") as (context, process):
            study.visit(context)
            study.record("age", 99)
            if turn:
                study.tick()
                assert study.lifetime == ((turn - 1) // 3 + 1) * 3 * UNITS
            if turn == turns:
                break
            run, number = divmod(turn, 3)
            home.clock.set(begins + turn * ROUND)
            home.published_asks = [study.asked(number + 1, run=run)]
            study.set_time()
            study.record("age", 10 + run)
            study.evaluate(f"() => {{ client.tick(); return new Promise(done => setTimeout(done, {turn % 8 * 25})); }}")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    answered = sorted(study.heard())
    assert [each[:2] for each in answered] == [(turn // 3, turn % 3 + 1) for turn in range(turns)]
    for run in range(-(-turns // 3)):  # what was so at the first answer, which the killed browser gave or did not
        (value,) = {each[3] for each in answered if each[0] == run}
        assert value in (10 + run, 99)
    assert home.replays == 0


SOON = "const later = setTimeout; window.setTimeout = (work, wait, ...more) => later(work, wait / 60, ...more);"
"""Deadlines are over after a sixtieth of their time."""
NEVER = "window.setTimeout = () => 0;"
"""No deadline is ever over."""
SETTLES = f"""(work) => Promise.race([
  work().then(() => "done", (error) => error.message),
  new Promise((settle) => {{ const worker = new Worker(URL.createObjectURL(new Blob(
    ["setTimeout(() => postMessage(0), {HANG * 1000})"]))); worker.onmessage = () => settle("hangs"); }}),
])"""
CONNECT = f"""(servers) => Promise.all(Object.entries(servers).map(([name, server]) => ({SETTLES})(
  () => open_client({{ server, database: name, collection: "themes", keys: ["00".repeat(32)] }})
).then((end) => [name, end]))).then(Object.fromEntries)"""
BODIES = {name: ENDLESS[name] for name in ("an endless body", "endless chunks")}


@pytest.mark.parametrize(
    ("timers", "answers", "end"),
    [
        (SOON, SLOW, "server: an answer within 30 s"),
        (NEVER, BODIES, "server: an answer of at most 8388608 bytes"),
    ],
    ids=["slow", "endless"],
)
def test_a_document_that_does_not_end_is_given_up(
    context: BrowserContext, site: OpenSite, timers: str, answers: Mapping[str, SlowAnswer], end: str
) -> None:
    peers = {name: SlowPeer(answer) for name, answer in answers.items()}
    page = blank(context, site(THEMES))
    page.evaluate(timers)
    assert page.evaluate(CONNECT, {name: peer.url for name, peer in peers.items()}) == dict.fromkeys(answers, end)
    for peer in peers.values():
        peer.close()


@pytest.mark.parametrize("name", [name for name in ENDLESS if name not in BODIES])
def test_an_answer_without_end_stops_no_page(context: BrowserContext, site: OpenSite, name: str) -> None:
    """Where the browser itself does not give up, the deadline ends it."""
    page = blank(context, site(THEMES))
    page.evaluate(SOON)
    with slow_peer(ENDLESS[name]) as peer:
        assert page.evaluate(CONNECT, {"": peer.url})[""] not in ("done", "hangs")
    assert page.evaluate("() => 6 * 7") == 42


@pytest.mark.parametrize("name", ["silence", "a slow header", "a slow body"])
def test_an_upload_that_is_not_answered_waits(site: OpenSite, visit: Visit, name: str) -> None:
    sites = Sites(site)
    with slow_peer(SLOW[name]) as peer:
        route = sites.route
        first = replace(route.shufflers[0], url=peer.url)
        route = replace(route, shufflers=(first, *route.shufflers[1:]))
        sites.collector.collection = replace(sites.collector.collection, shuffle=route)
        tab = visit(sites.collector)
        tab.evaluate(SOON)
        assert tab.evaluate(f"() => ({SETTLES})(() => client.tick())") == "done"
        assert tab.status()["pending"] == 1
        assert any(b"/v1/reports" in request for request in peer.requests)
