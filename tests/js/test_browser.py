"""The client in a real browser, against a collector that remembers everything."""

from __future__ import annotations

import gzip
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubbub import GRR
from hubbub.authoring import load_collection
from hubbub.collection import Collection
from hubbub.core.domain import Categorical, KeyValue, Numeric, Ordinal, Sets, Strings
from hubbub.core.reports import Reports
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.protocols.views.basic import Clipped
from hubbub.questions import Question

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parents[2]

HOUR = 3600
THEMES = Collection(
    name="themes",
    title="Light or dark?",
    fields={"theme": Categorical(["light", "dark"]), "age": Ordinal(100)},
    questions={"popular": Question.make(kind="histogram", field="theme", epsilon=1.0)},
    budget=Budget.of(user=3.0),
    step_seconds=HOUR,
)
EPSILON = 10**12
OPEN = "options => open_client(options).then(client => { window.client = client; })"
SURE = {"epsilon_above_8": "what was answered is to be seen"}
STATUS = """() => client.status().then(status => JSON.parse(JSON.stringify(status,
    (_, value) => typeof value === "bigint" ? Number(value) : value)))"""
# What is on the disk, as another program would see it.
STORED = """async () => {
  const asked = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = reject;
  });
  const db = await asked(indexedDB.open("hubbub"));
  const all = await asked(db.transaction("kept").objectStore("kept").getAll());
  db.close();
  return {
    spent: Number(all.find((row) => row?.totals)?.totals.asks ?? 0n),
    entries: all.filter((row) => row?.id && row.question).length,
  };
}"""


def visit(context: BrowserContext, site: Any, **options: Any) -> Page:
    """Open the page, and the client in it."""
    page = context.new_page()
    page.goto(f"{site.url}/page")
    page.wait_for_function("() => !!window.open_client")
    set_time(page, site)
    page.evaluate(OPEN, {"collection": site.collection.name, "keys": [site.keys.public.hex()], **options})
    return page


def set_time(page: Page, site: Any) -> None:
    page.evaluate("time => { window.time = time; }", site.clock.now() * 1000)


def record(page: Page, field: str, value: Any) -> None:
    page.evaluate("([field, value]) => client.record(field, value)", [field, value])


def tick(page: Page, site: Any, later: float = 0) -> None:
    """Let time pass, and let the client do its work."""
    site.clock.advance(later)
    set_time(page, site)
    page.evaluate("client.tick()")


