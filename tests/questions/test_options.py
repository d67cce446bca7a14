"""The parameters of the papers' methods as keys: which method has which, in which range, and what they change."""

from typing import Any

import numpy as np
import pytest

from hubbub.authoring.answerable import first_asks
from hubbub.core.domain import Categorical, Domain, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.ledger.promise import Budget
from hubbub.mechanisms.frequency.bloom_rappor import BloomRappor
from hubbub.mechanisms.frequency.local_hashing import SOLH
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.itemsets.study import MiningConstants
from hubbub.protocols.window import METHODS, OPTIONS
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import binary_stream

SWITCH: dict[str, Domain] = {"on": Ordinal(2)}


def asked(fields: dict[str, Domain], **keys: Any) -> Collection:
    """A collection of one question."""
    question = Question.make(**{"epsilon": 1.0, **keys})
    budget = Budget.of(window=(8.0, 100), user=50.0)
    return Collection(
        name="small", title="Small", fields=fields, questions={"q": question}, budget=budget, step_seconds=3600
    )


def stream(method: str, **keys: Any) -> Collection:
    return asked(SWITCH, kind="stream", field="on", method=method, w=8, **keys)


CHOSEN: dict[str, Any] = {
    "beta": 0.3,
    "filtered": False,
    "u_min": 50,
    "publications": 3,
    "threshold": 2.5,
    "tolerance": 0.1,
    "samples": 4,
    "scale": 0.5,
    "most_share": 0.5,
    "most": 0.2,
    "gain": 1.0,
    "target": 0.5,
    "process_variance": 1e-4,
}


@pytest.mark.parametrize("method", METHODS)
def test_all_options_of_a_method_are_keys_and_devices_admit_what_is_asked_with_them(method: str) -> None:
    assert CHOSEN.keys() == OPTIONS.keys()
    own = {name: CHOSEN[name] for name in METHODS[method].options}
    collection = stream(method, **own)
    question = collection.questions["q"]
    assert Question.from_spec(question.spec()) == question
    process = np.tile([0.1, 0.1, 0.6, 0.6], 5)
    devices = binary_stream(process, 3000, Random(seed=1))
    assert (
        len(list(run_question(collection, "q", devices, Random(seed=method), steps=20))) == 20
    )  # strict: all are admitted


@pytest.mark.parametrize("method", METHODS)
def test_an_option_of_another_method_is_refused_by_name(method: str) -> None:
    for name in OPTIONS.keys() - set(METHODS[method].options):
        with pytest.raises(InvalidValue, match=rf"{name}: got .*; allowed: nothing: "):
            stream(method, **{name: CHOSEN[name]})


OUTSIDE = [
    ("LBD", "beta", 0.0, "a number between 0 and 1"),
    ("LBD", "beta", 1.0, "a number between 0 and 1"),
    ("LPD", "u_min", 0, "an integer from 1 to"),
    ("LP-DSAT", "publications", 9, "an integer from 1 to 8"),
    ("LP-DSAT", "threshold", 20.0, "a number between 0 and 20"),
    ("LP-FAST", "samples", 0, "an integer from 1 to 8"),
    ("LP-RescueDP", "most", 1.5, "a number from 0.001 to 1"),
    ("LP-RescueDP", "process_variance", -1.0, "a number from 0 to"),
    ("LP-PeGaSus", "tolerance", 0.0, "a number above 0"),
]


@pytest.mark.parametrize(("method", "name", "value", "allowed"), OUTSIDE)
def test_a_value_out_of_range_is_refused_with_the_range(method: str, name: str, value: Any, allowed: str) -> None:
    with pytest.raises(InvalidValue, match=f"{name}: got {value}; allowed: {allowed}"):
        stream(method, **{name: value})


def test_u_min_is_the_fewest_people_of_a_publication() -> None:
    devices = binary_stream(np.tile([0.1, 0.9], 10), 4000, Random(seed=2))
    few, many = (
        sum(
            release.published for release in run_question(stream("LPD", **keys), "q", devices, Random(seed=3), steps=20)
        )
        for keys in ({}, {"u_min": 4000})
    )
    assert few > 3
    assert many == 0


def test_beta_divides_the_window_and_the_forecast_follows() -> None:
    plain, measured = stream("LPA"), stream("LPA", beta=0.8)
    assert plain.questions["q"].answering() == pytest.approx(0.5 / 8)
    assert measured.questions["q"].answering() == pytest.approx(0.2 / 8)
    (ask,) = first_asks(measured, "q")
    assert ask.cohort.length == int(CIRCLE * 0.8) // 8


def test_groups_of_a_search_by_prefixes_are_as_many_as_are_named() -> None:
    top = {"kind": "top", "field": "word", "start": "2026-12-01T00:00Z", "k": 4, "epsilon": 4.0}
    fields: dict[str, Domain] = {"word": Strings(longest=3)}
    assert asked(fields, **top).terms["q"].parts == 2
    assert asked(fields, **top, groups=5).terms["q"].parts == 5
    for wrong in (0, 25):
        with pytest.raises(InvalidValue, match=rf"groups: got {wrong}; allowed: an integer from 1 to 24"):
            asked(fields, **top, groups=wrong)


