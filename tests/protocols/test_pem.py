"""The prefix extending method: what it finds, and what it says where it cannot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Release, converse
from hubbub.protocols.heavy_hitters import search as search_module
from hubbub.protocols.heavy_hitters.pem import (
    ABSENT,
    SEARCH,
    WANTED,
    group_asks,
    prefix_extending,
    sensitivity_threshold,
    supported_by_chance,
)
from hubbub.protocols.heavy_hitters.prefixes import Integers, PrefixPlan, Texts
from hubbub.rehearse.top import find_top, run_plan


def exponential(n: int, bits: int, *, scale: float = 0.1, seed: int = 1) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Values spread at random over all strings of some bits, and the same in the order of their shares."""
    rng = np.random.default_rng(seed)
    names = rng.integers(0, 1 << min(bits, 63), 200).astype(np.uint64)
    shares = np.exp(-scale * np.arange(200))
    return names[rng.choice(200, n, p=shares / shares.sum())], [int(name) for name in names]


def test_what_is_common_is_found_among_2_to_the_64_values():
    values, order = exponential(40_000, 64)
    top = find_top(values, k=8, epsilon=4.0, bits=64, query_limit=1 << 13, rng=Random(seed=1))
    assert len(top.plan.lengths) == 9
    # The first three and what stands after place 20 lie at least 7 standard errors apart from the eighth: below 1e-9.
    assert set(order[:3]) <= set(top.values) <= set(order[:20])
    low, high = top.estimate.interval(0.999)
    truth = np.array([np.mean(values == value) for value in top.values])
    assert ((low <= truth) & (truth <= high)).all()


def test_with_reports_that_say_nothing_it_is_not_found():
    values, order = exponential(40_000, 64)
    top = find_top(values, k=8, epsilon=0.05, bits=64, query_limit=1 << 13, rng=Random(seed=1))
    assert not set(top.values) & set(order[:8])
    assert top.false_positives > 4


def test_texts_nobody_listed_twins_as_one_and_without_those_who_have_none():
    words = ["caf\u00e9"] * 3000 + ["cafe\u0301"] * 3000 + ["\u65e5\u672c"] * 4000 + [""] * 8000 + ["x" * 30] * 2000
    top = find_top(words, k=2, epsilon=5.0, longest=9, query_limit=1 << 13, rng=Random(seed=2))
    assert top.values == ["caf\u00e9", "\u65e5\u672c"]
    assert top.estimate.value.round(1).tolist() == [0.3, 0.2]
    absent = top.release.estimates[ABSENT]
    assert dict(zip(absent.names(), absent.value.round(1).tolist(), strict=True)) == {
        "(none)": 0.4,
        "(too long, or no text)": 0.1,
    }


def test_branching_by_characters_asks_for_whole_ones():
    words = ["banana"] * 6000 + ["bandit"] * 3000
    top = find_top(words, k=2, epsilon=6.0, longest=6, branching="characters", query_limit=1 << 14, rng=Random(seed=1))
    assert top.plan.lengths == (8, 16, 24, 32, 40, 48)
    assert top.values == ["banana", "bandit"]


def test_a_threshold_keeps_only_what_reaches_it():
    values, order = exponential(40_000, 32)
    top = find_top(values, k=20, epsilon=5.0, bits=32, threshold=0.04, query_limit=1 << 14, rng=Random(seed=1))
    assert 5 <= len(top.values) < 20
    assert set(top.values) <= set(order[:12])
    nothing = find_top(values, k=20, epsilon=5.0, bits=32, threshold=0.9, query_limit=1 << 14, rng=Random(seed=1))
    assert nothing.stopped == "no prefix of 12 bits was found that a share of 0.9 begins with"


def test_more_values_wanted_than_there_are():
    plan = PrefixPlan(encoding=Integers(2, size=3), k=10, epsilon=5.0)
    top = run_plan(plan, np.repeat([0, 1, 2, 3], [400, 300, 200, 100]), Random(seed=1))
    assert top.values == [0, 1, 2]
    search = top.release.estimates[SEARCH]
    assert dict(zip(search.names(), search.value.tolist(), strict=True))[WANTED] == 10  # of which there are three
    assert top.release.estimates[ABSENT].value.round(1).tolist() == [0.1]
    assert top.false_positives <= 10


def converse_with(plan: PrefixPlan, answered: set[int]) -> Release:
    asks, reports, rng = group_asks(plan), {}, Random(seed=1)

    def answer(ask: Ask) -> Any:
        values = np.full(400 if asks.index(ask) in answered else 0, 77)
        reports[ask.ask_id] = ask.mechanism.randomize(ask.view(values), rng)
        return ask.mechanism.accumulate(reports[ask.ask_id])

    def count(message: Count) -> Any:
        return message.among(lambda: [reports[message.ask.ask_id]])

    (release,) = converse(prefix_extending(plan), answer, count=count, rounds=1, parts=len(asks))
    return release


