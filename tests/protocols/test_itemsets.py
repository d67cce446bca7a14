"""SVIM and SVSM: who is asked what, what is found, and what is said where something is missing."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import Ordinal, Random, Sketch
from hubbub.core.domain import Categorical, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.ask import CIRCLE, Ask, disjoint
from hubbub.protocols.driver import Release, converse
from hubbub.protocols.itemsets.lengths import LengthShares, guess_itemsets, largest_guess, significant_lengths
from hubbub.protocols.itemsets.mining import Groups
from hubbub.protocols.itemsets.study import group_percents, itemset_study
from hubbub.protocols.views.basic import Whole
from hubbub.protocols.views.sets import SubsetCount
from hubbub.statistics.selection import chance_to_miss
from tests.shared.answers import answered, holds

DOMAIN = Sets(Ordinal(300), most=20)
BASKETS: list[Any] = [(3, 7)] * 300 + [(7,)] * 300 + [(3, 7, 11)] * 100 + [(11, 90)] * 100 + [()] * 200


class Crowd:
    """In each group the same sets, each times the same; asks are remembered."""

    def __init__(self, sets: list[Any], times: int = 6, *, silent: int = 0, seed: int = 1) -> None:
        self.sets, self.silent, self.rng = sets * times, silent, Random(seed=seed)
        self.asks: list[Ask] = []

    def answer(self, ask: Ask) -> Sketch:
        self.asks.append(ask)
        if len(self.asks) == self.silent:
            return ask.mechanism.empty()
        return answered(ask, self.sets, self.rng)


def study(crowd: Crowd, domain: Sets = DOMAIN, **keys: Any) -> Release:
    (release,) = converse(itemset_study(domain, **{"epsilon": 6.0, "k": 6, **keys}), crowd.answer)
    return release


def test_each_group_is_asked_its_own_question_and_answers_once_with_all_of_epsilon() -> None:
    crowd = Crowd(BASKETS)
    study(crowd)
    first, *rest = crowd.asks
    assert (type(first.view), first.mechanism.length) == (Whole, 1)  # type: ignore[attr-defined]
    assert [ask.view.spec()["kind"] for ask in rest] == ["subsetcount", "subsets"] * 2
    assert [len(ask.view.sets) for ask in rest] == [12, 12, 12, 12]  # type: ignore[attr-defined]  # 2k candidates
    assert [isinstance(ask.mechanism, PSFO) for ask in crowd.asks] == [True, False, True, False, True]
    assert {ask.mechanism.epsilon for ask in crowd.asks} == {6.0}
    assert disjoint(ask.cohort for ask in crowd.asks)
    assert sum(ask.cohort.share for ask in crowd.asks) == pytest.approx(1.0)


def named(estimate: Estimate) -> dict[str, float]:
    return dict(zip(estimate.names(), estimate.value.tolist(), strict=True))


def test_it_finds_what_is_held_together() -> None:
    release = study(Crowd(BASKETS))
    shares = named(release.estimate)
    assert list(shares)[:2] == ["7", "3"]
    truth = {"7": 0.7, "3": 0.4, "3 + 7": 0.4, "11": 0.2}
    for name, share in truth.items():
        assert holds(release.estimate, share, 0.9999)[list(shares).index(name)], name
    assert list(release.estimates) == ["itemsets", "Confidence", "Lift", "search"]
    confidence = named(release.estimates["Confidence"])
    assert confidence["3 -> 7"] > 0.9
    assert confidence["7 -> 3"] == pytest.approx(4 / 7, abs=0.1)


def test_items_alone_are_svim() -> None:
    crowd = Crowd(BASKETS)
    release = study(crowd, itemsets=False)
    assert len(crowd.asks) == 3
    assert (release.estimate.labels or ())[:3] == ("7", "3", "11")
    assert list(release.estimates) == ["items", "search"]


@pytest.mark.parametrize("silent", [1, 2, 3, 4, 5])
def test_a_round_that_nobody_answers_ends_it_and_what_is_known_is_told(silent: int) -> None:
    crowd = Crowd(BASKETS, silent=silent)
    release = study(crowd)
    assert release.stopped == f"nobody answered in round {silent}"
    assert len(crowd.asks) == silent
    assert list(release.estimates) == ([] if silent < 4 else ["items", "search"])
    if silent >= 4:
        assert (release.estimate.labels or ())[0] == "7"


def test_nobody_holds_anything() -> None:
    release = study(Crowd([()] * 100))
    assert release.stopped is None or "no candidate itemsets" in release.stopped
    low, _ = release.estimate.interval()
    assert (low <= 0.02).all()


def test_all_items_are_candidates_where_they_are_few() -> None:
    domain, crowd = Sets(Categorical(["tea", "milk", "rum"]), most=3), Crowd([(0, 1)] * 6 + [(2,)] * 4, times=200)
    release = study(crowd, domain, k=50, names=domain.items.labels)
    assert [ask.view.spec()["kind"] for ask in crowd.asks] == ["subsetcount", "subsets"] * 2
    assert set((release.estimate.labels or ())[:3]) == {"tea", "milk", "tea + milk"}
    assert len(release.estimate) == 7  # every set of three items: fewer than k
    assert release.estimates["search"].value[0] == 0.0  # none could be missed


def test_one_candidate_itemset_is_asked_about_directly() -> None:
    domain, crowd = Sets(Ordinal(2), most=2), Crowd([(0, 1)] * 6 + [(0,)] * 4, times=200)
    release = study(crowd, domain, k=2)
    assert len(crowd.asks) == 3
    assert crowd.asks[-1].view == SubsetCount(((0, 1),))
    assert crowd.asks[-1].cohort.share == pytest.approx(0.4)  # of the larger group: how many is no question
    assert named(release.estimate)["0"] == pytest.approx(1.0, abs=0.05)


def test_turns_ask_parts_of_the_people_that_are_apart() -> None:
    arcs = [arc for turn in range(5) for arc in Groups((25, 5, 20, 10, 40), turn=turn, turns=5).arcs]
    assert disjoint(arcs)
    assert sum(arc.length for arc in arcs) > CIRCLE - 100
    again = Groups((25, 5, 20, 10, 40), turn=7, turns=5).arcs
    assert again == Groups((25, 5, 20, 10, 40), turn=2, turns=5).arcs
    assert all(before.start + before.length == after.start for before, after in pairwise(again))


BAD: list[dict[str, Any]] = [{"k": 1}, {"k": 0, "itemsets": False}, {"k": 2.0}, {"k": 1 << 20}, {"epsilon": 0.0}]


@pytest.mark.parametrize("keys", BAD, ids=str)
def test_bad_keys_are_refused_by_name(keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as refused:
        study(Crowd(BASKETS), **keys)
    assert refused.value.field == next(iter(keys))


def test_other_fields_are_refused() -> None:
    with pytest.raises(InvalidValue, match="sets of at most"):
        next(itemset_study(Ordinal(9), epsilon=1.0, k=3))


# -- lengths ------------------------------------------------------------------------------------------------------


def test_the_percentile_and_the_factor_are_those_of_the_text() -> None:
    counts = np.array([5, 40, 30, 20, 7, 0, 3])  # people by their number of items
    lengths = LengthShares(counts / counts.sum())
    items = counts * np.arange(7)
    assert lengths.percentile() == 4  # 90 of the 100 who hold any hold at most 3, and 97 at most 4
    for length in range(1, 7):
        missed = sum(counts[more] * (more - length) for more in range(length + 1, 7))
        assert lengths.update_factor(length) == pytest.approx(items.sum() / (items.sum() - missed))  # Eq 5.4


def test_lengths_that_chance_explains_count_as_none() -> None:
    estimate = Estimate(np.array([0.2, 0.5, 0.3, 0.029, -0.02]), np.full(5, 1e-4), 500)
    threshold = 2.2414 * 0.01  # of four lengths: Phi^-1(1 - 0.05/4)
    assert significant_lengths(estimate, 1e-4).shares.tolist() == [0.2, 0.5, 0.3, 0.029, 0.0]
    nothing = replace(estimate, value=np.array([0, 0, 0, threshold * 0.99, 0.0]))
    assert significant_lengths(nothing, 1e-4).percentile() == 1
    assert significant_lengths(estimate, 1e-4 * 1.3**2).shares.tolist() == [0.2, 0.5, 0.3, 0.0, 0.0]


def test_longer_sets_than_there_can_be_are_noise() -> None:
    estimate = Estimate(np.array([0.2, 0.5, 0.3, 0.1, 0.4]), np.full(5, 1e-4), 500)
    assert significant_lengths(estimate, 1e-4, longest=2).shares.tolist() == [0.2, 0.5, 0.3, 0.0, 0.0]
    assert significant_lengths(estimate, 1e-4, longest=9).shares.tolist() == estimate.value.tolist()


def _factors(truth: np.ndarray, published: bool) -> np.ndarray:
    """Of 400 studies, the factor over the one that is right for the length that was found."""
    rng, factors = np.random.default_rng(2), []
    for _ in range(400):
        estimate = Estimate(rng.normal(truth, 0.01), np.full(129, 1e-4), 1000)
        lengths = significant_lengths(estimate, 1e-4, published=published)
        length = lengths.percentile()
        factors.append(LengthShares(lengths.shares).update_factor(length) / LengthShares(truth).update_factor(length))
    return np.array(factors)


def test_a_length_that_chance_raised_does_not_multiply_every_share() -> None:
    """Of 128 lengths chance raises one above the plain threshold in 5% of studies, and then the factor is 2 or more."""
    truth = np.concatenate([[0.3, 0.4, 0.2, 0.1], np.zeros(125)])
    assert _factors(truth, published=False).max() < 1.2
    assert (_factors(truth, published=True) > 1.5).mean() > 0.01  # the test sees it


def test_lengths_too_rare_to_be_seen_one_by_one_are_not_forgotten() -> None:
    """Each length is a fifth rarer than the one before: a sixth of the people hold numbers that do not pass alone."""
    truth = np.concatenate([[0.3], 0.14 * 0.8 ** np.arange(128)])
    assert abs(np.median(_factors(truth, published=False)) - 1) < 0.1
    assert np.median(_factors(truth, published=True)) < 0.8


def test_a_second_mode_is_found_beyond_a_gap() -> None:
    estimate = Estimate(np.array([0.3, 0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.1]), np.full(8, 1e-4), 1000)
    assert significant_lengths(estimate, 1e-4).shares[7] == 0.1
    many = Estimate(np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.4, 0.3]), np.full(7, 1e-4), 1000)
    assert significant_lengths(many, 1e-4).percentile() == 6


def _coverage(chance: Callable[[Estimate, np.ndarray], float]) -> tuple[float, float]:
    """How many intervals hold the truth: of all that are shown, and of those that say that it is not zero."""
    rng, shown, clear = np.random.default_rng(5), [], []
    truth = np.concatenate([np.zeros(56), np.linspace(0.0, 0.05, 8)])
    for _ in range(400):
        estimate = Estimate(rng.normal(truth, 0.01), np.full(64, 1e-4), 1000)
        chosen = estimate.top(16)
        low, high = (end[chosen] for end in estimate.interval(1 - chance(estimate, chosen)))
        held = (low <= truth[chosen]) & (truth[chosen] <= high)
        shown.append(held.mean())
        clear.append(held[low > 0].mean() if (low > 0).any() else 1.0)
    return float(np.mean(shown)), float(np.mean(clear))


def test_intervals_hold_the_truth_after_selection() -> None:
    """400 runs of 16 intervals: the means are within 0.02 of their expectation but for a chance below 1e-4."""
    shown, clear = _coverage(chance_to_miss)
    assert shown > 0.95
    assert clear > 0.93
    plain = _coverage(lambda estimate, chosen: 0.05)
    assert plain[0] < 0.9  # what they would be without: the test sees it
    assert plain[1] < 0.9


def test_longer_sets_are_made_up_for() -> None:
    """Half hold 2 of 8 items, and one in twenty all 8: padded to 2, each item's share is 0.175.

    With 60,000 in the last group its estimate errs by less than 0.02, but for a chance below 1e-6; without the factor
    it would be 0.1375.
    """
    items = [tuple(sorted({number % 8, (number + 1) % 8})) for number in range(8)]
    sets: list[Any] = items * 50 + [()] * 360 + [tuple(range(8))] * 40
    crowd = Crowd(sets, times=75, seed=3)
    release = study(crowd, Sets(Ordinal(8), most=8), k=8, itemsets=False, epsilon=6.0)
    assert crowd.asks[-1].mechanism.length == 2  # type: ignore[attr-defined]
    assert release.estimate.value == pytest.approx(np.full(8, 0.175), abs=0.02)
    assert release.estimate.bias == "heuristic"


def test_group_percents_sum_to_a_hundred() -> None:
    for items in (10, 1000):
        for itemsets in (False, True):
            assert sum(group_percents(items, 64, itemsets=itemsets)) == 100


def test_the_last_group_speaks_for_all_of_them() -> None:
    """The lower end of a share has the error of having asked two fifths of the people."""
    crowd = Crowd([(3,)] * 500 + [()] * 500, times=4)
    release = study(crowd, Sets(Ordinal(50), most=3), k=2, itemsets=False, epsilon=30.0)
    place = list(release.estimate.labels or ()).index("3")
    n = 4000
    below = release.estimate.value[place] - release.estimate.interval()[0][place]
    assert below == pytest.approx(2.4977 * math.sqrt(0.25 / n * (1 - 0.4)), rel=0.01)  # one of four is clear of zero
    assert math.isclose(release.n, 3 * n / 1.0, rel_tol=1e-6)


# -- candidate itemsets: best first equals sorting all of them -------------------------------------------------------


@given(st.dictionaries(st.integers(0, 50), st.integers(-3, 40), max_size=8), st.integers(0, 60), st.integers(2, 4))
def test_they_are_the_largest_products(counts: dict[int, int], most: int, largest: int) -> None:
    shares = {code: count / 100 for code, count in counts.items()}
    guesses = guess_itemsets(shares, most=most, largest=largest)
    positive = sorted(code for code, share in shares.items() if share > 0)
    all_sets = [items for size in range(2, largest + 1) for items in combinations(positive, size)]
    highest = max((shares[code] for code in positive), default=1.0)

    def guess(items: tuple[int, ...]) -> float:
        return prod(0.9 * shares[code] / highest for code in items)

    assert len(guesses) == len(set(guesses)) == min(most, len(all_sets))
    assert set(guesses) <= set(all_sets)
    values = [guess(items) for items in guesses]
    assert values == pytest.approx(sorted(map(guess, all_sets), reverse=True)[:most])


def test_the_most_frequent_item_lowers_the_guess_of_a_set_that_it_joins() -> None:
    assert guess_itemsets({1: 0.5, 2: 0.4, 3: 0.4}, most=9, largest=3)[-1] == (1, 2, 3)


@pytest.mark.parametrize(("k", "largest"), [(2, 2), (4, 2), (16, 3), (17, 4), (32, 4), (64, 5), (128, 6)])
def test_candidates_have_fewer_than_log2_k_items(k: int, largest: int) -> None:
    assert largest_guess(k) == largest