BASKET: dict[str, Domain] = {"basket": Sets(Ordinal(50), most=4)}
MINED = {"kind": "itemsets", "field": "basket", "start": "2026-12-01T00:00Z", "k": 4, "epsilon": 6.0}


def test_the_constants_of_svim_are_keys_and_are_signed() -> None:
    keys = {"candidates": 12, "largest": 3, "percentile": 0.8, "top_guess": 0.7, "percents": [30, 10, 30, 10, 20]}
    collection = asked(BASKET, **MINED, **keys)
    bound = collection.terms["q"].views[1]["sets"]
    assert bound == {"most": 12, "each": {"most": 3}}
    (ask,) = first_asks(collection, "q")
    assert ask.cohort.length == CIRCLE * 30 // 100
    assert asked(BASKET, **MINED).terms["q"].views[1]["sets"] == {"most": 8, "each": {"most": 2}}
    assert MiningConstants().groups(50, 4, itemsets=True) == (25, 5, 20, 10, 40)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"candidates": 3}, "candidates: got 3; allowed: an integer from 4 to"),
        ({"largest": 1}, "largest: got 1; allowed: an integer from 2 to 64"),
        ({"percentile": 1.0}, "percentile: got 1.0; allowed: a number between 0 and 1"),
        ({"top_guess": 0.0}, "top_guess: got 0.0; allowed: a number between 0 and 1"),
        ({"percents": [50, 50]}, r"percents: got .*; allowed: 5 whole numbers above 0 that sum to 100, such as 25, 5"),
        ({"percents": [25, 5, 20, 10, 41]}, "that sum to 100"),
    ],
)
def test_a_constant_that_is_none_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        asked(BASKET, **MINED, **keys)


def test_buckets_of_an_oracle_that_hashes() -> None:
    fields: dict[str, Domain] = {"word": Categorical([f"w{number}" for number in range(200)])}
    keys = {"kind": "histogram", "field": "word", "epsilon": 3.0}
    (ask,) = first_asks(asked(fields, **keys, mechanism="SOLH", buckets=64), "q")
    assert isinstance(ask.mechanism, SOLH)
    assert ask.mechanism.buckets == 64
    solh = asked(fields, **keys, mechanism="SOLH", buckets=64)
    assert solh.questions["q"].cost().each == ask.mechanism.event().spent
    with pytest.raises(InvalidValue, match=r"buckets: got 60; allowed: a power of two"):
        asked(fields, **keys, mechanism="SOLH", buckets=60)
    for wrong in ({"buckets": 4}, {"buckets": 4, "mechanism": "GRR"}):
        with pytest.raises(InvalidValue, match="buckets: got 4; allowed: nothing, unless a mechanism is named"):
            asked(fields, **keys, **wrong)
    held = {"kind": "memo", "field": "word", "epsilon": 1.0, "permanent": 2.0, "mechanism": "Loloha", "buckets": 8}
    assert asked(fields, **held).questions["q"].cost().most // asked(fields, **held).questions["q"].cost().each == 8


TEXTS: dict[str, Domain] = {"word": Strings(longest=8)}
FILTERS = {"bits": 40, "hashes": 3, "cohorts": 5, "candidates": ["yes", "no"]}


def test_the_filters_of_texts_are_keys_of_a_histogram_and_of_a_memo() -> None:
    (ask,) = first_asks(asked(TEXTS, kind="histogram", field="word", epsilon=3.0, **FILTERS), "q")
    assert isinstance(ask.mechanism, Rappor)
    assert (ask.mechanism.bits, ask.mechanism.hashes, ask.mechanism.cohorts) == (40, 3, 5)
    kept = asked(TEXTS, kind="memo", field="word", epsilon=1.0, permanent=3.0, **FILTERS)
    (ask,) = first_asks(kept, "q")
    assert isinstance(ask.mechanism, BloomRappor)
    assert kept.terms["q"].state == "BloomRappor"
    assert ask.mechanism.permanent_epsilon <= 3.0
    assert 0.999 < ask.mechanism.effective_epsilon <= 1.0
    linked = kept.questions["q"].linked()
    assert linked is not None
    assert "number of the device's cohort, one of 5" in linked
    with pytest.raises(InvalidValue, match=r"bits: got 40; allowed: nothing: only fields of strings"):
        asked(SWITCH, kind="histogram", field="on", bits=40)
    with pytest.raises(InvalidValue, match=r"mechanism: got .*Loloha.*; allowed: BloomRappor"):
        asked(TEXTS, kind="memo", field="word", permanent=3.0, mechanism="Loloha", **FILTERS)
    with pytest.raises(InvalidValue, match=r"permanent: got 1.0; allowed: an epsilon above that of one report"):
        asked(TEXTS, kind="memo", field="word", permanent=1.0, **FILTERS)
