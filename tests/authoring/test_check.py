"""Rules: what is refused, what is warned of, and that a reason sets advice aside."""

from dataclasses import replace
from typing import Any

import pytest

import hubbub as hb
from hubbub.authoring import Finding, check
from hubbub.authoring.check import refuse_unsafe
from hubbub.collection.safety import UnsafeCollection
from hubbub.core.domain import Ordinal
from hubbub.core.event import units_of
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.driver import Conversation
from hubbub.protocols.window import METHODS
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.questions.spending import Cost, cost_of, steps_a_year, total_of, worst_of
from tests.collection.conftest import FIELDS, QUESTIONS, make
from tests.shared.asks import answered

THEME = Question.make(kind="histogram", field="theme", epsilon=1.0)
LEVEL = Question.make(kind="histogram", field="level", epsilon=1.0)
KEPT = QUESTIONS["kept"]


def small(**options: Any) -> Collection:
    fields = {"theme": FIELDS["theme"]}
    return make(**{"fields": fields, "questions": {"q": THEME}, "budget": Budget.of(event=1.0), **options})


def only_finding(collection: Collection, level: str, where: str) -> Finding:
    (only,) = [finding for finding in check(collection) if (finding.level, finding.where) == (level, where)]
    return only


def levels(collection: Collection, where: str) -> list[str]:
    return [finding.level for finding in check(collection) if finding.where == where]


def test_errors_come_first() -> None:
    collection = small(minimum_batch=3, budget=Budget.of(event=0.1), step_seconds=1, planned_devices=1_000_000)
    order = [finding.level for finding in check(collection)]
    assert order == sorted(order, key=["error", "warning", "note"].index)
    assert {"error", "warning", "note"} == set(order)


def test_a_good_collection_has_no_errors(everything: Collection) -> None:
    assert refuse_unsafe(everything) is everything
    assert refuse_unsafe(small()) == small()


# -- advice and overrides ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["epsilon", "permanent"])
def test_a_large_epsilon_needs_a_reason(key: str) -> None:
    epsilons = {"epsilon": 1.0, "permanent": 9.0, key: 8.01}
    loud = Question.make(kind="memo", field="theme", **epsilons)
    options = {"questions": {"q": loud}, "budget": Budget.of(user=100.0)}
    assert "epsilon_above_8" in only_finding(small(**options), "error", f"questions.q.{key}").text
    with pytest.raises(UnsafeCollection):
        refuse_unsafe(small(**options))
    allowed = small(**options, overrides={"epsilon_above_8": "a survey of public data"})
    assert "a survey of public data" in only_finding(allowed, "warning", f"questions.q.{key}").text
    refuse_unsafe(allowed)


def test_epsilon_8_needs_none() -> None:
    assert levels(small(questions={"q": replace(THEME, epsilon=8.0)}), "questions.q.epsilon") == []


def test_a_small_batch_needs_a_reason() -> None:
    assert levels(small(minimum_batch=20), "privacy.minimum_batch") == []
    assert "minimum_batch_below_20" in only_finding(small(minimum_batch=19), "error", "privacy.minimum_batch").text
    allowed = small(minimum_batch=19, overrides={"minimum_batch_below_20": "a demonstration"})
    assert "a demonstration" in only_finding(allowed, "warning", "privacy.minimum_batch").text