def test_a_group_without_reports_and_a_round_without_devices_are_said():
    plan = PrefixPlan(encoding=Integers(20), k=2, epsilon=4.0, query_limit=1 << 9)
    lengths = plan.lengths
    assert len(lengths) == 3
    assert converse_with(plan, {0, 1, 2}).estimate.labels is not None
    gap = converse_with(plan, {0, 2})
    assert gap.stopped == f"nobody answered in the group that reports prefixes of {lengths[1]} bits"
    assert not gap.estimates
    vanished = converse_with(plan, set())
    assert vanished.stopped == f"nobody answered in the group that reports prefixes of {lengths[0]} bits"
    assert vanished.n == 0


def test_candidates_in_blocks_are_the_candidates_at_once(monkeypatch: pytest.MonkeyPatch):
    values, _ = exponential(3000, 64)
    at_once = find_top(values, k=5, epsilon=1.0, bits=64, query_limit=1 << 12, rng=Random(seed=3))
    monkeypatch.setattr(search_module, "BLOCK", 97)
    monkeypatch.setattr(search_module, "_REPORTS", 101)
    in_blocks = find_top(values, k=5, epsilon=1.0, bits=64, query_limit=1 << 12, rng=Random(seed=3))
    assert in_blocks.values == at_once.values
    assert in_blocks.estimate.value.tolist() == at_once.estimate.value.tolist()


@pytest.mark.parametrize(
    ("m", "epsilon", "n", "printed"), [(32, 1, 10**4, 0.119629), (64, 2, 10**6, 0.007728), (128, 2, 10**7, 0.003513)]
)
def test_the_sensitivity_threshold_is_that_of_table_4_1(m: int, epsilon: float, n: int, printed: float):
    sigma = math.sqrt(4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2)
    assert sensitivity_threshold(sigma, 2**m, n) == pytest.approx(printed, rel=2e-3)


def test_groups_are_as_few_as_the_limit_allows():
    by_limit = {
        limit: PrefixPlan(encoding=Integers(64), k=32, epsilon=1.0, query_limit=limit) for limit in (2**16, 2**22)
    }
    assert [len(plan.lengths) for plan in by_limit.values()] == [8, 4]
    assert all(plan.queries <= limit for limit, plan in by_limit.items())
    with pytest.raises(InvalidValue, match="query_limit"):
        PrefixPlan(encoding=Integers(64), k=32, epsilon=1.0, query_limit=100)
    with pytest.raises(InvalidValue, match="query_limit"):
        PrefixPlan(encoding=Integers(64), k=32, epsilon=1.0, groups=2)


@pytest.mark.parametrize(
    ("field", "keys"),
    [
        ("k", {"k": 0}),
        ("k", {"k": 1.5}),
        ("threshold", {"threshold": 2.0}),
        ("branching", {"branching": "words"}),
        ("groups", {"groups": -1}),
        ("bits", {"bits": 65}),
        ("bits", {"longest": 4}),
        ("epsilon", {"epsilon": 0.0}),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(field: str, keys: dict[str, Any]):
    with pytest.raises(InvalidValue, match=field):
        find_top([1, 2, 3], **{"k": 2, "epsilon": 1.0, "bits": 8, "rng": Random(seed=1), **keys})
    with pytest.raises(InvalidValue, match="values"):
        find_top([1, "a"], k=2, epsilon=1.0, bits=8, rng=Random(seed=1))


def is_text(written: bytes) -> bool:
    shown = written.rstrip(b"\0")
    try:
        shown.decode()
    except UnicodeDecodeError:
        return False
    return bool(shown) and 0 not in shown


def test_prefixes_that_are_tested_are_those_that_some_text_begins_with():
    texts = [number for number in range(1 << 16) if is_text(number.to_bytes(2, "big"))]
    for bits in range(1, 17):
        words = (np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits))[:, None]
        begun = {text >> (16 - bits) for text in texts}
        assert set(np.flatnonzero(Texts(2).possible(words, bits)).tolist()) == begun


@pytest.mark.parametrize(
    ("begun", "longest"),
    [
        ("e080", 9),
        ("eda0", 9),
        ("f080", 9),
        ("f490", 9),
        ("c3c0", 9),
        ("e282", 2),
        ("6180", 9),
        ("00", 9),
        ("610062", 9),
    ],
)
def test_prefixes_that_no_text_goes_on_from_are_not_tested(begun: str, longest: int):
    words = np.array([[int(begun.ljust(16, "0"), 16)]], dtype=np.uint64)
    assert not Texts(longest).possible(words, 4 * len(begun)).any()


@pytest.mark.parametrize(
    ("n", "share"), [(1, 0.5), (4000, 0.014), (4000, 0.0), (4000, -0.01), (10**6, 0.002), (10**6, -0.05)]
)
def test_false_positives_are_those_of_the_exact_law_of_supports(n: int, share: float):
    p, q = 0.5, 1 / 21
    support = math.ceil(n * (q + share * (p - q)) - 1e-6)
    exact = 1000 * float(binom.sf(support - 1, n, q))
    assert supported_by_chance((p, q), 1000, n, share) == pytest.approx(exact, rel=1e-6)


def test_of_very_few_people_all_that_is_found_is_chance():
    top = find_top(["a", "b"] * 4, k=8, epsilon=2.0, longest=4, groups=2, query_limit=1 << 22, rng=Random(seed=5))
    assert top.stopped is None
    assert top.false_positives == 8
