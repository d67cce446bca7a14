"""The client in a real browser, against a collector that remembers everything."""

import gzip
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext

from hubbub import GRR
from hubbub.authoring import load_collection
from hubbub.collection import Keys, seal
from hubbub.collection.sealing import sign
from hubbub.core.domain import Categorical, KeyValue, Numeric, Ordinal, Sets, Strings
from hubbub.core.reports import Reports
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.protocols.views.basic import Clipped
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.js.tab import SEVERAL, OpenSite, Visit
from tests.served import wait_for
from tests.shared.small_collections import changed

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
SURE = {"epsilon_above_8": "what was answered is to be seen"}
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


def test_records_and_uploads(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.record("theme", "dark")
    tab.tick()
    tab.tick()  # an ask is answered once
    step, life = {"steps": 1, "interval": HOUR * 1000}, {"steps": 0, "interval": 0}
    assert tab.status() == {
        "step": tab.site.step,
        "lifetime": EPSILON,
        "promises": [
            {"scope": "asks", "spent": EPSILON, "limit": 3 * EPSILON, **life},
            {"scope": "question:popular", "spent": EPSILON, "limit": EPSILON, **step},
        ],
        "recovered": False,
        "pending": 0,
        "refused": {},
    }
    ((_, ask),) = tab.site.current()
    (entry,) = tab.site.entries.values()
    assert entry.name == ("popular", 0, tab.site.step, 1, 0)
    assert ask.mechanism.accumulate(Reports.concat(tab.site.reports())).n == 1
    (headers,) = tab.site.headers
    assert headers["content-type"] == "application/json"
    assert not {"cookie", "referer"} & headers.keys()


def test_works_as_a_script_tag(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.load()
    tab.evaluate("window.hubbub = null")
    tab.page.add_script_tag(url="/hubbub.js")
    opened = "hubbub.connect({ server: location.origin, ...options })"
    tab.evaluate(f"options => {opened}.then(client => {{ window.client = client; }})", tab.options)
    tab.record("theme", "light")


def test_what_a_field_does_not_have_is_refused(visit: Visit) -> None:
    fields = {**THEMES.fields, "weight": Numeric(0.0, 9.0, cells=3), "pets": Sets(Categorical(["cat", "dog"]), most=2)}
    tab = visit(replace(THEMES, fields=fields))
    right = [("theme", "dark"), ("age", 99), ("weight", 1e9), ("pets", ["dog"]), ("pets", [])]
    for field, value in right:
        tab.record(field, value)
    wrong = [("theme", "(none)"), ("theme", 1), ("theme", None), ("age", 100), ("age", -1), ("age", 0.5), ("age", True)]
    wrong += [("weight", "1"), ("weight", None), ("pets", ["cow"]), ("pets", ["cat", "cat"]), ("nothing", 1)]
    for field, value in wrong:
        with pytest.raises(Exception, match="Refused"):
            tab.record(field, value)


def test_state_survives_a_reload(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.record("theme", "dark")
    tab.tick()
    tab.reopen()
    tab.tick()
    assert len(tab.site.entries) == len(tab.site.uploads) == 1
    assert tab.lifetime == EPSILON
    tab.tick(later=HOUR)
    assert len(tab.site.entries) == 2
    assert tab.lifetime == 2 * EPSILON


def test_the_recorded_value_is_what_is_answered_and_nothing_recorded_is_a_value_too(visit: Visit) -> None:
    # At epsilon 30 a false answer has probability 2e-13.
    sure = {name: Question.make(kind="histogram", field=name, epsilon=30.0, mechanism="GRR") for name in THEMES.fields}
    tab = visit(replace(THEMES, questions=sure, budget=Budget.of(event=60.0), overrides=SURE))
    tab.record("age", 41)
    tab.tick()
    told = {name: [int(report.private["value"][0]) for report in tab.site.reports(name)] for name in sure}
    assert told == {"theme": [2], "age": [41]}


def test_the_first_value_of_a_step_is_the_one_that_counts(visit: Visit) -> None:
    sure = Question.make(kind="histogram", field="age", epsilon=30.0, mechanism="GRR")
    asked = {"a": sure, "b": sure}
    tab = visit(replace(THEMES, questions=asked, budget=Budget.of(event=90.0), overrides=SURE))
    tab.record("age", 1)
    first, second = tab.site.current()
    tab.site.asks = [first]
    tab.tick()
    tab.record("age", 2)
    tab.site.asks = [second]  # in the same step, later
    tab.look()
    tab.site.asks = None
    tab.evaluate("client.asks = null")
    tab.tick(later=HOUR)  # nothing was recorded in this step
    tab.site.clock.advance(HOUR)
    tab.set_time()
    tab.record("age", 3)
    tab.record("age", 4)
    tab.tick()
    for name in asked:
        assert [int(report.private["value"][0]) for report in tab.site.reports(name)] == [1, 100, 4]


def test_an_answer_can_wait_for_what_is_yet_to_be_recorded(visit: Visit) -> None:
    sure = Question.make(kind="histogram", field="age", epsilon=30.0, mechanism="GRR")
    tab = visit(replace(THEMES, questions={"a": sure}, budget=Budget.of(event=90.0), overrides=SURE))
    tab.site.clock.set(THEMES.opens(277777))
    for part in range(4):
        tab.set_time()
        tab.record("age", part)
        tab.evaluate("client.tick(0.5)")
        tab.site.clock.advance(HOUR / 4)
    assert [int(report.private["value"][0]) for report in tab.site.reports()] == [2]


def test_offline_answers_wait_and_go_out_when_the_network_is_back(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.record("theme", "dark")
    tab.tick()
    tab.context.set_offline(True)
    tab.tick(later=HOUR)  # a standing ask needs no further word
    assert tab.status()["pending"] == 1
    assert tab.lifetime == 2 * EPSILON
    assert len(tab.site.entries) == 1
    tab.context.set_offline(False)
    wait_for(lambda: tab.status()["pending"] == 0)
    assert len(tab.site.entries) == 2
    assert [entry.step for entry in tab.site.entries.values()] == [tab.site.step - 1, tab.site.step]


def test_a_retry_sends_the_same_bytes(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.record("theme", "dark")
    tab.site.status = 0  # taken in, but nobody hears of it
    tab.tick()
    assert tab.status()["pending"] == 1
    tab.page.close()
    tab.site.status = 200
    tab.reopen()
    assert tab.evaluate("client.flush()") is True
    assert tab.site.duplicates >= 1
    assert tab.site.replays == 0
    assert len(set(tab.site.uploads)) == len(tab.site.entries) == 1
    assert tab.status()["pending"] == 0


def test_a_server_that_fails_is_left_in_peace_for_a_while(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.site.status = 503
    for _ in range(5):
        tab.tick()
    assert len(tab.site.headers) == 1
    assert tab.evaluate("client.flush()") is False  # asked for, it is tried at once
    tab.site.status = 200
    tab.tick(later=5)
    assert len(tab.site.headers) == 3
    assert len(tab.site.entries) == 1


def test_what_the_server_rejects_for_good_is_dropped_and_the_rest_is_kept(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.site.reject = "too_early"
    tab.tick()
    assert tab.status()["pending"] == 1
    tab.site.reject = "late"
    tab.evaluate("client.flush()")
    assert tab.status()["pending"] == 0
    assert tab.lifetime == EPSILON


@pytest.mark.parametrize("kind", ["fetch that outlives the page", "beacon"])
def test_a_page_that_goes_leaves_what_waits(context: BrowserContext, visit: Visit, kind: str) -> None:
    if kind == "beacon":
        context.add_init_script("delete Request.prototype.keepalive")
    tab = visit(THEMES)
    tab.record("theme", "dark")
    tab.site.status = 503
    tab.tick()
    assert not tab.site.entries
    tab.site.status = 200
    tab.page.goto("about:blank")
    wait_for(lambda: bool(tab.site.entries))
    assert len(tab.site.entries) == 1
    tab.reopen()  # nobody heard of it, so it is sent again, and known
    assert tab.evaluate("client.flush()") is True
    assert len(tab.site.entries) == tab.site.duplicates == 1


def test_the_budget_is_the_last_word(visit: Visit) -> None:
    tab = visit(THEMES)
    for _ in range(5):
        tab.tick(later=HOUR)
    assert len(tab.site.entries) == 3
    assert tab.refused == {"popular": "budget: asks has spent what was promised"}
    assert tab.promise("asks") == {"spent": 3 * EPSILON, "limit": 3 * EPSILON, "steps": 0, "interval": 0}
    tab.reopen()
    tab.tick(later=HOUR)
    assert len(tab.site.entries) == 3


def test_a_window_gives_back_only_what_surely_is_past(visit: Visit) -> None:
    windowed = replace(THEMES, budget=Budget.of(window=(1.0, 2)), step_seconds=1)
    tab = visit(windowed)
    tab.tick()
    tab.tick(later=10 * 365 * 86400)  # by the page's own clock next to no time has passed
    assert len(tab.site.entries) == 1
    tab.evaluate("() => new Promise(resolve => setTimeout(resolve, 1050))")
    tab.tick(later=2)
    assert len(tab.site.entries) == 2
    tab.reopen()
    tab.tick(later=10)
    assert len(tab.site.entries) == 2
    tab.reopen(trustWallClock=True)
    tab.tick(later=10)
    assert len(tab.site.entries) == 3


@pytest.mark.parametrize("years", [10, -10])
def test_by_default_a_clock_that_jumps_between_visits_gives_nothing_back(visit: Visit, years: int) -> None:
    tab = visit(replace(THEMES, budget=Budget.of(window=(2.0, 24))))
    for visited in range(4):
        tab.tick()
        tab.site.clock.set(tab.site.clock.now() + (HOUR if visited == 0 else years * 365 * 86400))
        tab.reopen()
    assert len(tab.site.entries) == 2


def test_a_clock_set_back_is_not_answered(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.tick(later=10 * HOUR)
    tab.site.clock.set(1e9)
    tab.tick()
    assert len(tab.site.entries) == 1
    assert "set back" in tab.refused["popular"]


def test_two_tabs_answer_once(visit: Visit) -> None:
    first = visit(THEMES)
    tabs = [first, visit(first.site), visit(first.site)]
    for tab in tabs:
        tab.evaluate("() => { window.done = Promise.all([client.tick(), client.tick()]); }")
    for tab in tabs:
        tab.evaluate("() => window.done.then(() => null)")
    assert len(first.site.entries) == 1
    assert first.site.replays == 0
    assert first.lifetime == EPSILON


def test_a_debit_and_its_bytes_are_kept_together_or_not_at_all(visit: Visit) -> None:
    # Each write of an answer fails in turn; the last turn is one that none fails in.
    tab = visit(replace(THEMES, budget=Budget.of(user=1000.0)))
    fail = """n => { const put = window.put ??= IDBObjectStore.prototype.put; let left = n;
      IDBObjectStore.prototype.put = function (...given) {
        if (given[1]?.[1] !== "document" && left-- === 0) throw new Error("the disk is full");
        return put.apply(this, given);
      }; }"""
    tab.site.status = 503
    outcomes = []
    for turn in range(5):
        tab.evaluate(fail, turn)
        tab.tick(later=HOUR)
        stored = tab.evaluate(STORED)
        assert stored["spent"] == stored["entries"] * EPSILON
        outcomes.append(stored["entries"])
    assert outcomes[0] == 0
    assert outcomes[-1] > 0


def test_killed_at_any_moment_it_has_spent_what_it_sent(visit: Visit) -> None:
    tab = visit(replace(THEMES, budget=Budget.of(user=1000.0)))
    for turn in range(8):
        tab.site.clock.advance(HOUR)
        tab.set_time()
        tab.evaluate(f"() => {{ client.tick(); return new Promise(resolve => setTimeout(resolve, {2 * turn})); }}")
        tab.reopen()
    tab.evaluate("client.flush()")
    assert tab.lifetime == len(tab.site.entries) * EPSILON
    assert tab.site.replays == 0


MEMO = Question.make(kind="memo", field="theme", epsilon=1.0, permanent=2.0)


def test_a_memo_is_paid_once_and_answers_for_life(visit: Visit) -> None:
    tab = visit(replace(THEMES, questions={"memo": MEMO}, budget=Budget.of(user=4.5)))
    once = tab.site.collection.terms["memo"].limit
    tab.record("theme", "dark")
    for _ in range(14):
        tab.tick(later=HOUR)
    assert tab.lifetime == once
    assert len(tab.site.entries) == 14
    # A second layer hides the first: all alike, 3 bits 14 times, with probability below 1e-5.
    assert len({entry.report for entry in tab.site.entries.values()}) > 1
    tab.reopen()
    tab.record("theme", "light")
    tab.tick(later=HOUR)
    assert tab.lifetime == 2 * once
    tab.record("theme", "dark")
    tab.tick(later=HOUR)
    assert tab.lifetime == 2 * once
    assert len(tab.site.entries) == 16
    tab.site.current()[0][1].mechanism.accumulate(Reports.concat(tab.site.reports()))


def test_what_memos_cost_does_not_show_in_the_other_questions(visit: Visit) -> None:
    both = replace(THEMES, questions={**THEMES.questions, "memo": MEMO}, budget=Budget.of(user=8.0))
    answered = []
    for changes in (False, True):
        tab = visit(both)
        for day in range(6):
            tab.record("theme", ("light", "dark")[day % 2 if changes else 0])
            tab.tick(later=HOUR)
        answered.append(sum(entry.question == "popular" for entry in tab.site.entries.values()))
        assert len(tab.site.entries) - answered[-1] == 6
    assert answered == [4, 4]


def test_without_budget_a_changed_value_does_not_silence_a_memo(visit: Visit) -> None:
    tab = visit(replace(THEMES, questions={"memo": MEMO}, budget=Budget.of(user=2.5)))
    tab.record("theme", "dark")
    tab.tick()
    tab.record("theme", "light")
    tab.tick(later=HOUR)
    assert len(tab.site.entries) == 2
    assert tab.refused == {}
    assert tab.lifetime == tab.site.collection.terms["memo"].limit


def test_small_arcs_and_greedy_asks_are_refused(visit: Visit) -> None:
    tab = visit(THEMES)
    ((_, ask),) = tab.site.current()
    greedy: dict[str, Ask] = {
        "arc": replace(ask, cohort=Arc(0, THEMES.minimum_arc - 1)),
        "mechanism": replace(ask, mechanism=GRR(epsilon=2.0, domain=3)),
        "view": replace(ask, view=Clipped(0.0, 1.0)),
        "step": replace(ask, step=tab.site.step + 1, standing=False),
    }
    for reason, asked in greedy.items():
        tab.ask(("popular", asked))
        assert tab.refused["popular"].startswith(reason)
    tab.ask(("nothing", ask))
    assert "question" in tab.refused["nothing"]
    assert tab.lifetime == 0
    assert not tab.site.headers


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


def test_a_question_of_every_kind_is_answered(visit: Visit) -> None:
    every = replace(THEMES, fields=EVERY_FIELD, questions=EVERY_KIND, budget=Budget.of(user=400.0))
    tab = visit(every)
    values: dict[str, Any] = {"theme": "dark", "age": 4, "minutes": {"mail": 3.0}, "moods": {"mood 3": -0.5}}
    values |= {"on": 1, "pets": ["cow"], "seconds": 7.5, "word": "yes"}
    for field, value in values.items():
        tab.record(field, value)
    for field, value in {"minutes": {"post": 1.0}, "moods": {"mood 3": "x"}, "word": "x" * 17}.items():
        with pytest.raises(Exception, match="Refused"):
            tab.record(field, value)
    for _ in range(3):
        tab.tick(later=HOUR)
    assert tab.refused == {}
    received = {name: [entry for entry in tab.site.entries.values() if entry.question == name] for name in EVERY_KIND}
    names = {type(ask.mechanism).__name__ for _, ask in tab.site.current()}
    assert names >= {"Hybrid", "ExSub", "NetSeed", "BasicRappor", "Loloha", "GRR", "Rappor", "PSFO"}
    for name, entries in received.items():
        if EVERY_KIND[name].kind != "changes":  # whose devices speak when they have something to say
            assert len(entries) == 3, name
        assert entries, name  # they enrol with the first
        mechanism = tab.site.mechanism_of(entries[0])  # a device is always in the same part
        mechanism.accumulate(Reports.concat([entry.reports(mechanism) for entry in entries]))


def test_a_stream_of_changes_enrols_until_it_was_heard_and_pays_once_a_horizon(visit: Visit) -> None:
    moves = {"moves": Question.make(kind="changes", field="theme", epsilon=1.0, steps=4, changes=3)}
    tab = visit(replace(THEMES, questions=moves, budget=Budget.of(user=2.5)))
    tab.site.clock.set(THEMES.opens(277776))  # the first step of a horizon
    tab.set_time()
    tab.record("theme", "dark")
    once = tab.site.current()[0][1].mechanism.event().spent
    received = []
    tab.site.reject = "late"  # nobody counted it
    for step in range(12):
        tab.tick()
        assert tab.lifetime == min(step // 4 + 1, 2) * once
        tab.reopen()
        received.append([bool(report.public["new"][0]) for report in tab.site.reports()])
        tab.site.entries.clear()
        tab.site.reject = None
        tab.site.clock.advance(HOUR)
        tab.set_time()
        tab.record("theme", ("light", "dark")[step % 2])
    assert received[:2] == [[], [True]]  # it says so again, and then no more
    assert not any(new for entries in received[2:4] for new in entries)
    assert received[4] == [True]
    assert not any(new for entries in received[5:8] for new in entries)
    assert received[8:] == [[]] * 4  # a third horizon is not paid for


def test_a_mechanism_that_it_does_not_know_is_refused_by_name_and_the_rest_is_answered(visit: Visit) -> None:
    other = Question.make(kind="histogram", field="age", epsilon=1.0, mechanism="Hadamard")
    tab = visit(replace(THEMES, questions={**THEMES.questions, "other": other}, budget=Budget.of(user=50.0)))
    tab.tick()
    assert tab.refused["other"].startswith("mechanism: one of GRR,")
    assert [entry.question for entry in tab.site.entries.values()] == ["popular"]
    assert tab.lifetime == EPSILON


@pytest.mark.parametrize("silent", ["not its turn", "budget spent"])
def test_cover_looks_like_an_answer(visit: Visit, silent: str) -> None:
    steps, budget = 6, 3.0 if silent == "budget spent" else 50.0
    tab = visit(replace(THEMES, budget=Budget.of(user=budget), cover=True))
    ((_, ask),) = tab.site.current()
    for step in range(steps):
        # Either half of the circle in turn: one of them is without this device.
        arc = Arc(0, CIRCLE) if silent == "budget spent" else Arc(step % 2 * (CIRCLE // 2), CIRCLE // 2)
        tab.ask(("popular", replace(ask, step=tab.site.step, cohort=arc)))
        tab.tick()
        tab.site.clock.advance(HOUR)
    assert len(tab.site.uploads) == steps
    assert len({len(body) for body in tab.site.uploads}) == 1
    assert sum(body.count(b'"entries":[]') for body in tab.site.uploads) == 3
    assert len(tab.site.entries) == 3
    assert tab.lifetime == 3 * EPSILON
    assert tab.status()["pending"] == 0
    tab.evaluate("client.tick()")
    assert len(tab.site.uploads) == steps


def test_half_the_circle_is_half_of_the_devices(visit: Visit) -> None:
    tab = visit(THEMES)
    ((_, ask),) = tab.site.current()
    tab.site.asks = [("popular", replace(ask, cohort=Arc(0, CIRCLE // 2)))]
    tab.evaluate(SEVERAL, tab.options)
    assert 0 < len(tab.site.entries) < 24


def test_a_wrong_signature_is_refused(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.site.signer = Keys.new()
    tab.tick()
    assert "key: a trusted key" in tab.refused["asks"]
    assert tab.lifetime == 0
    assert not tab.site.headers


def flipped(digits: str) -> str:
    return ("1" if digits[0] == "0" else "0") + digits[1:]


def respelt(document: dict[str, str], keys: Keys) -> dict[str, str]:
    """The same thing, signed as it should be, in another spelling, by which a device could be told from others."""
    payload = document["payload"].replace(":", ": ", 1)
    return {**document, "payload": payload, "signature": sign(payload.encode(), keys.private).hex()}


FORGED: dict[str, tuple[str, Callable[[dict[str, str], Keys], dict[str, str]]]] = {
    "payload": ("Refused", lambda document, _: {**document, "payload": document["payload"].replace("Light", "Right")}),
    "signature": ("Refused", lambda document, _: {**document, "signature": flipped(document["signature"])}),
    "key": ("Refused", lambda document, _: {**document, "key": flipped(document["key"])}),
    "signer": ("key: a trusted key", lambda document, _: seal(json.loads(document["payload"]), Keys.new().private)),
    "spelling": ("canonical spelling", respelt),
}
"""By what is forged: how a document is refused then, and what is served in its place."""


@pytest.mark.parametrize(("refusal", "forge"), FORGED.values(), ids=FORGED)
def test_a_document_that_was_touched_is_refused(site: OpenSite, visit: Visit, refusal: str, forge: Any) -> None:
    home = site(THEMES)
    honest = home.sealed
    home.sealed = lambda spec: forge(honest(spec), home.keys)  # type: ignore[method-assign]
    with pytest.raises(Exception, match=refusal):
        visit(home)
    assert not home.headers


def test_an_older_version_or_another_collection_is_refused(visit: Visit) -> None:
    tab = visit(replace(THEMES, version=2))
    tab.site.collection = THEMES
    with pytest.raises(Exception, match="version"):
        tab.reopen()
    tab.site.collection = replace(THEMES, version=3)
    tab.site.changed = {"name": "others"}
    with pytest.raises(Exception, match="name"):
        tab.reopen()


def test_a_new_version_gives_no_new_life(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.tick(later=HOUR)
    tab.site.collection = replace(THEMES, version=2, step_seconds=2 * HOUR)
    for _ in range(4):
        tab.tick(later=2 * HOUR)
    assert tab.lifetime == len(tab.site.entries) * EPSILON == 3 * EPSILON
    memo = Question.make(kind="memo", field="age", epsilon=0.5, permanent=1.0)
    asked = {**THEMES.questions, "memo": memo}
    tab.site.collection = replace(THEMES, version=3, step_seconds=2 * HOUR, questions=asked)
    tab.tick(later=2 * HOUR)
    assert tab.lifetime == 3 * EPSILON
    assert set(tab.refused) == {"popular", "memo"}


def test_a_window_is_not_emptied_by_a_new_version(visit: Visit) -> None:
    windowed = replace(THEMES, budget=Budget.of(window=(2.0, 10)))
    tab = visit(windowed)
    tab.tick()
    tab.site.collection = replace(windowed, version=2, step_seconds=2 * HOUR)
    for _ in range(3):
        tab.tick(later=2 * HOUR)
    assert len(tab.site.entries) == 2
    window = {"steps": 10, "interval": 2 * HOUR * 1000}
    assert tab.promise("asks") == {"spent": 2 * EPSILON, "limit": 2 * EPSILON, **window}


def test_a_version_that_lifts_every_limit_is_refused(visit: Visit) -> None:
    # Version 1 promises 2 in any 7 days. Version 2 has steps of a second, no window, and 8 in each of them.
    tab = visit(replace(THEMES, budget=Budget.of(window=(2.0, 7 * 24))))
    tab.tick()
    greedy = Question.make(kind="histogram", field="theme", epsilon=2.0)
    asked = {**THEMES.questions, "more": greedy, "age": changed(greedy, field="age")}
    tab.site.collection = replace(
        THEMES, version=2, step_seconds=1, budget=Budget.of(event=8.0), questions=asked, minimum_arc=1
    )
    for _ in range(3):
        tab.tick(later=HOUR)
    assert tab.refused["asks"].endswith("to promise less, begin a new collection under a new name")
    assert len(tab.site.entries) == 1
    with pytest.raises(Exception, match=r"privacy\.window: people agreed to the older promise"):
        tab.reopen()


def test_an_answer_of_version_1_counts_in_version_2_at_once(visit: Visit) -> None:
    # Once in a step of version 1, whatever the version: steps that begin at another time do not give the question back.
    daily = replace(THEMES, budget=Budget.of(event=1.0), step_seconds=24 * HOUR)
    tab = visit(daily)
    tab.tick()
    tab.site.collection = replace(daily, version=2, origin=round(tab.site.clock.now()) + 30)
    for _ in range(5):
        tab.tick(later=60)
    assert len(tab.site.entries) == 1
    tab.tick(later=24 * HOUR)
    assert [entry.step for entry in tab.site.entries.values()][1:] == [tab.site.step]


def test_a_question_promised_once_in_a_week_is_answered_once_in_a_week(visit: Visit) -> None:
    turns = Question.make(kind="stream", field="theme", epsilon=1.0, method="LPU", w=7)
    weekly = replace(THEMES, questions={"turns": turns}, budget=Budget.of(event=50.0), step_seconds=24 * HOUR)
    tab = visit(weekly, trustWallClock=True)
    ((name, ask),) = tab.site.current()
    for _ in range(8):
        tab.ask((name, replace(ask, cohort=Arc(0, CIRCLE), step=tab.site.step)))  # everyone, every day
        tab.site.clock.advance(24 * HOUR)
        tab.reopen(trustWallClock=True)
    days = [entry.step for entry in tab.site.entries.values()]
    assert days == [days[0], days[0] + 7]


def test_a_round_is_answered_once_whatever_asks_for_it(visit: Visit) -> None:
    adaptive = Question.make(kind="stream", field="theme", epsilon=1.0, method="LBD", w=5)
    tab = visit(replace(THEMES, questions={"trend": adaptive}, budget=Budget.of(event=50.0)))
    ((name, ask),) = tab.site.current()
    tab.site.clock.set(THEMES.opens(tab.site.step + 1))
    for number, later in ((1, 0), (1, 0), (2, 0), (2, HOUR / 2), (2, 0), (1, 0), (3, 0)):
        tab.site.round = number
        tab.site.clock.advance(later)
        everyone = replace(ask, cohort=Arc(0, CIRCLE), step=tab.site.step)
        tab.site.published_asks = [{**tab.site.as_published(name, everyone), "closes": 1e12}]
        tab.look()
        too_early = (number, later) == (2, 0) and len(tab.site.entries) < 2
        assert tab.refused.get("trend", "").startswith("round") == (number == 3 or too_early)
    assert [(entry.step, entry.round) for entry in tab.site.entries.values()] == [(tab.site.step, k) for k in (1, 2)]


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
def test_a_lost_account_is_refused_and_recovered_only_on_purpose(visit: Visit, unit: str) -> None:
    budget = Budget.of(user=3.0) if unit == "user" else Budget.of(window=(1.0, 2))
    tab = visit(replace(THEMES, budget=budget, step_seconds=1))
    tab.tick()
    tab.evaluate(DROP, "book")
    for _ in range(2):  # not by trying again either
        with pytest.raises(Exception, match="account: gone"):
            tab.reopen()
    options = {**tab.options, "trustWallClock": True}
    tab.evaluate(RECOVER, options)
    assert tab.status()["recovered"]
    tab.tick(later=1)
    assert len(tab.site.entries) == 1
    assert tab.refused == {"popular": "budget: asks has spent what was promised"}
    for visited in range(2):
        tab.site.clock.advance(100)
        tab.reopen(trustWallClock=True)
        tab.evaluate(RECOVER, options)  # the account is there: nothing is lost again
        tab.tick()
        assert len(tab.site.entries) == (1 if unit == "user" else 2 + visited)


def test_without_its_key_a_device_keeps_its_account(visit: Visit) -> None:
    tab = visit(THEMES)
    tab.tick()
    tab.evaluate(DROP, "key")
    tab.reopen()
    assert tab.lifetime == EPSILON
    tab.tick()
    assert len(tab.site.entries) == 1


def test_a_version_with_unsafe_terms_is_not_put_in_force(visit: Visit) -> None:
    tab = visit(THEMES)
    large = Question.make(kind="histogram", field="theme", epsilon=9.0)
    tab.site.collection = replace(THEMES, version=2, questions={"popular": large}, budget=Budget.of(user=30.0))
    tab.tick()
    assert tab.refused["asks"].startswith("epsilon: at most 8")
    assert not tab.site.headers
    tab.site.collection = replace(tab.site.collection, overrides=SURE)
    tab.tick()
    assert "people agreed to the older promise" in tab.refused["asks"]
    assert not tab.site.headers


def test_numbers_are_sent_as_they_are_only_with_a_reason(site: OpenSite, visit: Visit) -> None:
    home = site(THEMES)
    views = [{"kind": "withnumbers", "view": {"kind": "whole"}, "numbers": []}]
    terms = {"popular": {**THEMES.terms["popular"].spec(), "views": views}}
    home.changed = {"terms": terms}
    with pytest.raises(Exception, match="none that sends numbers as they are, or a reason"):
        visit(home)
    home.changed = {"terms": terms, "overrides": {"sent_as_it_is": "people know"}}
    visit(home)


def test_no_tag_goes_back_to_the_server(site: OpenSite, visit: Visit) -> None:
    home = site(THEMES)
    home.tag = '"you again"'
    for _ in range(3):
        tab = visit(home)
        tab.tick(later=HOUR)
        tab.evaluate("fetch('/settings.json')")  # as the browser itself does
        tab.page.close()
    assert len(home.entries) == 3
    assert "/settings.json" in home.tags_back
    assert not [path for path in home.tags_back if path.startswith("/v1/")]


BROKEN = {
    "no Ed25519": "crypto.subtle.importKey = () => Promise.reject(new DOMException('none', 'NotSupportedError'));",
    "no WebCrypto": "Object.defineProperty(crypto, 'subtle', { value: undefined });",
    "no randomness": "Object.defineProperty(crypto, 'getRandomValues', { value: undefined });",
    "no storage": "Object.defineProperty(window, 'indexedDB', { value: undefined });",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_browser_that_lacks_something_sends_nothing(
    context: BrowserContext, site: OpenSite, visit: Visit, what: str
) -> None:
    home = site(THEMES)
    context.add_init_script(BROKEN[what])
    if what == "no randomness":
        tab = visit(home)
        tab.tick()
        assert "randomness" in tab.refused["popular"]
        assert tab.lifetime == 0
    else:
        with pytest.raises(Exception, match=r"Refused|NotSupported|undefined"):
            visit(home)
    assert not home.headers


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (390, "dark")])
def test_the_example_page(
    browser: Browser, site: OpenSite, tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    home = site(load_collection(ROOT / "examples" / "emoji.toml"))
    home.clock.set(time.time())  # the page goes by the real time
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(home.url)
    page.get_by_role("button", name="\U0001f389").click()
    page.get_by_text("A randomised answer has gone out").wait_for()
    assert page.locator("#waiting").inner_text() == "0"
    assert page.locator("#spent").inner_text() == str(len(home.entries))  # two, if it is its turn in the stream
    assert "popular" in {entry.question for entry in home.entries.values()}
    page.get_by_role("button", name="another").click()
    page.get_by_text("already").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert len(page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)) > 10_000
    assert not wrong
    context.close()


def test_the_bundle_is_small(built: Path) -> None:
    for name in ("hubbub.mjs", "hubbub.js"):
        assert len(gzip.compress((built / name).read_bytes(), 9)) < 24_576


def test_types_are_right(tools: Path, node: list[str]) -> None:
    done = subprocess.run(
        [*node, "node_modules/typescript/bin/tsc", "--noEmit"], cwd=tools, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
