"""A browser's reports where they are shuffled: sealed once, to the first shuffler alone, opened layer by layer."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from hubbub.collection.shuffle_route import RouteShuffler, ShuffleRoute, batch_name, layer_name
from hubbub.core.domain import Categorical
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.shuffle.onion import OnionKey, peel
from tests.js.tab import OpenSite, Visit, blank

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

    def __init__(self, site: OpenSite, collection: Collection = THEMES) -> None:
        self.keys = [OnionKey.generate() for _ in range(3)]
        self.first = site(collection)
        self.first.any_origin = True
        urls = [self.first.url, "https://second.example"]
        shufflers = tuple(
            RouteShuffler(url, key.public.hex(), f"{number}b" * 32)
            for number, (url, key) in enumerate(zip(urls, self.keys, strict=False))
        )
        collector_key = self.keys[2].public.hex()
        self.route = ShuffleRoute(shufflers=shufflers, collector_key=collector_key, delta=1e-6, least=20, fakes=5)
        shuffled = replace(collection, trust="shuffle", shuffle=self.route)
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
def sites(site: OpenSite) -> Sites:
    return Sites(site)


def test_reports_are_sealed_and_go_to_the_first_shuffler(sites: Sites, visit: Visit) -> None:
    tab = visit(sites.collector)
    tab.record("theme", "dark")
    tab.tick()
    tab.tick()
    assert not sites.collector.uploads
    assert len(sites.first.uploads) == 1
    (report,) = sites.opened()
    ((_, ask),) = sites.collector.current()
    ask.mechanism.check(ask.mechanism.read_bare(report))
    told = tab.status()
    assert (told["pending"], told["lifetime"], told["refused"]) == (0, 10**12, {})  # the local epsilon is paid


def test_what_is_sent_again_is_the_same_onion(sites: Sites, visit: Visit) -> None:
    """An answer that was lost, and a page that was closed meanwhile: sealed once, sent again as it is."""
    sites.first.status = 0
    tab = visit(sites.collector)
    tab.tick()
    assert tab.status()["pending"] == 1
    sites.first.status = 200
    tab.reopen()
    tab.tick(later=5)
    assert tab.status()["pending"] == 0
    assert len(sites.opened()) == 1
    assert not sites.first.replays


def test_a_browser_that_cannot_seal_says_so_and_sends_nothing(context: BrowserContext, sites: Sites) -> None:
    page = blank(context, sites.collector)
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
def test_a_version_with_a_weaker_shuffle_is_refused(sites: Sites, visit: Visit, change: dict[str, Any] | None) -> None:
    """Whatever a collector signs later: reports never go out with less between than people agreed to."""
    tab = visit(sites.collector)
    weaker = {"trust": "local", "shuffle": None} if change is None else {"shuffle": replace(sites.route, **change)}
    sites.collector.collection = replace(sites.collector.collection, version=2, **weaker)
    with pytest.raises(Exception, match="begin a new collection under a new name"):
        tab.reopen()
    assert not sites.collector.uploads


LINKED = {
    "a state": {"state": "Remembering", "frozen": "last"},
    "plain numbers": {"views": [{"kind": "withnumbers", "view": {"kind": "whole"}, "numbers": []}]},
}


@pytest.mark.parametrize("linked", LINKED.values(), ids=LINKED)
def test_questions_whose_reports_can_be_linked_are_refused(sites: Sites, visit: Visit, linked: dict[str, Any]) -> None:
    spec = sites.collector.document()
    terms = {"popular": {**spec["terms"]["popular"], **linked}}
    sites.collector.changed = {"terms": terms}
    with pytest.raises(Exception, match="undoes the shuffle"):
        visit(sites.collector)


def test_a_small_batch_needs_a_reason(sites: Sites, visit: Visit) -> None:
    spec = sites.collector.document()
    sites.collector.changed = {"shuffle": {**spec["shuffle"], "least": 19}}
    with pytest.raises(Exception, match="least: at least 20, or a reason"):
        visit(sites.collector)


@pytest.mark.parametrize("mechanism", ["ExSub", "NetSub"])
def test_what_follows_an_enrolment_in_vain_is_not_sent(site: OpenSite, visit: Visit, mechanism: str) -> None:
    """A report of a device that is not enrolled would stand in for one of a device that missed the batch."""
    keys: dict[str, Any] = {"epsilon": 8.0, "steps": 2, "changes": 8, "mechanism": mechanism}
    moves = {"moves": Question.make(kind="changes", field="theme", **keys)}
    sites = Sites(site, replace(THEMES, questions=moves, budget=Budget.of(user=50.0)))
    sites.collector.clock.set(THEMES.opens(277776))  # the first step of a horizon
    sites.first.status, sites.first.reject = 0, "late"  # it hangs up, and then says that it is too late
    tab = visit(sites.collector)
    for device in range(20):  # 3 in 100 are on the level that says nothing before the second step
        tab.reopen(database=f"device {device}")
        tab.tick()
        if tab.status()["pending"]:
            break
    sites.first.uploads.clear()
    sites.first.status = 200
    tab.tick(later=HOUR)
    assert len(sites.first.uploads) == 1
    sites.first.reject = None
    tab.tick(later=60)
    assert tab.status()["pending"] == 0
    assert not sites.first.entries
    tab.record("theme", "dark")
    tab.tick(later=HOUR)
    assert len(sites.first.entries) == 1  # the next horizon begins


def test_an_enrolment_in_vain_takes_nothing_of_the_next_horizon_with_it(site: OpenSite, visit: Visit) -> None:
    """Three steps without a connection: what enrols in the last horizon is too late, and what follows it is dropped."""
    moves = Question.make(kind="changes", field="theme", epsilon=8.0, steps=2, changes=8)
    sites = Sites(site, replace(THEMES, questions={"moves": moves}, budget=Budget.of(user=50.0)))
    first = 277776  # the first step of a horizon
    sites.collector.clock.set(THEMES.opens(first))
    sites.first.status, sites.first.late_before = 0, first + 1
    tab = visit(sites.collector)
    for device in range(20):  # 3 in 100 are on the level that says nothing before the second step
        tab.reopen(database=f"device {device}")
        tab.tick()
        if tab.status()["pending"]:
            break
    for _ in range(2):
        tab.tick(later=HOUR)
    assert tab.status()["pending"] == 3
    sites.first.status = 200
    tab.tick(later=60)
    assert [entry.step for entry in sites.first.entries.values()] == [first + 2]
    tab.tick(later=HOUR)
    assert [entry.step for entry in sites.first.entries.values()] == [first + 2, first + 3]
    assert tab.status()["pending"] == 0
