"""Studies in a real browser: rounds of their own length, frozen values, one debit, and parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hubbub import GRR
from hubbub.collection import Collection
from hubbub.core.domain import Ordinal
from hubbub.core.event import units_of
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE
from hubbub.questions import Question
from tests.js.test_browser import record, status, tick, visit

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page


HOUR = 3600
ROUND = 600
EPSILON = 30.0  # a false answer has probability 1e-11: what was answered is to be seen
UNITS = units_of(EPSILON)
PLAIN = Collection(
    name="themes",
    title="How old?",
    fields={"age": Ordinal(100), "shoe": Ordinal(60)},
    questions={"popular": Question.make(kind="histogram", field="age", epsilon=1.0)},
    budget=Budget.of(user=3.0),
    step_seconds=HOUR,
    overrides={"epsilon_above_8": "what was answered is to be seen"},
)


def whole(limit: int, steps: int = 0) -> dict[str, Any]:
    """A promise of the whole: for life, or in any stretch of hours."""
    grid = {"steps": steps, "interval": HOUR if steps else 0, "origin": 0}
    return {"limit": limit, **grid, "parts": {"asks": limit}}


def terms(start: int, **changes: Any) -> dict[str, Any]:
    """The terms of a study of three rounds in up to two parts: the whole value first, then some candidates."""
    limit = changes.pop("limit", 3 * UNITS)
    return {
        "fields": ["age"],
        "frozen": "study",
        "views": [{"kind": "whole"}, {"kind": "among", "codes": {"most": 3}}],
        "mechanisms": [GRR(epsilon=EPSILON, domain=101).spec_id],
        "families": [{"mechanism": "GRR", "units": [UNITS]}],
        "rounds": 3,
        "parts": 2,
        "account": "asks",
        "state": "",
        "limit": limit,
        "promises": [{"limit": 4 * limit, "steps": 1, "interval": HOUR, "origin": 0}],
        "report_bytes": 4,
        "study": {"start": start, "round_seconds": ROUND, "every": 0},
        **changes,
    }


class Study:
    """A site whose collection holds a study, and the asks of it."""

    def __init__(self, site: Any, promise: dict[str, Any] | None = None, **changes: Any) -> None:
        self.site, self.start = site, int(site.clock.now())
        self.terms = terms(self.start, **changes)
        self.whole = promise or whole(100 * self.terms["limit"])
        own = site.collection.spec()
        site.changed = {"terms": {**own["terms"], "ages": self.terms}, "promises": [self.whole]}

    def ask(self, number: int, codes: tuple[int, ...] = (), *, run: int = 0, part: int = 0, **inner: Any) -> Any:
        """An ask of a round: of some candidates, or of the whole value."""
        view: Any = {"kind": "among", "codes": list(codes)} if codes else {"kind": "whole"}
        mechanism = GRR(epsilon=EPSILON, domain=len(codes) + 1 if codes else 101)
        study = self.terms["study"]
        closes = study["start"] + run * study["every"] + number * ROUND
        named = {"question": "ages", "run": run, "step": 0, "round": number, "part": part, "closes": closes}
        everyone = {"start": 0, "length": CIRCLE}
        ask = {"mechanism": mechanism.spec(), "step": 0, "view": view, "cohort": everyone, "standing": False}
        return {**named, "ask": {**ask, **inner}}

    def tick(self, page: Page, *asks: Any, at: float | None = None) -> None:
        """Publish asks, and let the client do its work, at some time after the start."""
        if at is not None:
            self.site.clock.set(self.start + at)
        self.site.published_asks = list(asks)
        page.evaluate("client.asks = null")
        tick(page, self.site)

    def heard(self) -> list[tuple[int, int, int, int]]:
        """Of every answer: its run, round and part, and what it says."""
        entries = [entry for entry in self.site.entries.values() if entry.question == "ages"]
        return [(entry.run, entry.round, entry.part, int.from_bytes(entry.report, "little")) for entry in entries]


def test_values_are_frozen_for_the_whole_study_which_is_paid_for_once(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    study = Study(site(PLAIN))
    page = visit(context, study.site)
    record(page, "age", 41)
    for number, codes in ((1, ()), (2, (7, 41)), (3, (3, 42, 50))):
        study.tick(page, study.ask(number, codes), at=(number - 1) * ROUND)
        study.tick(page, study.ask(number, codes))  # once
        record(page, "age", 42)
        assert status(page)["lifetime"] == 3 * UNITS
        page.close()
        page = visit(context, study.site)  # it is on the disk
    assert study.heard() == [(0, 1, 0, 41), (0, 2, 0, 1), (0, 3, 0, 3)]


DAMAGE = """change => new Promise((resolve, reject) => {
  const opening = indexedDB.open("hubbub");
  opening.onsuccess = () => {
    const transaction = opening.result.transaction("states", "readwrite");
    transaction.oncomplete = () => { opening.result.close(); resolve(); };
    transaction.onabort = () => reject(transaction.error);
    transaction.objectStore("states").openCursor().onsuccess = ({ target: { result: cursor } }) => {
      if (!cursor) return;
      cursor.update(new Function("row", change)(cursor.value));
      cursor.continue();
    };
  };
})"""


@pytest.mark.parametrize(
    "change",
    [
        "return { ...row, state: {} }",
        "return { ...row, state: { ...row.state, left: 1 } }",
        "return { ...row, state: { ...row.state, round: -1 } }",
    ],
)
def test_a_state_that_is_none_of_a_study_is_refused(
    context: BrowserContext, site: Callable[..., Any], change: str
) -> None:
    study = Study(site(PLAIN))
    page = visit(context, study.site)
    study.tick(page, study.ask(1), at=0)
    page.evaluate(DAMAGE, change)
    study.tick(page, study.ask(2), at=ROUND)
    assert status(page)["refused"]["ages"].startswith("state")
    assert [each[1] for each in study.heard()] == [1]
    assert status(page)["lifetime"] == 3 * UNITS


def test_a_round_that_was_missed_stays_unanswered_and_no_clock_brings_one_back(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    study = Study(site(PLAIN))
    page = visit(context, study.site)
    record(page, "age", 41)
    study.tick(page, study.ask(2), at=10)
    assert status(page)["refused"]["ages"].startswith("round")  # it is not yet
    study.tick(page, study.ask(2), at=ROUND)
    study.tick(page, study.ask(1) | {"closes": 10**12}, at=ROUND + 1)
    assert status(page)["refused"]["ages"].startswith("round")  # it is over
    study.tick(page, study.ask(1), at=0)
    assert status(page)["refused"]["ages"].startswith("round")
    study.tick(page, study.ask(3), at=2 * ROUND)
    study.tick(page, study.ask(4) | {"closes": 10**12}, at=3 * ROUND)
    assert status(page)["refused"]["ages"].startswith("round")
    assert [each[1] for each in study.heard()] == [2, 3]
    assert status(page)["lifetime"] == 3 * UNITS


def test_the_asks_of_a_run_declare_no_more_than_was_signed(context: BrowserContext, site: Callable[..., Any]) -> None:
    study = Study(site(PLAIN), limit=2 * UNITS)
    page = visit(context, study.site)
    for number in (1, 2, 3):
        study.tick(page, study.ask(number), at=(number - 1) * ROUND)
    assert status(page)["refused"]["ages"].startswith("limit")
    assert [each[1] for each in study.heard()] == [1, 2]
    assert status(page)["lifetime"] == 2 * UNITS


def test_asks_outside_the_family_are_refused_and_nothing_is_spent(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    study = Study(site(PLAIN))
    page = visit(context, study.site)
    for reason, ask in {
        "view": study.ask(1, (1, 2, 3, 4)),
        "run": study.ask(1, run=1) | {"closes": 10**12},
        "part": study.ask(1, part=2),
        "step": study.ask(1) | {"step": 1},
        "arc": study.ask(1, cohort={"start": 0, "length": 5}),
        "mechanism": study.ask(1, (1, 2), mechanism=GRR(epsilon=EPSILON, domain=4).spec()),
    }.items():
        study.tick(page, ask)
        assert status(page)["refused"]["ages"].startswith(reason)
    study.tick(page, study.ask(1, mechanism=GRR(epsilon=29.0, domain=101).spec()))
    assert status(page)["refused"]["ages"].startswith("mechanism")
    assert status(page)["lifetime"] == 0
    assert not study.site.headers


def test_of_several_parts_a_device_answers_one_and_none_where_two_could_ask_it(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    # Each database is a device. Of 24, all or none are in a half with probability 2^-23.
    study = Study(site(PLAIN))
    halves = [{"start": at * CIRCLE // 2, "length": CIRCLE // 2} for at in (0, 1)]
    study.site.published_asks = [study.ask(1, (5,), cohort=half, part=part) for part, half in enumerate(halves)]
    page = visit(context, study.site)
    options = {"collection": "themes", "keys": [study.site.keys.public.hex()]}
    page.evaluate(
        """async options => {
          for (let n = 0; n < 24; n++) await (await open_client({ ...options, database: `device ${n}` })).tick();
        }""",
        options,
    )
    parts = [each[2] for each in study.heard()]
    assert len(parts) == 24
    assert set(parts) == {0, 1}
    study.tick(page, study.ask(2), study.ask(2, cohort={"start": 7, "length": CIRCLE // 2}, part=1), at=ROUND)
    assert status(page)["refused"]["ages"].startswith("parts")
    study.tick(page, *(study.ask(2, cohort=half) for half in halves))  # of one part twice
    assert status(page)["refused"]["ages"].startswith("parts")
    assert status(page)["lifetime"] == 0
    study.tick(page, *(study.ask(2, cohort=half, part=part) for part, half in enumerate(halves)))
    study.tick(page, *(study.ask(2, cohort=half, part=part) for part, half in enumerate(halves[::-1])))
    assert [each[1] for each in study.heard()][24:] == [2]


def test_a_run_is_counted_until_it_is_over_and_the_window_has_passed(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    collector = site(PLAIN)
    collector.clock.set(PLAIN.opens(277780))
    study = Study(
        collector, whole(3 * UNITS, steps=1), study={"start": 277780 * HOUR, "round_seconds": HOUR, "every": 0}
    )
    for hour in range(5):
        collector.clock.set(study.start + hour * HOUR)
        page = visit(context, collector, trustWallClock=True)  # between visits the wall clock is believed here
        ((name, ask),) = collector.current()
        asks = [study.ask(1) | {"closes": 10**12}] if hour == 0 else []
        study.tick(page, *asks, collector.as_published(name, ask))
        page.close()
    answered = [entry.step - 277780 for entry in collector.entries.values() if entry.question == "popular"]
    assert answered == [3, 4]  # in the third hour the run is over, and its last hour was the window


def test_a_study_that_is_repeated_pays_for_every_run_and_is_asked_of_what_is_then(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    collector = site(PLAIN)
    begins = int(collector.clock.now())
    study = Study(collector, whole(6 * UNITS), study={"start": begins, "round_seconds": ROUND, "every": HOUR})
    page = visit(context, collector, trustWallClock=True)
    for run in range(3):
        record(page, "age", 40 + run)
        study.tick(page, study.ask(1, run=run), at=run * HOUR)
        record(page, "age", 90)
        study.tick(page, study.ask(2, run=run), at=run * HOUR + ROUND)
        page.close()
        page = visit(context, collector, trustWallClock=True)
    assert study.heard() == [(run, number, 0, 40 + run) for run in (0, 1) for number in (1, 2)]
    assert status(page)["lifetime"] == 6 * UNITS
    study.tick(page, study.ask(3, run=0), at=2 * ROUND)  # the clock was set back
    assert len(study.heard()) == 4


def test_no_earlier_run_is_answered_though_the_clock_is_set_back_within_its_step(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    collector = site(PLAIN)
    begins = 277780 * HOUR
    collector.clock.set(begins)
    study = Study(collector, study={"start": begins, "round_seconds": ROUND, "every": 3 * ROUND})
    page = visit(context, collector)
    study.tick(page, study.ask(1, run=1), at=3 * ROUND)
    study.tick(page, study.ask(3, run=0), at=2 * ROUND)
    assert status(page)["refused"]["ages"].startswith("run")
    assert [each[:2] for each in study.heard()] == [(1, 1)]
    assert status(page)["lifetime"] == 3 * UNITS


def test_all_fields_of_a_question_are_frozen_together(context: BrowserContext, site: Callable[..., Any]) -> None:
    looks = [{"kind": "field", "name": name} for name in ("age", "shoe")]
    study = Study(site(PLAIN), fields=["age", "shoe"], views=looks)
    page = visit(context, study.site)
    record(page, "age", 7)
    record(page, "shoe", 44)
    study.tick(page, study.ask(1, view=looks[0]), at=0)
    record(page, "age", 8)
    record(page, "shoe", 45)
    study.tick(page, study.ask(2, view=looks[1]), at=ROUND)
    study.tick(page, study.ask(3, view=looks[0]), at=2 * ROUND)
    assert [each[3] for each in study.heard()] == [7, 44, 7]


def test_a_version_that_postpones_the_end_of_a_run_is_not_answered_in_it(
    context: BrowserContext, site: Callable[..., Any]
) -> None:
    """What was paid stops counting when the run should have ended: an answer after that would be free."""
    study = Study(site(PLAIN))
    page = visit(context, study.site)
    record(page, "age", 41)
    study.tick(page, study.ask(1), at=0)
    study.site.collection = replace(PLAIN, version=2)
    later = {**study.terms, "study": {**study.terms["study"], "start": study.start + ROUND}}
    study.site.changed = {**study.site.changed, "terms": {**study.site.changed["terms"], "ages": later}}
    study.tick(page, study.ask(2) | {"closes": 10**12}, at=2 * ROUND)
    assert page.evaluate("client.collection.version") == 2
    assert status(page)["refused"]["ages"].startswith("run")
    assert [each[1] for each in study.heard()] == [1]
    assert status(page)["lifetime"] == 3 * UNITS


def test_a_run_does_not_go_on_with_another_field(context: BrowserContext, site: Callable[..., Any]) -> None:
    collector = site(PLAIN)
    study = Study(collector)
    page = visit(context, collector)
    record(page, "age", 7)
    study.tick(page, study.ask(1), at=0)
    study.site.collection = replace(PLAIN, version=2, fields={**PLAIN.fields, "age": Ordinal(100 - 1)})
    own = study.site.collection.spec()
    study.site.changed = {"terms": {**own["terms"], "ages": study.terms}, "promises": [study.whole]}
    study.tick(page, study.ask(2), at=ROUND)
    assert status(page)["refused"]["ages"].startswith("fields")  # the run began with what the field was then
    assert [each[1] for each in study.heard()] == [1]
