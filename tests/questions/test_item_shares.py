"""A histogram of a field of sets: what share of the people holds each item."""

from typing import Any

import numpy as np
import pytest

from hubbub import Categorical, ItemSets, Ordinal, Random, Sets
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import SetStream
from tests.questions.settings import placed

FEATURES = Sets(Categorical(["bold", "table", "link", "undo"]), most=2)


def used(**keys: Any) -> Any:
    return Question.make("histogram", **{"field": "features", "epsilon": 1.0, **keys})


def test_it_asks_for_items_unless_it_asks_for_sizes() -> None:
    question = used()
    question = placed(question, FEATURES)
    assert question.labels() == ("bold", "table", "link", "undo")
    assert (question.shape().form, question.shape().size) == ("shares", 4)
    assert question.default_title() == "Of features: how many people have each item?"
    assert "It covers all items together" in question.sentence()
    assert "half as many items as they may" in question.assumes()
    assert question.unbiased_steps()
    assert question.influence().most > 1
    sizes = used(of="size")
    assert placed(sizes, FEATURES).labels() == ("0", "1", "2")
    assert placed(used(), Sets(Ordinal(3), most=1)).labels() == ("0", "1", "2")
    assert placed(used(), Sets(Ordinal(5000), most=1)).labels() is None


@pytest.mark.parametrize("name", ["PSFO", "PrivSet", "SplitUnary"])
def test_a_mechanism_may_be_named(name: str) -> None:
    question = used(mechanism=name)
    assert placed(question, FEATURES).made_by() == name


@pytest.mark.parametrize(("items", "most"), [(4, 1), (4, 4), (300, 12), (100_000, 3)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_reports_are_small_and_the_pick_errs_no_more_than_any_other_that_is(items, most, epsilon) -> None:
    domain = Sets(Ordinal(items), most=most)
    chosen = placed(used(epsilon=epsilon), domain).mechanism_for()
    assert chosen.report_bytes <= 512
    for name in ("PSFO", "PrivSet", "SplitUnary"):
        other = placed(used(epsilon=epsilon, mechanism=name), domain).mechanism_for()
        if other.report_bytes <= 512:
            assert chosen.variance(1, most / 2 / items) <= other.variance(1, most / 2 / items) * (1 + 1e-9)


def test_a_fleet_is_asked_and_the_error_is_the_forecast() -> None:
    """200 releases of 4 shares: their mean squared error is known to 5%, and more than 25% off is 5 standard errors."""
    rng = np.random.default_rng(1)
    held = rng.permuted(np.tile(np.arange(4) < 1, (500, 1)), axis=1)  # one item each, half of what they may hold
    people = ItemSets(np.arange(501), np.nonzero(held)[1], domain=4)
    settings: dict[str, Any] = {"fields": {"features": FEATURES}, "questions": {"used": used()}, "step_seconds": 3600}
    collection = Collection(name="editor", title="Editor", budget=Budget.of(event=1.0), **settings)
    releases = list(run_question(collection, "used", SetStream(people), Random(seed=1), steps=200))
    truth = people.support() / 500
    errors = [np.mean((release.estimate.value - truth) ** 2) for release in releases]
    forecast = placed(used(), FEATURES).forecast(500)
    assert np.mean(errors) == pytest.approx(forecast**2, rel=0.25)
    assert releases[0].estimate.bias == "none"
