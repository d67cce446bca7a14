"""Studies in a real browser: rounds of their own length, frozen values, one debit, and parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, TypeAlias

import pytest
from playwright.sync_api import BrowserContext

from hubbub import GRR
from hubbub.core.domain import Ordinal
from hubbub.core.event import units_of
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.js.local_site import Site
from tests.js.tab import SEVERAL, OpenSite, Tab

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


class Study(Tab):
    """A site whose collection holds a study, the asks of it, and a page that answers them."""

    def __init__(self, site: Site, promise: dict[str, Any] | None = None, **changes: Any) -> None:
        self.site, self.start = site, int(site.clock.now())
        self.terms = terms(self.start, **changes)
        self.whole = promise or whole(100 * self.terms["limit"])
        own = {name: terms.spec() for name, terms in site.collection.terms.items()}
        site.changed = {"terms": {**own, "ages": self.terms}, "promises": [self.whole]}

    def visit(self, context: BrowserContext, **options: Any) -> Self:
        Tab.__init__(self, context, self.site, **options)
        return self

    def asked(self, number: int, codes: tuple[int, ...] = (), *, run: int = 0, part: int = 0, **inner: Any) -> Any:
        """An ask of a round: of some candidates, or of the whole value."""
        view: Any = {"kind": "among", "codes": list(codes)} if codes else {"kind": "whole"}
        mechanism = GRR(epsilon=EPSILON, domain=len(codes) + 1 if codes else 101)
        study = self.terms["study"]
        closes = study["start"] + run * study["every"] + number * ROUND
        named = {"question": "ages", "run": run, "step": 0, "round": number, "part": part, "closes": closes}
        everyone = {"start": 0, "length": CIRCLE}
        ask = {"mechanism": mechanism.spec(), "step": 0, "view": view, "cohort": everyone, "standing": False}
        return {**named, "ask": {**ask, **inner}}

    def publish(self, *asks: Any, at: float | None = None) -> None:
        """Publish asks, and let the client do its work, at some time after the start."""
        if at is not None:
            self.site.clock.set(self.start + at)
        self.site.published_asks = list(asks)
        self.look()

    def heard(self) -> list[tuple[int, int, int, int]]:
        """Of every answer: its run, round and part, and what it says."""
        entries = [entry for entry in self.site.entries.values() if entry.question == "ages"]
        return [(entry.run, entry.round, entry.part, int.from_bytes(entry.report, "little")) for entry in entries]


OpenStudy: TypeAlias = Callable[..., Study]


@pytest.fixture
def study(context: BrowserContext, site: OpenSite) -> OpenStudy:
    """Open a page of a site with a study that begins at a time, by default now."""

    def open_study(promise: dict[str, Any] | None = None, begins: int | None = None, **changes: Any) -> Study:
        place = site(PLAIN)
        place.clock.set(place.clock.now() if begins is None else begins)
        return Study(place, promise, **changes).visit(context, trustWallClock=begins is not None)

    return open_study


def test_values_are_frozen_for_the_whole_study_which_is_paid_for_once(study: OpenStudy) -> None:
    here = study()
    here.record("age", 41)
    for number, codes in ((1, ()), (2, (7, 41)), (3, (3, 42, 50))):
        here.publish(here.asked(number, codes), at=(number - 1) * ROUND)
        here.publish(here.asked(number, codes))  # once
        here.record("age", 42)
        assert here.lifetime == 3 * UNITS
        here.reopen()  # it is on the disk
    assert here.heard() == [(0, 1, 0, 41), (0, 2, 0, 1), (0, 3, 0, 3)]


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
def test_a_state_that_is_none_of_a_study_is_refused(study: OpenStudy, change: str) -> None:
    here = study()
    here.publish(here.asked(1), at=0)
    here.evaluate(DAMAGE, change)
    here.publish(here.asked(2), at=ROUND)
    assert here.refused["ages"].startswith("state")
    assert [each[1] for each in here.heard()] == [1]
    assert here.lifetime == 3 * UNITS


def test_a_round_that_was_missed_stays_unanswered_and_no_clock_brings_one_back(study: OpenStudy) -> None:
    here = study()
    here.record("age", 41)
    here.publish(here.asked(2), at=10)
    assert here.refused["ages"].startswith("round")  # it is not yet
    here.publish(here.asked(2), at=ROUND)
    here.publish(here.asked(1) | {"closes": 10**12}, at=ROUND + 1)
    assert here.refused["ages"].startswith("round")  # it is over
    here.publish(here.asked(1), at=0)
    assert here.refused["ages"].startswith("round")
    here.publish(here.asked(3), at=2 * ROUND)
    here.publish(here.asked(4) | {"closes": 10**12}, at=3 * ROUND)
    assert here.refused["ages"].startswith("round")
    assert [each[1] for each in here.heard()] == [2, 3]
    assert here.lifetime == 3 * UNITS


def test_the_asks_of_a_run_declare_no_more_than_was_signed(study: OpenStudy) -> None:
    here = study(limit=2 * UNITS)
    for number in (1, 2, 3):
        here.publish(here.asked(number), at=(number - 1) * ROUND)
    assert here.refused["ages"].startswith("limit")
    assert [each[1] for each in here.heard()] == [1, 2]
    assert here.lifetime == 2 * UNITS


def test_asks_outside_the_family_are_refused_and_nothing_is_spent(study: OpenStudy) -> None:
    here = study()
    for reason, ask in {
        "view": here.asked(1, (1, 2, 3, 4)),
        "run": here.asked(1, run=1) | {"closes": 10**12},
        "part": here.asked(1, part=2),
        "step": here.asked(1) | {"step": 1},
        "arc": here.asked(1, cohort={"start": 0, "length": 5}),
        "mechanism": here.asked(1, (1, 2), mechanism=GRR(epsilon=EPSILON, domain=4).spec()),
    }.items():
        here.publish(ask)
        assert here.refused["ages"].startswith(reason)
    here.publish(here.asked(1, mechanism=GRR(epsilon=29.0, domain=101).spec()))
    assert here.refused["ages"].startswith("mechanism")
    assert here.lifetime == 0
    assert not here.site.headers


def test_of_several_parts_a_device_answers_one_and_none_where_two_could_ask_it(study: OpenStudy) -> None:
    here = study()
    halves = [{"start": at * CIRCLE // 2, "length": CIRCLE // 2} for at in (0, 1)]
    here.site.published_asks = [here.asked(1, (5,), cohort=half, part=part) for part, half in enumerate(halves)]
    here.evaluate(SEVERAL, here.options)
    parts = [each[2] for each in here.heard()]
    assert len(parts) == 24
    assert set(parts) == {0, 1}
    here.publish(here.asked(2), here.asked(2, cohort={"start": 7, "length": CIRCLE // 2}, part=1), at=ROUND)
    assert here.refused["ages"].startswith("parts")
    here.publish(*(here.asked(2, cohort=half) for half in halves))  # of one part twice
    assert here.refused["ages"].startswith("parts")
    assert here.lifetime == 0
    here.publish(*(here.asked(2, cohort=half, part=part) for part, half in enumerate(halves)))
    here.publish(*(here.asked(2, cohort=half, part=part) for part, half in enumerate(halves[::-1])))
    assert [each[1] for each in here.heard()][24:] == [2]


def test_a_run_is_counted_until_it_is_over_and_the_window_has_passed(study: OpenStudy) -> None:
    begins = round(PLAIN.opens(277780))
    schedule = {"start": begins, "round_seconds": HOUR, "every": 0}
    here = study(whole(3 * UNITS, steps=1), begins=begins, study=schedule)
    for hour in range(5):
        here.site.clock.set(begins + hour * HOUR)
        here.reopen(trustWallClock=True)  # between visits the wall clock is believed here
        ((name, ask),) = here.site.current()
        asks = [here.asked(1) | {"closes": 10**12}] if hour == 0 else []
        here.publish(*asks, here.site.as_published(name, ask))
    answered = [entry.step - 277780 for entry in here.site.entries.values() if entry.question == "popular"]
    assert answered == [3, 4]  # in the third hour the run is over, and its last hour was the window


def test_a_study_that_is_repeated_pays_for_every_run_and_is_asked_of_what_is_then(study: OpenStudy) -> None:
    schedule = {"start": 10**9, "round_seconds": ROUND, "every": HOUR}
    here = study(whole(6 * UNITS), begins=10**9, study=schedule)
    for run in range(3):
        here.record("age", 40 + run)
        here.publish(here.asked(1, run=run), at=run * HOUR)
        here.record("age", 90)
        here.publish(here.asked(2, run=run), at=run * HOUR + ROUND)
        here.reopen(trustWallClock=True)
    assert here.heard() == [(run, number, 0, 40 + run) for run in (0, 1) for number in (1, 2)]
    assert here.lifetime == 6 * UNITS
    here.publish(here.asked(3, run=0), at=2 * ROUND)  # the clock was set back
    assert len(here.heard()) == 4


def test_no_earlier_run_is_answered_though_the_clock_is_set_back_within_its_step(study: OpenStudy) -> None:
    begins = 277780 * HOUR
    here = study(begins=begins, study={"start": begins, "round_seconds": ROUND, "every": 3 * ROUND})
    here.publish(here.asked(1, run=1), at=3 * ROUND)
    here.publish(here.asked(3, run=0), at=2 * ROUND)
    assert here.refused["ages"].startswith("run")
    assert [each[:2] for each in here.heard()] == [(1, 1)]
    assert here.lifetime == 3 * UNITS


def test_all_fields_of_a_question_are_frozen_together(study: OpenStudy) -> None:
    looks = [{"kind": "field", "name": name} for name in ("age", "shoe")]
    here = study(fields=["age", "shoe"], views=looks)
    here.record("age", 7)
    here.record("shoe", 44)
    here.publish(here.asked(1, view=looks[0]), at=0)
    here.record("age", 8)
    here.record("shoe", 45)
    here.publish(here.asked(2, view=looks[1]), at=ROUND)
    here.publish(here.asked(3, view=looks[0]), at=2 * ROUND)
    assert [each[3] for each in here.heard()] == [7, 44, 7]


def test_a_version_that_postpones_the_end_of_a_run_is_not_answered_in_it(study: OpenStudy) -> None:
    """What was paid stops counting when the run should have ended: an answer after that would be free."""
    here = study()
    here.record("age", 41)
    here.publish(here.asked(1), at=0)
    here.site.collection = replace(PLAIN, version=2)
    later = {**here.terms, "study": {**here.terms["study"], "start": here.start + ROUND}}
    here.site.changed = {**here.site.changed, "terms": {**here.site.changed["terms"], "ages": later}}
    here.publish(here.asked(2) | {"closes": 10**12}, at=2 * ROUND)
    assert here.evaluate("client.collection.version") == 2
    assert here.refused["ages"].startswith("run")
    assert [each[1] for each in here.heard()] == [1]
    assert here.lifetime == 3 * UNITS


def test_a_run_does_not_go_on_with_another_field(study: OpenStudy) -> None:
    here = study()
    here.record("age", 7)
    here.publish(here.asked(1), at=0)
    here.site.collection = replace(PLAIN, version=2, fields={**PLAIN.fields, "age": Ordinal(99)})
    own = {name: terms.spec() for name, terms in here.site.collection.terms.items()}
    here.site.changed = {"terms": {**own, "ages": here.terms}, "promises": [here.whole]}
    here.publish(here.asked(2), at=ROUND)
    assert here.refused["ages"].startswith("fields")  # the run began with what the field was then
    assert [each[1] for each in here.heard()] == [1]