def test_groups_of_fewer_than_100_people_need_a_reason() -> None:
    where = "privacy.minimum_arc"
    reasoned = small(planned_devices=1000)
    assert "0.1% of 1,000, is 1 person; at least 100" in only_finding(reasoned, "error", where).text
    with pytest.raises(UnsafeCollection):
        refuse_unsafe(reasoned)
    assert levels(small(planned_devices=99_499), where) == ["error"]
    assert "is 100 people" in only_finding(small(planned_devices=100_000), "note", where).text
    assert levels(replace(reasoned, minimum_arc=CIRCLE // 10), where) == ["note"]
    allowed = replace(reasoned, overrides={"arc_below_100": "a class of volunteers"})
    assert "is 1 person; allowed because: a class of volunteers" in only_finding(allowed, "warning", where).text
    refuse_unsafe(allowed)


def test_a_size_that_is_not_stated_is_asked_for() -> None:
    text = only_finding(small(minimum_arc=CIRCLE // 100), "warning", "privacy.planned_devices").text
    assert "1% of the devices are 100 people only from 10,000 devices on" in text


@pytest.mark.parametrize("name", ["arc_below_100", "epsilon_above_8", "minimum_batch_below_20"])
def test_a_reason_for_nothing_is_noticed(name: str) -> None:
    assert levels(small(overrides={name: "just in case"}, planned_devices=10**6), f"override.{name}") == ["warning"]


def test_an_unsafe_collection_says_everything_at_once() -> None:
    with pytest.raises(UnsafeCollection) as refused:
        refuse_unsafe(small(minimum_batch=1, questions={"q": replace(THEME, epsilon=9.0)}))
    where = {finding.where for finding in refused.value.findings}
    assert where == {"privacy.minimum_batch", "questions.q.epsilon", "privacy.event"}


# -- budgets -----------------------------------------------------------------------------------------------------------


def stream(method: str, epsilon: float = 1.0, w: int = 4) -> Question:
    return Question.make(kind="stream", field="theme", epsilon=epsilon, method=method, w=w)


@pytest.mark.parametrize(
    ("questions", "budget", "fits"),
    [
        ({"q": THEME}, Budget.of(event=1.0), True),
        ({"q": THEME}, Budget.of(event=0.9), False),
        ({"a": THEME, "b": THEME}, Budget.of(event=2.0), True),
        ({"a": THEME, "b": THEME}, Budget.of(event=1.9), False),
        ({"a": THEME, "b": LEVEL}, Budget.of(event=1.9), False),
        ({"q": THEME}, Budget.of(window=(5.0, 5)), True),
        ({"q": THEME}, Budget.of(window=(4.9, 5)), False),
        ({"q": stream("LPU")}, Budget.of(window=(1.0, 4)), True),
        ({"q": stream("LPU")}, Budget.of(window=(1.0, 5)), False),  # its turn may come in the first step and the fifth
        ({"q": stream("LPU")}, Budget.of(window=(2.0, 8)), True),
        ({"q": stream("LPU")}, Budget.of(event=1.0), True),
        ({"q": stream("LPU")}, Budget.of(event=0.9), False),
        ({"q": stream("LBU")}, Budget.of(event=0.25), True),
        ({"q": stream("LBU")}, Budget.of(event=0.24), False),
        ({"q": stream("LBU")}, Budget.of(window=(1.25, 5)), True),
        ({"q": stream("LBA")}, Budget.of(event=1.0), True),
        ({"q": KEPT}, Budget.of(user=2.0), True),
        ({"q": KEPT}, Budget.of(user=1.9), False),
        ({"q": KEPT}, Budget.of(user=9.0, event=1.9), False),
        ({"q": KEPT}, Budget.of(user=9.0, window=(2.0, 100)), True),
        ({"q": KEPT}, Budget.of(event=9.0), False),  # no limit for life
        ({"q": THEME, "k": KEPT}, Budget.of(user=2.9), False),
        ({"q": replace(THEME, epsilon=0.1), "r": replace(THEME, epsilon=0.2)}, Budget.of(event=0.3), True),
    ],
)
def test_what_is_asked_fits_the_budget(questions: dict[str, Question], budget: Budget, fits: bool) -> None:
    collection = make(questions=questions, budget=budget)
    errors = [finding for finding in check(collection) if finding.level == "error"]
    assert bool(errors) is not fits
    assert all(finding.where.startswith("privacy.") for finding in errors)


def test_an_overdraft_is_said_in_words() -> None:
    asked = make(questions={"a": THEME, "b": LEVEL}, budget=Budget.of(event=1.5))
    text = only_finding(asked, "error", "privacy.event").text
    assert "one step can cost a device epsilon 2 (a 1, b 1), and it may spend 1.5" in text


@pytest.mark.parametrize("method", METHODS)
def test_no_stream_costs_more_than_is_said(method: str) -> None:
    """60 steps of a stream that jumps: any step and any 4, 6 or 9 of them spend at most what the check counts."""
    collection = small(questions={"q": stream(method)})
    cost = cost_of(collection, "q")
    talk = Conversation(collection.protocol("q"))
    place, spent, step = 1 << 30, [0] * 61, 1
    while step <= 60:
        message = talk.listen()
        if isinstance(message, Ask):
            if (place - message.cohort.start) % (1 << 32) < message.cohort.length:
                spent[message.step] += message.event().spent
            talk.reply(message.ask_id, answered(message, [step // 7 % 3] * 400, hb.Random(seed=step)))
        else:
            step += 1
    assert max(spent) <= cost.step
    assert sum(spent) > 0
    for steps in (4, 6, 9):
        assert max(sum(spent[k : k + steps]) for k in range(61 - steps)) <= cost.of(steps)
    assert cost.of(4) <= units_of(1.0)


def test_costs() -> None:
    memo = cost_of(small(questions={"q": KEPT}, budget=Budget.of(user=9.0)), "q")
    assert memo.memo
    assert memo.of(1) == memo.of(1000) == memo.each
    assert memo.most == memo.worst(1000) == 3 * memo.each  # light, dark and (none)
    assert memo.worst(2) == 2 * memo.each
    assert Cost(each=5, per=1).worst(7) == Cost(each=5, per=1).of(7) == 35
    both = make(questions={"a": THEME, "k": KEPT}, budget=Budget.of(user=9.0))
    assert worst_of(both, 10) - total_of(both, 10) == 2 * memo.each
    assert steps_a_year(small(step_seconds=86400)) == 365


def test_how_long_a_life_lasts() -> None:
    def life(level: str, **options: Any) -> str:
        return only_finding(small(step_seconds=86400, **options), level, "privacy.user").text

    assert "up to epsilon 365" in life("note")
    assert "at most epsilon 365" in life("note", budget=Budget.of(user=400.0))
    assert "after 10 days" in life("warning", budget=Budget.of(user=10.5))
    assert "after 70 days" in life("warning", questions={"q": stream("LPU", w=7)}, budget=Budget.of(user=10.5))
    text = life("warning", questions={"q": THEME, "kept": KEPT}, budget=Budget.of(user=12.0))
    assert "after 10 days" in text
    assert "it still answers kept" in text


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_a_stream_that_devices_would_refuse() -> None:
    tiny = small(questions={"q": stream("LPA", w=1000)})
    assert "asks 0.05% of the devices" in only_finding(tiny, "error", "questions.q").text
    assert levels(replace(tiny, minimum_arc=1 << 20), "questions.q") == []
    assert levels(small(questions={"q": stream("LPD", w=20)}), "questions.q.method") == ["note"]


def test_other_advice() -> None:
    unread = small(fields={"theme": FIELDS["theme"], "age": Ordinal(9)})
    assert levels(unread, "fields.age") == ["warning"]
    assert levels(small(questions={"a": THEME, "b": THEME}, budget=Budget.of(event=2.0)), "fields.theme") == ["note"]
    assert levels(small(step_seconds=59), "schedule.step") == ["warning"]
    assert levels(small(lateness_seconds=3599), "schedule.lateness") == []
    assert levels(small(lateness_seconds=3600), "schedule.lateness") == ["error"]
    assert levels(small(retention_days=366), "schedule.retention") == ["warning"]
    linked = small(questions={"q": KEPT}, budget=Budget.of(user=9.0))
    assert "linked" in only_finding(linked, "note", "questions.q").text
