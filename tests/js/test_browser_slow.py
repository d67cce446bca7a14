"""A browser's client and servers that answer slowly or without end: its promises settle, and the page lives on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.js.test_browser import status, visit
from tests.js.test_browser_shuffle import THEMES, Sites
from tests.shared.slow_peers import ENDLESS, HANG, SLOW, SlowAnswer, SlowPeer, slow_peer

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

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
    context: BrowserContext, site: Callable[..., Any], timers: str, answers: Mapping[str, SlowAnswer], end: str
) -> None:
    peers = {name: SlowPeer(answer) for name, answer in answers.items()}
    page = context.new_page()
    page.goto(f"{site(THEMES).url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate(timers)
    assert page.evaluate(CONNECT, {name: peer.url for name, peer in peers.items()}) == dict.fromkeys(answers, end)
    for peer in peers.values():
        peer.close()


@pytest.mark.parametrize("name", [name for name in ENDLESS if name not in BODIES])
def test_an_answer_without_end_stops_no_page(context: BrowserContext, site: Callable[..., Any], name: str) -> None:
    """Where the browser itself does not give up, the deadline ends it."""
    page = context.new_page()
    page.goto(f"{site(THEMES).url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate(SOON)
    with slow_peer(ENDLESS[name]) as peer:
        assert page.evaluate(CONNECT, {"": peer.url})[""] not in ("done", "hangs")
    assert page.evaluate("() => 6 * 7") == 42


@pytest.mark.parametrize("name", ["silence", "a slow header", "a slow body"])
def test_an_upload_that_is_not_answered_waits(context: BrowserContext, site: Callable[..., Any], name: str) -> None:
    sites = Sites(site)
    with slow_peer(SLOW[name]) as peer:
        route = sites.collector.collection.shuffle
        first = replace(route.shufflers[0], url=peer.url)
        route = replace(route, shufflers=(first, *route.shufflers[1:]))
        sites.collector.collection = replace(sites.collector.collection, shuffle=route)
        page = visit(context, sites.collector)
        page.evaluate(SOON)
        assert page.evaluate(f"() => ({SETTLES})(() => client.tick())") == "done"
        assert status(page)["pending"] == 1
        assert any(b"/v1/reports" in request for request in peer.requests)
