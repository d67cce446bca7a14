"""A browser's reports where they are shuffled: sealed once, to the first shuffler alone, opened layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hubbub.collection import Collection
from hubbub.collection.shuffle_route import RouteShuffler, ShuffleRoute, batch_name, layer_name
from hubbub.core.domain import Categorical
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.shuffle.onion import OnionKey, peel
from tests.js.test_browser import record, status, tick, visit

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

HOUR = 3600
THEMES = Collection(
    name="themes",
    title="Light or dark?",
    fields={"theme": Categorical(["light", "dark"])},
    questions={"popular": Question.make(kind="histogram", field="theme", epsilon=1.0)},
    budget=Budget.of(user=3.0),
    step_seconds=HOUR,
    lateness_seconds=600,
)


class Sites:
    """The collector's site, and that of the first of two shufflers, which remembers everything."""

    def __init__(self, site: Callable[..., Any]) -> None:
        self.keys = [OnionKey.generate() for _ in range(3)]
        self.first = site(THEMES)
        self.first.any_origin = True
        urls = [self.first.url, "https://second.example"]
        shufflers = tuple(
            RouteShuffler(url, key.public.hex(), f"{number}b" * 32)
            for number, (url, key) in enumerate(zip(urls, self.keys, strict=False))
        )
        route = ShuffleRoute(
            shufflers=shufflers, collector_key=self.keys[2].public.hex(), delta=1e-6, least=20, fakes=5
        )
        shuffled = replace(THEMES, trust="shuffle", shuffle=route)
        self.first.collection = shuffled
        self.collector = site(shuffled)

    def opened(self) -> list[bytes]:
        """What is inside of all that came to the first shuffler."""
        inside = []
        ((_, ask),) = self.collector.current()
        for entry in self.first.entries.values():
            onions, name = [entry.report], layer_name(batch_name("themes", 1, entry.name), ask)
            for place, key in enumerate(self.keys):
                onions = peel(onions, key, name, place=place).inside
            inside += onions
        return inside


@pytest.fixture
def sites(site: Callable[..., Any]) -> Sites:
    return Sites(site)


def test_reports_are_sealed_and_go_to_the_first_shuffler(context: BrowserContext, sites: Sites) -> None:
    page = visit(context, sites.collector)
    record(page, "theme", "dark")
    tick(page, sites.collector)
    tick(page, sites.collector)
    assert not sites.collector.uploads
    assert len(sites.first.uploads) == 1
    (report,) = sites.opened()
    ((_, ask),) = sites.collector.current()
    ask.mechanism.check(ask.mechanism.read_bare(report))
    told = status(page)
    assert (told["pending"], told["lifetime"], told["refused"]) == (0, 10**12, {})  # the local epsilon is paid


def test_what_is_sent_again_is_the_same_onion(context: BrowserContext, sites: Sites) -> None:
    """An answer that was lost, and a page that was closed meanwhile: sealed once, sent again as it is."""
    sites.first.status = 0
    page = visit(context, sites.collector)
    tick(page, sites.collector)
    assert status(page)["pending"] == 1
    page.close()
    sites.first.status = 200
    page = visit(context, sites.collector)
    tick(page, sites.collector, later=5)
    assert status(page)["pending"] == 0
    assert len(sites.opened()) == 1
    assert not sites.first.replays


def test_a_browser_that_cannot_seal_says_so_and_sends_nothing(context: BrowserContext, sites: Sites) -> None:
    page = context.new_page()
    page.goto(f"{sites.collector.url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate(
        """() => {
          const make = crypto.subtle.generateKey.bind(crypto.subtle);
          crypto.subtle.generateKey = (kind, ...more) => {
            if (kind === "X25519") throw new DOMException("Unrecognized name.", "NotSupportedError");
            return make(kind, ...more);
          };
        }"""
    )
    options = {"collection": "themes", "keys": [sites.collector.keys.public.hex()]}
    with pytest.raises(Exception, match="one with X25519: this one cannot encrypt reports"):
        page.evaluate("options => open_client(options).then(() => null)", options)
    assert not sites.first.uploads


@pytest.mark.parametrize("change", [None, {"fakes": 4}], ids=["no shufflers", "fewer fakes"])
def test_a_version_with_a_weaker_shuffle_is_refused(
    context: BrowserContext, sites: Sites, change: dict[str, Any] | None
) -> None:
    """Whatever a collector signs later: reports never go out with less between than people agreed to."""
    visit(context, sites.collector)
    route = sites.collector.collection.shuffle
    weaker = {"trust": "local", "shuffle": None} if change is None else {"shuffle": replace(route, **change)}
    sites.collector.collection = replace(sites.collector.collection, version=2, **weaker)
    with pytest.raises(Exception, match="begin a new collection under a new name"):
        visit(context, sites.collector)
    assert not sites.collector.uploads


LINKED = {
    "a state": {"state": "ChangeStream", "frozen": "last"},
    "plain numbers": {"views": [{"kind": "withnumbers", "view": {"kind": "whole"}, "numbers": []}]},
}


@pytest.mark.parametrize("linked", LINKED.values(), ids=LINKED)
def test_questions_whose_reports_can_be_linked_are_refused(
    context: BrowserContext, sites: Sites, linked: dict[str, Any]
) -> None:
    spec: Any = sites.collector.document()
    terms = {"popular": {**spec["terms"]["popular"], **linked}}
    sites.collector.changed = {"terms": terms}
    with pytest.raises(Exception, match="undoes the shuffle"):
        visit(context, sites.collector)


def test_a_small_batch_needs_a_reason(context: BrowserContext, sites: Sites) -> None:
    spec: Any = sites.collector.document()
    sites.collector.changed = {"shuffle": {**spec["shuffle"], "least": 19}}
    with pytest.raises(Exception, match="least: at least 20, or a reason"):
        visit(context, sites.collector)
