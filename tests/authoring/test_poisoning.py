"""What is said of forged devices is what they can do: to every kind of question."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub import GRR, Categorical, KeyValue, Numeric, Ordinal, Random, Strings
from hubbub.authoring import check, load_collection
from hubbub.authoring.forecast import poisoning
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.checks.influence import accepted_reports
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.questions import Question, StatisticQuestion
from tests.questions.settings import placed
from tests.shared.asks import randomizer

EXAMPLES = Path(__file__).parents[2] / "examples"
FILMS = KeyValue(("alien", "brazil"), low=1, high=5, most=1)


def moved(question, domain, *forged):
    return poisoning(placed(question, domain), *forged)


@pytest.mark.parametrize("of", ["mean", "frequency"])
@pytest.mark.parametrize("mechanism", ["ExSub", "Collision", "CoCo"])
def test_key_values_by_trying_every_report(of, mechanism):
    spec = Question.make(kind="keyvalue", field="films", epsilon=1.0, of=of, mechanism=mechanism)
    assert isinstance(spec, StatisticQuestion)
    asked = placed(spec, FILMS).statistic()
    made = asked.mechanism(10**12)
    assert isinstance(made, Mechanism)
    listed, reports = accepted_reports(made, Random(seed=1))
    assert listed
    values = [asked.read(made, made.accumulate(reports[k : k + 1])).value for k in range(len(reports))]
    low, high = (0.0, 1.0) if of == "frequency" else (0.0, 5.0)  # who lacks a film has 0 of it
    bound = poisoning(placed(spec, FILMS), forged=0.01)
    assert bound.up == pytest.approx(0.01 * (np.max(values) - low), rel=1e-9)
    assert bound.down == pytest.approx(0.01 * (high - np.min(values)), rel=1e-9)


def test_devices_that_take_turns_are_outnumbered_by_forged_ones_that_do_not():
    # LPU asks a fifth of 100,000 honest devices at a time; 1,000 forged devices answer every time.
    spec = Question.make(kind="stream", field="place", epsilon=1.0, method="LPU", w=5)
    assert isinstance(spec, StatisticQuestion)
    domain, honest, forged = Categorical(["a", "b", "c", "d"]), 99_000, 1_000
    bound = poisoning(placed(spec, domain), forged=0.01)
    assert bound.part == pytest.approx(forged / (honest / 5 + forged), rel=1e-9)
    text = EXAMPLE.replace('"histogram"', '"stream"\nmethod = "LPU"\nw = 5')
    collection = read_collection(text.replace('["light", "dark"]', '["a", "b", "c", "d"]'))

    def answer(ask: Ask):
        rng = Random(seed=ask.step)
        real = randomizer(ask).randomize(rng.below(3, int(honest * ask.cohort.share)), rng)  # nobody is at d
        fake = Reports(ask.mechanism.spec_id, private={"value": np.full(forged, 3, dtype=np.uint8)})
        return randomizer(ask).accumulate(Reports.concat([real, fake]))

    shares = [release.estimate.value[3] for release in converse(collection.protocol("popular"), answer, steps=3)]
    mechanism = placed(spec, domain).mechanism_for()
    assert isinstance(mechanism, GRR)
    noise = np.sqrt(mechanism.variance(honest // 5))
    assert shares == pytest.approx([bound.up] * 3, abs=5.5 * noise)  # failure probability 1e-7


def test_a_divided_budget_is_moved_further():
    domain = Numeric(0, 10, cells=4)
    asked = {"field": "age", "epsilon": 1.0}
    every, part = (moved(Question.make(kind="stream", **asked, method="LBU", w=w), domain) for w in (1, 10))
    assert every.part == part.part == 0.01
    assert part.up == pytest.approx(0.01 * (5 + 5 * (math.exp(0.1) + 1) / (math.exp(0.1) - 1)), rel=1e-9)
    assert part.up > 4 * every.up
    assert every.up == moved(Question.make(kind="mean", **asked), domain).up
    assert every.text().startswith("If 1% of the devices are forged, they can raise the mean of age by up to ")


@pytest.mark.parametrize(
    ("spec", "domain", "why"),
    [
        ({"kind": "histogram", "candidates": ("yes", "no")}, Strings(8), "separated by regression"),
        ({"kind": "changes", "steps": 4, "changes": 2}, Ordinal(2), "without enrolling"),
        ({"kind": "keyvalue", "of": "conditional"}, FILMS, "a ratio"),
    ],
)
def test_what_is_not_bounded_says_why(spec, domain, why):
    bound = moved(Question.make(**spec, field="it", epsilon=1.0), domain)
    assert (bound.up, bound.down, bound.weight) == (None, None, None)
    assert "is not bounded here" in bound.text()
    assert why in bound.text()


def test_a_stream_that_decides_says_that_it_can_be_swayed():
    spec = Question.make(kind="stream", field="place", epsilon=1.0, method="LPA", w=5)
    assert "forged reports also influence" in moved(spec, Ordinal(4)).text()


@pytest.mark.parametrize("name", ["emoji", "places", "ratings", "telemetry"])
def test_every_question_of_the_examples_has_a_sentence(name):
    collection = load_collection(EXAMPLES / f"{name}.toml")
    for question in collection.questions.values():
        bound = poisoning(question)
        assert bound.text().startswith("If 1% of the devices are forged")
        assert (bound.up is None) == ("not bounded here: " in bound.text())


@pytest.mark.parametrize("forged", [0, 1, -0.1, 1.5, True, float("nan"), "1%"])
def test_a_part_that_is_none_is_refused(forged):
    with pytest.raises(InvalidValue, match="forged"):
        moved(Question.make(kind="histogram", field="place", epsilon=1.0), Ordinal(4), forged)


def _found(size: int, mechanism: str) -> list[str]:
    names = ", ".join(f'"v{k}"' for k in range(size))
    named = f'epsilon = 1.0\nmechanism = "{mechanism}"'
    text = EXAMPLE.replace('"light", "dark"', names).replace("epsilon = 1.0", named)
    return [finding.text for finding in check(read_collection(text)) if finding.where == "questions.popular.mechanism"]


def test_direct_encoding_over_many_values_warns():
    (bound,) = _found(128, "GRR")
    assert bound.startswith("one forged report counts for 75 people with GRR, and for 3.2 with OUE")
    assert not _found(10, "GRR")
    assert not _found(128, "OLH")
    assert _found(128, "SHE")


def test_a_mechanism_that_was_not_named_never_warns():
    collection = read_collection(EXAMPLE)
    tiny = replace(collection.questions["popular"], epsilon=0.01)
    assert moved(tiny, Ordinal(4)).weight > 100  # nothing does better
    assert not [finding for finding in check(collection) if finding.where.endswith("mechanism")]
