"""Questions of kind top: what they promise, which fields they take, and the same answer from a simulation."""

from dataclasses import replace

import numpy as np

from hubbub import Ordinal, Random, Strings
from hubbub.authoring.check import check
from hubbub.authoring.promise import promise as promise_text
from hubbub.collection import SignedCollection
from hubbub.core.event import units_of
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask
from hubbub.protocols.heavy_hitters.pem import ABSENT
from hubbub.questions import read_collection
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import ArrayStream
from tests.questions.top_world import top_collection


def test_a_study_over_a_fleet_finds_the_words_and_says_who_has_none():
    words = np.array(["hub", "bub", "and"] * 3000 + [""] * 3000, dtype=object)
    np.random.default_rng(1).shuffle(words)
    (release,) = run_question(top_collection(epsilon=4.0), "words", ArrayStream(words[None, :]), Random(seed=1))
    assert set(release.estimate.labels or ()) == {"hub", "bub", "and"}
    # Five standard errors of the last group: a failure has a probability below 1e-5; the seed is fixed.
    shares, absent = release.estimate, release.estimates[ABSENT]
    assert np.all(np.abs((shares.centre if shares.centre is not None else shares.value) - 0.25) < 5 * shares.stderr)
    assert np.all(np.abs(absent.value - [0.25, 0.0]) < 5 * absent.stderr)
    assert release.n > 11_990  # the groups are whole arcs, rounded down


def test_it_is_read_back_and_its_terms_name_every_prefix_that_is_asked():
    whole = top_collection()
    terms = whole.terms["words"]
    assert read_collection(whole.spec()) == whole
    assert SignedCollection.from_spec(whole.spec()).terms == whole.terms
    asks = next(whole.protocol("words"))
    assert isinstance(asks, list)
    assert [ask.view.spec() for ask in asks] == list(terms.views)
    assert {ask.mechanism.spec_id for ask in asks} == set(terms.mechanisms)
    assert terms.parts == len(asks)
    assert terms.limit == units_of(2.0)
    assert not [finding for finding in check(whole) if finding.level == "error"]
    assert any("smallest share" in finding.text for finding in check(whole))
    assert "The server keeps the single reports of words, and deletes them" in promise_text(whole)


def test_runs_ask_one_part_of_the_people_after_the_other_and_nobody_pays_twice():
    whole = top_collection(every="4h", turns=3)
    arcs = []
    for run in range(4):
        asks = next(whole.protocol("words", first=run))
        assert isinstance(asks, list)
        arcs.append([ask.cohort for ask in asks if isinstance(ask, Ask)])
    places = np.random.default_rng(1).integers(0, 1 << 32, 3000)
    asked = [np.sum([arc.holds(places) for arc in run], axis=0) for run in arcs]
    assert np.max(asked[0] + asked[1] + asked[2]) <= 1
    assert asked[0].tolist() == asked[3].tolist()
    assert np.mean(asked[0] + asked[1] + asked[2]) > 0.999
    (promise,) = whole.terms["words"].promises
    assert (promise.steps, promise.interval, promise.limit) == (3, 4 * 3600, units_of(2.0))


def test_an_ordinal_field_of_any_size():
    domain = Ordinal(1 << 30)
    whole = top_collection(fields={"word": domain}, epsilon=5.0, k=2)
    values = np.repeat([123456789, 7, domain.missing()], [4000, 3000, 1000])
    np.random.default_rng(1).shuffle(values)
    (release,) = run_question(whole, "words", ArrayStream(values[None, :]), Random(seed=1))
    assert release.estimate.labels == ("123456789", "7")


def test_what_goes_wrong_is_told_before():
    """Many groups and what no number of devices finds are warned of; a small arc and a small budget are refused."""
    long = top_collection(fields={"word": Strings(longest=64)})
    assert any("groups" in finding.text for finding in check(long))
    few = top_collection(every="4h", turns=500)
    assert any(finding.level == "error" and "minimum_arc" in finding.text for finding in check(few))
    poor = replace(top_collection(), budget=Budget.of(event=1.0))
    assert any(finding.level == "error" for finding in check(poor))
    texts = [finding.text for finding in check(top_collection(epsilon=0.05)) if "reliably" in finding.text]
    assert texts[0] == "with 10,000 devices or fewer no value is found reliably"
    assert texts[1].startswith("the smallest share that is found reliably is about ")
    assert texts[1].endswith("% with 1,000,000 devices")
