"""Questions about itemsets: what they sign, what they cost, and what is refused; and studies as such."""

from typing import Any

import pytest

from hubbub.authoring import UnsafeCollection, load_collection
from hubbub.collection import SignedCollection
from hubbub.core.domain import Domain, Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.questions import Question
from tests.questions.settings import placed
from tests.shared.small_collections import collection_text

BASKETS = Sets(Ordinal(500), most=30)
QUESTION = {"kind": "itemsets", "field": "basket", "epsilon": 2.0, "k": 16, "every": "30d", "turns": 3}
TEXT = collection_text(
    schedule={"step": "1d", "lateness": "1h"},
    privacy={"user": 8.0},
    fields={"basket": {"kind": "sets", "most": 30, "items": {"kind": "ordinal", "size": 500}}},
    questions={"together": {**QUESTION, "start": "START"}},
).replace('"START"', "2026-12-01T00:00:00Z")


def ask(**keys: Any) -> Question:
    return Question.make("itemsets", **{"field": "basket", "epsilon": 2.0, "start": "2026-12-01T00:00Z", **keys})


def terms(question: Question, domain: Domain = BASKETS) -> Any:
    return placed(question, domain).terms()


def test_a_file_may_write_the_time_as_a_time() -> None:
    collection = load_collection(TEXT)
    assert SignedCollection.from_spec(collection.spec()).terms == collection.terms
    signed = collection.terms["together"]
    assert signed.study is not None
    assert (signed.study.start, signed.study.round_seconds, signed.study.every) == (1_796_083_200, 86_400, 30 * 86_400)
    (promise,) = signed.promises
    assert (promise.limit, promise.steps, promise.interval) == (2 * 10**12, 3, 30 * 86_400)
    sentence = collection.questions["together"].sentence()
    assert sentence.startswith("One report, every 90 days")


@pytest.mark.parametrize(
    ("keys", "rounds", "each"), [({"k": 16}, 5, 3), ({"k": 16, "of": "items"}, 3, 1), ({"k": 300}, 4, 8)]
)
def test_what_is_signed(keys: dict[str, Any], rounds: int, each: int) -> None:
    signed = terms(ask(**keys))
    bound = {"most": 2 * keys["k"], "each": {"most": each}}
    assert signed.rounds == rounds
    assert [view.get("sets") for view in signed.views] == [None, bound, bound]
    families = {family.mechanism: family.units for family in signed.families}
    assert families == dict.fromkeys(("GRR", "OLH", "PSFO"), (2 * 10**12,))
    assert signed.limit == 2 * 10**12
    assert signed.report_bytes == 9


def test_a_run_must_end_before_the_next() -> None:
    with pytest.raises(InvalidValue, match="every: got '4d'; allowed: nothing, or at least the 5 rounds of 1 day"):
        terms(ask(every="4d"))
    assert terms(ask(every="5d")).study.every == 5 * 86_400
    assert terms(ask(every="4d"), Sets(Ordinal(60), most=30)).rounds == 4  # all items are candidates: fewer rounds


def test_turns_that_make_groups_too_small_are_refused() -> None:
    few = TEXT.replace("turns = 3", "turns = 50")
    load_collection(few)  # a twentieth of a fiftieth: 0.1%, which devices accept
    with pytest.raises(UnsafeCollection, match=r"asks 0\.0833% of the devices at a time"):
        load_collection(few.replace("turns = 50", "turns = 60"))


def test_more_than_there_are_is_said() -> None:
    question = ask(k=600, of="items")
    (finding,) = placed(question, BASKETS).findings()
    assert "there are 500 items" in finding.text