def status(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(STATUS)
    return found


def promise(page: Page, scope: str) -> dict[str, Any]:
    """The one promise about an account or a question."""
    (found,) = [each for each in status(page)["promises"] if each.pop("scope") == scope]
    return found


def test_records_and_uploads(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    record(page, "theme", "dark")
    tick(page, collector)
    tick(page, collector)  # an ask is answered once
    step, life = {"steps": 1, "interval": HOUR * 1000}, {"steps": 0, "interval": 0}
    assert status(page) == {
        "step": collector.step,
        "lifetime": EPSILON,
        "promises": [
            {"scope": "asks", "spent": EPSILON, "limit": 3 * EPSILON, **life},
            {"scope": "question:popular", "spent": EPSILON, "limit": EPSILON, **step},
        ],
        "recovered": False,
        "pending": 0,
        "refused": {},
    }
    ((_, ask),) = collector.current()
    (entry,) = collector.entries.values()
    assert entry.name == ("popular", 0, collector.step, 1, 0)
    assert ask.mechanism.accumulate(Reports.concat(collector.reports())).n == 1
    (headers,) = collector.headers
    assert headers["content-type"] == "application/json"
    assert not {"cookie", "referer"} & headers.keys()


def test_works_as_a_script_tag(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = context.new_page()
    page.goto(f"{collector.url}/page")
    page.evaluate("window.hubbub = null")
    page.add_script_tag(url="/hubbub.js")
    opened = "hubbub.connect({server: location.origin, collection: 'themes', keys})"
    page.evaluate(f"keys => {opened}.then(client => {{ window.client = client; }})", [collector.keys.public.hex()])
    record(page, "theme", "light")


def test_what_a_field_does_not_have_is_refused(context: BrowserContext, site: Callable[..., Any]) -> None:
    fields = {**THEMES.fields, "weight": Numeric(0.0, 9.0, cells=3), "pets": Sets(Categorical(["cat", "dog"]), most=2)}
    page = visit(context, site(replace(THEMES, fields=fields)))
    right = [("theme", "dark"), ("age", 99), ("weight", 1e9), ("pets", ["dog"]), ("pets", [])]
    for field, value in right:
        record(page, field, value)
    wrong = [("theme", "(none)"), ("theme", 1), ("theme", None), ("age", 100), ("age", -1), ("age", 0.5), ("age", True)]
    wrong += [("weight", "1"), ("weight", None), ("pets", ["cow"]), ("pets", ["cat", "cat"]), ("nothing", 1)]
    for field, value in wrong:
        with pytest.raises(Exception, match="Refused"):
            record(page, field, value)


def test_state_survives_a_reload(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    record(page, "theme", "dark")
    tick(page, collector)
    page.close()
    page = visit(context, collector)
    tick(page, collector)
    assert len(collector.entries) == len(collector.uploads) == 1
    assert status(page)["lifetime"] == EPSILON
    tick(page, collector, later=HOUR)
    assert len(collector.entries) == 2
    assert status(page)["lifetime"] == 2 * EPSILON


def test_the_recorded_value_is_what_is_answered_and_nothing_recorded_is_a_value_too(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    # At epsilon 30 a false answer has probability 2e-13.
    sure = {name: Question.make(kind="histogram", field=name, epsilon=30.0, mechanism="GRR") for name in THEMES.fields}
    collector = site(replace(THEMES, questions=sure, budget=Budget.of(event=60.0), overrides=SURE))
    page = visit(context, collector)
    record(page, "age", 41)
    tick(page, collector)
    told = {name: [int(report.private["value"][0]) for report in collector.reports(name)] for name in sure}
    assert told == {"theme": [2], "age": [41]}


def test_the_first_value_of_a_step_is_the_one_that_counts(context: BrowserContext, site: Callable[..., Any]) -> None:
    sure = Question.make(kind="histogram", field="age", epsilon=30.0, mechanism="GRR")
    asked = {"a": sure, "b": sure}
    collector = site(replace(THEMES, questions=asked, budget=Budget.of(event=90.0), overrides=SURE))
    page = visit(context, collector)
    record(page, "age", 1)
    first, second = collector.current()
    collector.asks = [first]
    tick(page, collector)
    record(page, "age", 2)
    collector.asks = [second]  # in the same step, later
    page.evaluate("client.asks = null")
    tick(page, collector)
    collector.asks = None
    page.evaluate("client.asks = null")
    tick(page, collector, later=HOUR)  # nothing was recorded in this step
    collector.clock.advance(HOUR)
    set_time(page, collector)
    record(page, "age", 3)
    record(page, "age", 4)
    tick(page, collector)
    for name in asked:
        assert [int(report.private["value"][0]) for report in collector.reports(name)] == [1, 100, 4]


def test_an_answer_can_wait_for_what_is_yet_to_be_recorded(context: BrowserContext, site: Callable[..., Any]) -> None:
    sure = Question.make(kind="histogram", field="age", epsilon=30.0, mechanism="GRR")
    collector = site(replace(THEMES, questions={"a": sure}, budget=Budget.of(event=90.0), overrides=SURE))
    collector.clock.set(THEMES.opens(277777))
    page = visit(context, collector)
    for part in range(4):
        set_time(page, collector)
        record(page, "age", part)
        page.evaluate("client.tick(0.5)")
        collector.clock.advance(HOUR / 4)
    assert [int(report.private["value"][0]) for report in collector.reports()] == [2]


def test_offline_answers_wait_and_go_out_when_the_network_is_back(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    record(page, "theme", "dark")
    tick(page, collector)
    context.set_offline(True)
    tick(page, collector, later=HOUR)  # a standing ask needs no further word
    assert status(page)["pending"] == 1
    assert status(page)["lifetime"] == 2 * EPSILON
    assert len(collector.entries) == 1
    context.set_offline(False)
    page.wait_for_function("() => client.status().then(status => status.pending === 0)")
    assert len(collector.entries) == 2
    assert [entry.step for entry in collector.entries.values()] == [collector.step - 1, collector.step]


def test_a_retry_sends_the_same_bytes(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    record(page, "theme", "dark")
    collector.status = 0  # taken in, but nobody hears of it
    tick(page, collector)
    assert status(page)["pending"] == 1
    page.close()
    collector.status = 200
    page = visit(context, collector)
    assert page.evaluate("client.flush()") is True
    assert collector.duplicates >= 1
    assert collector.replays == 0
    assert len(set(collector.uploads)) == len(collector.entries) == 1
    assert status(page)["pending"] == 0


def test_a_server_that_fails_is_left_in_peace_for_a_while(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    collector.status = 503
    for _ in range(5):
        tick(page, collector)
    assert len(collector.headers) == 1
    assert page.evaluate("client.flush()") is False  # asked for, it is tried at once
    collector.status = 200
    tick(page, collector, later=5)
    assert len(collector.headers) == 3
    assert len(collector.entries) == 1


def test_what_the_server_rejects_for_good_is_dropped_and_the_rest_is_kept(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    collector.reject = "too_early"
    tick(page, collector)
    assert status(page)["pending"] == 1
    collector.reject = "late"
    page.evaluate("client.flush()")
    assert status(page)["pending"] == 0
    assert status(page)["lifetime"] == EPSILON


@pytest.mark.parametrize("kind", ["fetch that outlives the page", "beacon"])
def test_a_page_that_goes_leaves_what_waits(context: BrowserContext, site: Callable[..., Any], kind: str) -> None:
    collector = site(THEMES)
    if kind == "beacon":
        context.add_init_script("delete Request.prototype.keepalive")
    page = visit(context, collector)
    record(page, "theme", "dark")
    collector.status = 503
    tick(page, collector)
    assert not collector.entries
    collector.status = 200
    page.goto("about:blank")
    for _ in range(200):
        if collector.entries:
            break
        page.wait_for_timeout(20)
    assert len(collector.entries) == 1
    page.close()
    page = visit(context, collector)  # nobody heard of it, so it is sent again, and known
    assert page.evaluate("client.flush()") is True
    assert len(collector.entries) == collector.duplicates == 1


def test_the_budget_is_the_last_word(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    for _ in range(5):
        tick(page, collector, later=HOUR)
    assert len(collector.entries) == 3
    assert status(page)["refused"] == {"popular": "budget: asks has spent what was promised"}
    assert promise(page, "asks") == {"spent": 3 * EPSILON, "limit": 3 * EPSILON, "steps": 0, "interval": 0}
    page.close()
    page = visit(context, collector)
    tick(page, collector, later=HOUR)
    assert len(collector.entries) == 3


def test_a_window_gives_back_only_what_surely_is_past(context: BrowserContext, site: Callable[..., Any]) -> None:
    windowed = replace(THEMES, budget=Budget.of(window=(1.0, 2)), step_seconds=1)
    collector = site(windowed)
    page = visit(context, collector)
    tick(page, collector)
    tick(page, collector, later=10 * 365 * 86400)  # by the page's own clock next to no time has passed
    assert len(collector.entries) == 1
    page.evaluate("() => new Promise(resolve => setTimeout(resolve, 1050))")
    tick(page, collector, later=2)
    assert len(collector.entries) == 2
    page.close()
    page = visit(context, collector)
    tick(page, collector, later=10)
    assert len(collector.entries) == 2
    page.close()
    page = visit(context, collector, trustWallClock=True)
    tick(page, collector, later=10)
    assert len(collector.entries) == 3


@pytest.mark.parametrize("years", [10, -10])
def test_by_default_a_clock_that_jumps_between_visits_gives_nothing_back(
    context: BrowserContext, site: Callable[..., Any], years: int
) -> None:
    collector = site(replace(THEMES, budget=Budget.of(window=(2.0, 24))))
    for visited in range(4):
        page = visit(context, collector)
        tick(page, collector)
        page.close()
        collector.clock.set(collector.clock.now() + (HOUR if visited == 0 else years * 365 * 86400))
    assert len(collector.entries) == 2


def test_a_clock_set_back_is_not_answered(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    tick(page, collector, later=10 * HOUR)
    collector.clock.set(1e9)
    tick(page, collector)
    assert len(collector.entries) == 1
    assert "set back" in status(page)["refused"]["popular"]


def test_two_tabs_answer_once(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    pages = [visit(context, collector) for _ in range(3)]
    for page in pages:
        page.evaluate("() => { window.done = Promise.all([client.tick(), client.tick()]); }")
    for page in pages:
        page.evaluate("() => window.done.then(() => null)")
    assert len(collector.entries) == 1
    assert collector.replays == 0
    assert status(pages[0])["lifetime"] == EPSILON


def test_a_debit_and_its_bytes_are_kept_together_or_not_at_all(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    # Each write of an answer fails in turn; the last turn is one that none fails in.
    collector = site(replace(THEMES, budget=Budget.of(user=1000.0)))
    page = visit(context, collector)
    fail = """n => { const put = window.put ??= IDBObjectStore.prototype.put; let left = n;
      IDBObjectStore.prototype.put = function (...given) {
        if (given[1]?.[1] !== "document" && left-- === 0) throw new Error("the disk is full");
        return put.apply(this, given);
      }; }"""
    collector.status = 503
    outcomes = []
    for turn in range(5):
        page.evaluate(fail, turn)
        tick(page, collector, later=HOUR)
        stored = page.evaluate(STORED)
        assert stored["spent"] == stored["entries"] * EPSILON
        outcomes.append(stored["entries"])
    assert outcomes[0] == 0
    assert outcomes[-1] > 0


def test_killed_at_any_moment_it_has_spent_what_it_sent(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(replace(THEMES, budget=Budget.of(user=1000.0)))
    for turn in range(8):
        page = visit(context, collector)
        collector.clock.advance(HOUR)
        set_time(page, collector)
        page.evaluate(f"() => {{ client.tick(); return new Promise(resolve => setTimeout(resolve, {2 * turn})); }}")
        page.close()
    page = visit(context, collector)
    page.evaluate("client.flush()")
    assert status(page)["lifetime"] == len(collector.entries) * EPSILON
    assert collector.replays == 0


MEMO = Question.make(kind="memo", field="theme", epsilon=1.0, permanent=2.0)


def test_a_memo_is_paid_once_and_answers_for_life(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(replace(THEMES, questions={"memo": MEMO}, budget=Budget.of(user=4.5)))
    page = visit(context, collector)
    mechanism = collector.current()[0][1].mechanism
    once = mechanism.permanent_event().spent
    record(page, "theme", "dark")
    for _ in range(14):
        tick(page, collector, later=HOUR)
    assert status(page)["lifetime"] == once
    assert len(collector.entries) == 14
    # A second layer hides the first: all alike, 3 bits 14 times, with probability below 1e-5.
    assert len({entry.report for entry in collector.entries.values()}) > 1
    page.close()
    page = visit(context, collector)
    record(page, "theme", "light")
    tick(page, collector, later=HOUR)
    assert status(page)["lifetime"] == 2 * once
    record(page, "theme", "dark")
    tick(page, collector, later=HOUR)
    assert status(page)["lifetime"] == 2 * once
    assert len(collector.entries) == 16
    mechanism.accumulate(Reports.concat(collector.reports()))


def test_what_memos_cost_does_not_show_in_the_other_questions(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    both = replace(THEMES, questions={**THEMES.questions, "memo": MEMO}, budget=Budget.of(user=8.0))
    answered = []
    for changes in (False, True):
        collector = site(both)
        page = visit(context, collector)
        for day in range(6):
            record(page, "theme", ("light", "dark")[day % 2 if changes else 0])
            tick(page, collector, later=HOUR)
        answered.append(sum(entry.question == "popular" for entry in collector.entries.values()))
        assert len(collector.entries) - answered[-1] == 6
    assert answered == [4, 4]


def test_without_budget_a_changed_value_does_not_silence_a_memo(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    collector = site(replace(THEMES, questions={"memo": MEMO}, budget=Budget.of(user=2.5)))
    page = visit(context, collector)
    record(page, "theme", "dark")
    tick(page, collector)
    record(page, "theme", "light")
    tick(page, collector, later=HOUR)
    assert len(collector.entries) == 2
    assert status(page)["refused"] == {}
    assert status(page)["lifetime"] == collector.current()[0][1].mechanism.permanent_event().spent


def test_small_arcs_and_greedy_asks_are_refused(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    ((_, ask),) = collector.current()
    greedy: dict[str, Ask] = {
        "arc": replace(ask, cohort=Arc(0, THEMES.minimum_arc - 1)),
        "mechanism": replace(ask, mechanism=GRR(epsilon=2.0, domain=3)),
        "view": replace(ask, view=Clipped(0.0, 1.0)),
        "step": replace(ask, step=collector.step + 1, standing=False),
    }
    for reason, asked in greedy.items():
        collector.asks = [("popular", asked)]
        page.evaluate("client.asks = null")
        tick(page, collector)
        assert status(page)["refused"]["popular"].startswith(reason)
    collector.asks = [("nothing", ask)]
    page.evaluate("client.asks = null")
    tick(page, collector)
    assert "question" in status(page)["refused"]["nothing"]
    assert status(page)["lifetime"] == 0
    assert not collector.headers


EVERY_KIND = {
    "average": Question.make(kind="mean", field="seconds", epsilon=1.0),
    "held": Question.make(kind="keyvalue", field="minutes", epsilon=1.0),
    "liked": Question.make(kind="keyvalue", field="moods", epsilon=1.0),
    "lasting": Question.make(kind="memo", field="age", epsilon=0.5, permanent=1.0),
    "kept": Question.make(kind="memo", field="age", epsilon=0.5, permanent=1.5, mechanism="Loloha"),
    "moves": Question.make(kind="changes", field="theme", epsilon=1.0, steps=8, changes=3),
    "awake": Question.make(kind="changes", field="on", epsilon=1.0, steps=8, changes=3),
    "owned": Question.make(kind="changes", field="pets", epsilon=1.0, steps=8, changes=3),
    "pets": Question.make(kind="histogram", field="pets", of="size", epsilon=1.0),
    "which": Question.make(kind="histogram", field="pets", epsilon=1.0),
    "popular": THEMES.questions["popular"],
    "seconds": Question.make(kind="histogram", field="seconds", epsilon=1.0),
    "trend": Question.make(kind="stream", field="seconds", epsilon=1.0, method="LBU", w=5),
    "words": Question.make(kind="histogram", field="word", epsilon=4.0, candidates=("yes", "no")),
}
EVERY_FIELD = {
    **THEMES.fields,
    "minutes": KeyValue(("mail", "chat"), low=0.0, high=60.0, most=1),
    "moods": KeyValue(tuple(f"mood {k}" for k in range(40)), low=-1.0, high=1.0, most=4),
    "on": Ordinal(2),
    "pets": Sets(Categorical(["cat", "dog", "cow"]), most=2),
    "seconds": Numeric(0.0, 20.0, cells=8),
    "word": Strings(longest=16),
}


def test_a_question_of_every_kind_is_answered(context: BrowserContext, site: Callable[..., Any]) -> None:
    every = replace(THEMES, fields=EVERY_FIELD, questions=EVERY_KIND, budget=Budget.of(user=400.0))
    collector = site(every)
    page = visit(context, collector)
    values: dict[str, Any] = {"theme": "dark", "age": 4, "minutes": {"mail": 3.0}, "moods": {"mood 3": -0.5}}
    values |= {"on": 1, "pets": ["cow"], "seconds": 7.5, "word": "yes"}
    for field, value in values.items():
        record(page, field, value)
    for field, value in {"minutes": {"post": 1.0}, "moods": {"mood 3": "x"}, "word": "x" * 17}.items():
        with pytest.raises(Exception, match="Refused"):
            record(page, field, value)
    for _ in range(3):
        tick(page, collector, later=HOUR)
    assert status(page)["refused"] == {}
    heard = {name: [entry for entry in collector.entries.values() if entry.question == name] for name in EVERY_KIND}
    mechanisms = {name: ask.mechanism for name, ask in collector.current()}
    names = {type(mechanism).__name__ for mechanism in mechanisms.values()}
    assert names >= {"Hybrid", "ExSub", "NetSeed", "BasicRappor", "Loloha", "GRR", "Rappor", "PSFO"}
    for name, entries in heard.items():
        if EVERY_KIND[name].kind != "changes":  # whose devices speak when they have something to say
            assert len(entries) == 3, name
        assert entries, name  # they enrol with the first
        mechanisms[name].accumulate(Reports.concat([entry.reports(mechanisms[name]) for entry in entries]))


def test_a_stream_of_changes_enrols_until_it_was_heard_and_pays_once_a_horizon(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    moves = {"moves": Question.make(kind="changes", field="theme", epsilon=1.0, steps=4, changes=3)}
    collector = site(replace(THEMES, questions=moves, budget=Budget.of(user=2.5)))
    collector.clock.set(THEMES.opens(277776))  # the first step of a horizon
    page = visit(context, collector)
    record(page, "theme", "dark")
    once = collector.current()[0][1].mechanism.event().spent
    heard = []
    collector.reject = "late"  # nobody counted it
    for step in range(12):
        tick(page, collector)
        assert status(page)["lifetime"] == min(step // 4 + 1, 2) * once
        page.close()
        page = visit(context, collector)
        heard.append([bool(report.public["new"][0]) for report in collector.reports()])
        collector.entries.clear()
        collector.reject = None
        collector.clock.advance(HOUR)
        set_time(page, collector)
        record(page, "theme", ("light", "dark")[step % 2])
    assert heard[:2] == [[], [True]]  # it says so again, and then no more
    assert not any(new for entries in heard[2:4] for new in entries)
    assert heard[4] == [True]
    assert not any(new for entries in heard[5:8] for new in entries)
    assert heard[8:] == [[]] * 4  # a third horizon is not paid for


def test_a_mechanism_that_it_does_not_know_is_refused_by_name_and_the_rest_is_answered(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    other = Question.make(kind="histogram", field="age", epsilon=1.0, mechanism="Hadamard")
    collector = site(replace(THEMES, questions={**THEMES.questions, "other": other}, budget=Budget.of(user=50.0)))
    page = visit(context, collector)
    tick(page, collector)
    assert status(page)["refused"]["other"].startswith("mechanism: one of GRR,")
    assert [entry.question for entry in collector.entries.values()] == ["popular"]
    assert status(page)["lifetime"] == EPSILON


@pytest.mark.parametrize("silent", ["not its turn", "budget spent"])
def test_cover_looks_like_an_answer(context: BrowserContext, site: Callable[..., Any], silent: str) -> None:
    steps, budget = 6, 3.0 if silent == "budget spent" else 50.0
    collector = site(replace(THEMES, budget=Budget.of(user=budget), cover=True))
    page = visit(context, collector)
    ((_, ask),) = collector.current()
    for step in range(steps):
        # Either half of the circle in turn: one of them is without this device.
        arc = Arc(0, CIRCLE) if silent == "budget spent" else Arc(step % 2 * (CIRCLE // 2), CIRCLE // 2)
        collector.asks = [("popular", replace(ask, step=collector.step, cohort=arc))]
        page.evaluate("client.asks = null")
        for _ in range(2):
            tick(page, collector)
        collector.clock.advance(HOUR)
    assert len(collector.uploads) == steps
    assert len({len(body) for body in collector.uploads}) == 1
    assert sum(body.count(b'"entries":[]') for body in collector.uploads) == 3
    assert len(collector.entries) == 3
    assert status(page)["lifetime"] == 3 * EPSILON
    assert status(page)["pending"] == 0
    page.evaluate("client.tick()")
    assert len(collector.uploads) == steps


def test_half_the_circle_is_half_of_the_devices(context: BrowserContext, site: Callable[..., Any]) -> None:
    # Each database is a device. Of 24, all or none are in a half with probability 2^-23.
    collector = site(THEMES)
    ((_, ask),) = collector.current()
    collector.asks = [("popular", replace(ask, cohort=Arc(0, CIRCLE // 2)))]
    page = visit(context, collector)
    options = {"collection": "themes", "keys": [collector.keys.public.hex()]}
    page.evaluate(
        """async options => {
          for (let n = 0; n < 24; n++) await (await open_client({ ...options, database: `device ${n}` })).tick();
        }""",
        options,
    )
    assert 0 < len(collector.entries) < 24


@pytest.mark.parametrize("what", ["collection", "asks"])
def test_a_wrong_signature_is_refused(context: BrowserContext, site: Callable[..., Any], what: str) -> None:
    from hubbub.collection import Keys

    collector = site(THEMES)
    if what == "asks":
        page = visit(context, collector)
        collector.signer = Keys.new()
        tick(page, collector)
        assert "key: a trusted key" in status(page)["refused"]["asks"]
        assert status(page)["lifetime"] == 0
    else:
        collector.signer = Keys.new()
        with pytest.raises(Exception, match="key: a trusted key"):
            visit(context, collector)
    assert not collector.headers


def test_a_document_in_another_spelling_is_refused(context: BrowserContext, site: Callable[..., Any]) -> None:
    """Of one thing there is one spelling: others could tell devices apart."""
    from hubbub.collection.sealing import sign

    collector = site(THEMES)
    good = collector.sealed

    def spelt_otherwise(spec: Any) -> dict[str, str]:
        document = good(spec)
        payload = document["payload"].replace(":", ": ", 1)
        return {**document, "payload": payload, "signature": sign(payload.encode(), collector.signer.private).hex()}

    collector.sealed = spelt_otherwise
    with pytest.raises(Exception, match="canonical spelling"):
        visit(context, collector)


@pytest.mark.parametrize("part", ["payload", "signature", "key"])
def test_a_document_that_was_touched_is_refused(context: BrowserContext, site: Callable[..., Any], part: str) -> None:
    collector = site(THEMES)
    good = collector.sealed

    def touched(spec: Any) -> dict[str, str]:
        document = good(spec)
        old = document[part]
        document[part] = (
            old.replace("Light", "Right") if part == "payload" else ("1" if old[0] == "0" else "0") + old[1:]
        )
        return document

    collector.sealed = touched
    with pytest.raises(Exception, match="Refused"):
        visit(context, collector)


def test_an_older_version_or_another_collection_is_refused(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(replace(THEMES, version=2))
    visit(context, collector).close()
    collector.collection = THEMES
    with pytest.raises(Exception, match="version"):
        visit(context, collector)
    collector.collection = replace(THEMES, version=3)
    sealed = collector.sealed
    collector.sealed = lambda spec: sealed({**spec, "name": "others"})
    with pytest.raises(Exception, match="name"):
        visit(context, collector)


def test_a_new_version_gives_no_new_life(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    tick(page, collector, later=HOUR)
    collector.collection = replace(THEMES, version=2, step_seconds=2 * HOUR)
    for _ in range(4):
        tick(page, collector, later=2 * HOUR)
    assert status(page)["lifetime"] == len(collector.entries) * EPSILON == 3 * EPSILON
    memo = Question.make(kind="memo", field="age", epsilon=0.5, permanent=1.0)
    asked = {**THEMES.questions, "memo": memo}
    collector.collection = replace(THEMES, version=3, step_seconds=2 * HOUR, questions=asked)
    tick(page, collector, later=2 * HOUR)
    assert status(page)["lifetime"] == 3 * EPSILON
    assert set(status(page)["refused"]) == {"popular", "memo"}


def test_a_window_is_not_emptied_by_a_new_version(context: BrowserContext, site: Callable[..., Any]) -> None:
    windowed = replace(THEMES, budget=Budget.of(window=(2.0, 10)))
    collector = site(windowed)
    page = visit(context, collector)
    tick(page, collector)
    collector.collection = replace(windowed, version=2, step_seconds=2 * HOUR)
    for _ in range(3):
        tick(page, collector, later=2 * HOUR)
    assert len(collector.entries) == 2
    assert promise(page, "asks") == {
        "spent": 2 * EPSILON,
        "limit": 2 * EPSILON,
        "steps": 10,
        "interval": 2 * HOUR * 1000,
    }


def test_a_version_that_lifts_every_limit_is_refused(context: BrowserContext, site: Callable[..., Any]) -> None:
    # Version 1 promises 2 in any 7 days. Version 2 has steps of a second, no window, and 8 in each of them.
    collector = site(replace(THEMES, budget=Budget.of(window=(2.0, 7 * 24))))
    page = visit(context, collector)
    tick(page, collector)
    greedy = Question.make(kind="histogram", field="theme", epsilon=2.0)
    asked = {**THEMES.questions, "more": greedy, "age": replace(greedy, field="age")}
    collector.collection = replace(
        THEMES, version=2, step_seconds=1, budget=Budget.of(event=8.0), questions=asked, minimum_arc=1
    )
    for _ in range(3):
        tick(page, collector, later=HOUR)
    assert status(page)["refused"]["asks"].endswith("to promise less, begin a new collection under a new name")
    assert len(collector.entries) == 1
    page.close()
    with pytest.raises(Exception, match=r"privacy\.window: people agreed to the older promise"):
        visit(context, collector)


def test_an_answer_of_version_1_counts_in_version_2_at_once(context: BrowserContext, site: Callable[..., Any]) -> None:
    # Once in a step of version 1, whatever the version: steps that begin at another time do not give the question back.
    daily = replace(THEMES, budget=Budget.of(event=1.0), step_seconds=24 * HOUR)
    collector = site(daily)
    page = visit(context, collector)
    tick(page, collector)
    collector.collection = replace(daily, version=2, origin=round(collector.clock.now()) + 30)
    for _ in range(5):
        tick(page, collector, later=60)
    assert len(collector.entries) == 1
    tick(page, collector, later=24 * HOUR)
    assert [entry.step for entry in collector.entries.values()][1:] == [collector.step]


def test_a_question_promised_once_in_a_week_is_answered_once_in_a_week(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    turns = Question.make(kind="stream", field="theme", epsilon=1.0, method="LPU", w=7)
    collector = site(replace(THEMES, questions={"turns": turns}, budget=Budget.of(event=50.0), step_seconds=24 * HOUR))
    page = visit(context, collector, trustWallClock=True)
    ((name, ask),) = collector.current()
    for _ in range(8):
        collector.asks = [(name, replace(ask, cohort=Arc(0, CIRCLE), step=collector.step))]  # everyone, every day
        page.evaluate("client.asks = null")
        tick(page, collector)
        page.close()
        collector.clock.advance(24 * HOUR)
        page = visit(context, collector, trustWallClock=True)
    days = [entry.step for entry in collector.entries.values()]
    assert days == [days[0], days[0] + 7]


def test_a_round_is_answered_once_whatever_asks_for_it(context: BrowserContext, site: Callable[..., Any]) -> None:
    adaptive = Question.make(kind="stream", field="theme", epsilon=1.0, method="LBD", w=5)
    collector = site(replace(THEMES, questions={"trend": adaptive}, budget=Budget.of(event=50.0)))
    page = visit(context, collector)
    ((name, ask),) = collector.current()
    others = [replace(ask, cohort=Arc(at, CIRCLE)) for at in range(3)]
    collector.clock.set(THEMES.opens(collector.step + 1))
    for number, later in ((1, 0), (1, 0), (2, 0), (2, HOUR / 2), (2, 0), (1, 0), (3, 0)):
        collector.round = number
        collector.clock.advance(later)
        collector.published_asks = [
            {**collector.as_published(name, replace(each, step=collector.step)), "closes": 1e12} for each in others[:1]
        ]
        page.evaluate("client.asks = null")
        tick(page, collector)
        refused = status(page)["refused"].get("trend", "")
        assert refused.startswith("round") == (
            number == 3 or ((number, later) == (2, 0) and len(collector.entries) < 2)
        )
    assert [(entry.step, entry.round) for entry in collector.entries.values()] == [
        (collector.step, 1),
        (collector.step, 2),
    ]


DROP = """name => new Promise((resolve, reject) => {
  const opening = indexedDB.open("hubbub");
  opening.onsuccess = () => {
    const transaction = opening.result.transaction("kept", "readwrite");
    transaction.objectStore("kept").delete([`${location.origin} themes`, name]);
    transaction.oncomplete = () => { opening.result.close(); resolve(); };
    transaction.onabort = reject;
  };
})"""
RECOVER = """options => hubbub.recover({ server: location.origin, now: () => window.time, ...options })
  .then(client => { window.client = client; })"""


@pytest.mark.parametrize("unit", ["user", "window"])
def test_a_lost_account_is_refused_and_recovered_only_on_purpose(
    context: BrowserContext, site: Callable[..., Any], unit: str
) -> None:
    budget = Budget.of(user=3.0) if unit == "user" else Budget.of(window=(1.0, 2))
    collector = site(replace(THEMES, budget=budget, step_seconds=1))
    page = visit(context, collector)
    tick(page, collector)
    page.evaluate(DROP, "book")
    page.close()
    for _ in range(2):  # not by trying again either
        with pytest.raises(Exception, match="account: gone"):
            visit(context, collector)
    page = context.new_page()
    page.goto(f"{collector.url}/page")
    page.wait_for_function("() => !!window.hubbub")
    set_time(page, collector)
    options = {"collection": "themes", "keys": [collector.keys.public.hex()], "trustWallClock": True}
    page.evaluate(RECOVER, options)
    assert status(page)["recovered"]
    tick(page, collector, later=1)
    assert len(collector.entries) == 1
    assert status(page)["refused"] == {"popular": "budget: asks has spent what was promised"}
    for visited in range(2):
        page.close()
        collector.clock.advance(100)
        page = visit(context, collector, trustWallClock=True)
        page.evaluate(RECOVER, options)  # the account is there: nothing is lost again
        tick(page, collector)
        assert len(collector.entries) == (1 if unit == "user" else 2 + visited)


def test_without_its_key_a_device_keeps_its_account(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    tick(page, collector)
    page.evaluate(DROP, "key")
    page.close()
    page = visit(context, collector)
    assert status(page)["lifetime"] == EPSILON
    tick(page, collector)
    assert len(collector.entries) == 1


def test_a_version_with_unsafe_terms_is_not_put_in_force(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    page = visit(context, collector)
    large = Question.make(kind="histogram", field="theme", epsilon=9.0)
    collector.collection = replace(THEMES, version=2, questions={"popular": large}, budget=Budget.of(user=30.0))
    tick(page, collector)
    assert status(page)["refused"]["asks"].startswith("epsilon: at most 8")
    assert not collector.headers
    collector.collection = replace(collector.collection, overrides=SURE)
    tick(page, collector)
    assert "people agreed to the older promise" in status(page)["refused"]["asks"]
    assert not collector.headers


def test_numbers_are_sent_as_they_are_only_with_a_reason(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    views = [{"kind": "withnumbers", "view": {"kind": "whole"}, "numbers": []}]
    terms = {"popular": {**THEMES.spec()["terms"]["popular"], "views": views}}
    collector.changed = {"terms": terms}
    with pytest.raises(Exception, match="none that sends numbers as they are, or a reason"):
        visit(context, collector)
    collector.changed = {"terms": terms, "overrides": {"sent_as_it_is": "people know"}}
    visit(context, collector)


def test_no_tag_goes_back_to_the_server(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(THEMES)
    collector.tag = '"you again"'
    for _ in range(3):
        page = visit(context, collector)
        tick(page, collector, later=HOUR)
        page.evaluate("fetch('/settings.json')")  # as the browser itself does
        page.close()
    assert len(collector.entries) == 3
    assert "/settings.json" in collector.tags_back
    assert not [path for path in collector.tags_back if path.startswith("/v1/")]


BROKEN = {
    "no Ed25519": "crypto.subtle.importKey = () => Promise.reject(new DOMException('none', 'NotSupportedError'));",
    "no WebCrypto": "Object.defineProperty(crypto, 'subtle', { value: undefined });",
    "no randomness": "Object.defineProperty(crypto, 'getRandomValues', { value: undefined });",
    "no storage": "Object.defineProperty(window, 'indexedDB', { value: undefined });",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_browser_that_lacks_something_sends_nothing(
    context: BrowserContext, site: Callable[..., Any], what: str
) -> None:
    collector = site(THEMES)
    context.add_init_script(BROKEN[what])
    if what == "no randomness":
        page = visit(context, collector)
        tick(page, collector)
        assert "randomness" in status(page)["refused"]["popular"]
        assert status(page)["lifetime"] == 0
    else:
        with pytest.raises(Exception, match=r"Refused|NotSupported|undefined"):
            visit(context, collector)
    assert not collector.headers


EMOJI = load_collection(ROOT / "examples" / "emoji.toml")


@pytest.mark.parametrize(("width", "height", "scheme"), [(1100, 900, "light"), (390, 900, "dark")])
def test_the_example_page(
    browser: Browser, site: Callable[..., Any], tmp_path: Path, width: int, height: int, scheme: str
) -> None:
    collector = site(EMOJI)
    collector.clock.set(time.time())  # the page goes by the real time
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(collector.url)
    page.get_by_role("button", name="\U0001f389").click()
    page.get_by_text("A randomised answer has gone out").wait_for()
    assert page.locator("#waiting").inner_text() == "0"
    assert page.locator("#spent").inner_text() == str(len(collector.entries))  # two, if it is its turn in the stream
    assert "popular" in {entry.question for entry in collector.entries.values()}
    page.get_by_role("button", name="another").click()
    page.get_by_text("already").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot = page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
    assert len(shot) > 10_000
    assert not wrong
    context.close()


def test_the_bundle_is_small(built: Path) -> None:
    for name in ("hubbub.mjs", "hubbub.js"):
        assert len(gzip.compress((built / name).read_bytes(), 9)) < 22_528


def test_types_are_right(tools: Path, node: list[str]) -> None:
    done = subprocess.run(
        [*node, "node_modules/typescript/bin/tsc", "--noEmit"], cwd=tools, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
