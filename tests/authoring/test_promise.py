"""What is promised in words is what the numbers say."""

import math
import re
from dataclasses import replace

import pytest

from hubbub.authoring import promise
from hubbub.core.domain import Ordinal
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.questions.words import epsilon_text, rounded_up, sure_text, times_text
from tests.collection.conftest import QUESTIONS, make

TURNS = make(questions={"q": QUESTIONS["theme_now"]}, budget=Budget.of(window=(1.0, 4)))
MEMO = make(questions={"q": QUESTIONS["kept"]}, budget=Budget.of(user=10.0))
ONE = make(questions={"q": QUESTIONS["themes"]}, budget=Budget.of(event=1.0))


def said_of(collection: Collection, start: str) -> str:
    (only,) = [paragraph for paragraph in promise(collection).split("\n\n") if paragraph.startswith(start)]
    return only


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 2.0, 5.0, 8.0, 12.0, 19.9])
def test_words_never_promise_more_than_is_kept(epsilon: float) -> None:
    sure = float(sure_text(epsilon).removesuffix("%").removeprefix("all but "))
    assert 100 / (1 + math.exp(-epsilon)) <= sure < 100
    times = float(times_text(epsilon).replace(",", ""))
    assert math.exp(epsilon) <= times * (1 + 1e-9)
    assert times <= 1.02 * math.exp(epsilon)


def test_rounding_is_upward() -> None:
    assert [rounded_up(number) for number in (1.001, 99.91, 1234.0, 0.0123)] == ["1.01", "100", "1,240", "0.0123"]
    assert epsilon_text(1_000_100_000_000) == "1.001"
    assert sure_text(700.0) == "all but 100%"


def test_every_question_is_told(everything: Collection) -> None:
    text = promise(everything)
    for name in everything.questions:
        assert f"\n\n{name}. " in text
    assert text.splitlines()[0] == "everything, version 1: Every kind of question"
    for start in ("What is sent. ", "All together. ", "Linked reports. ", "Who learns it. ", "What is not covered. "):
        assert f"\n\n{start}" in text
    assert f"{everything.frame_bytes:,} bytes" in text


def test_one_report() -> None:
    assert "Light or dark? One report every hour." in said_of(ONE, "q. ")
    assert "at most 2.72 times as likely" in said_of(ONE, "q. ")
    assert "73.2%" in said_of(ONE, "q. ")
    assert "Linked reports" not in promise(ONE)


def test_streams() -> None:
    assert "At most one report in any 4 hours" in said_of(TURNS, "q. ")
    everyone = make(questions={"q": QUESTIONS["time_now"]}, budget=Budget.of(window=(1.0, 4)))
    assert "All reports of any 4 hours together are at most 2.72" in said_of(everyone, "q. ")
    assert "from all reports of any 4 hours, 73.2% (epsilon 1)" in said_of(everyone, "All together. ")


def test_memos() -> None:
    assert "88.1%" in said_of(MEMO, "q. ")
    assert "made from the same kept answer" in said_of(MEMO, "Linked reports. ")
    assert "at most epsilon 6, however often" in said_of(MEMO, "Linked reports. ")  # three values, 2 each
    limited = replace(MEMO, budget=Budget.of(user=3.0))
    assert "at most epsilon 3, however often" in said_of(limited, "Linked reports. ")
    level = Question.make(kind="memo", field="level", epsilon=1.0, permanent=2.0)
    large = make(fields={"level": Ordinal(1000)}, questions={"q": level}, budget=Budget.of(user=50.0))
    assert re.search(r"one of [0-9,]+, which stays the same", said_of(large, "Linked reports. "))


def test_when_a_kept_answer_changed_is_not_said_to_be_hidden() -> None:
    """No limit is claimed for it: tests/mechanisms/test_memo.py shows how sure one can be of it."""
    assert "That a value changed, and when, is not hidden" in said_of(MEMO, "q. ")
    assert "that it changed has no such limit" in said_of(MEMO, "Linked reports. ")
    assert "not when one value took the place of another" in said_of(MEMO, "All together. ")
    assert "took the place" not in promise(ONE)


def test_cover_is_promised_only_where_it_is_sent() -> None:
    assert "whoever sees the device answer knows that it was its turn" in said_of(TURNS, "q. ")
    assert "in which steps it answered" in said_of(TURNS, "What is not covered. ")
    assert "without a report" not in promise(TURNS)
    covered = replace(TURNS, cover=True)
    assert "of the same length without a report" in said_of(covered, "What is sent. ")
    assert "the server can" in said_of(covered, "What is sent. ")
    assert "to the server, in which steps it answered" in said_of(covered, "What is not covered. ")


def test_limits_are_told_as_the_device_keeps_them() -> None:
    """No limit is told smaller than it is, nor larger than what can be asked."""
    collection = make(questions={"q": QUESTIONS["themes"]}, budget=Budget.of(event=3.0, window=(5.0, 7), user=50.0))
    text = said_of(collection, "All together. ")
    assert "from all reports of one step, 73.2% (epsilon 1)" in text
    assert "from all reports of any 7 hours, 99.4% (epsilon 5)" in text
    assert "from everything that is ever sent, all but 100% (epsilon 50)" in text
    assert "In a year the device spends up to epsilon 50." in text
    assert "no limit for life" not in text
    assert "no limit for life" in said_of(replace(collection, budget=Budget.of(event=3.0)), "All together. ")


def test_a_memo_that_changes_is_counted() -> None:
    """In a window of two steps a value may be new twice, whatever the check of one that stays says."""
    collection = make(questions={"q": QUESTIONS["kept"]}, budget=Budget.of(window=(9.0, 2), user=10.0))
    assert "any 2 hours, 98.3% (epsilon 4)" in said_of(collection, "All together. ")


def test_what_was_set_aside_is_told() -> None:
    collection = make(minimum_batch=5, overrides={"minimum_batch_below_20": "a demonstration"})
    assert "minimum_batch_below_20 (a demonstration)" in said_of(collection, "What is not covered. ")


def test_width(everything: Collection) -> None:
    wrapped = promise(everything, width=72)
    assert max(map(len, wrapped.splitlines())) <= 72
    assert " ".join(wrapped.split()) == " ".join(promise(everything).split())
