"""The prefix extending method: what it finds, and what it says where it cannot.

Its numbers: intervals given that a value was found, the pooled estimate, expected false positives.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Release, converse
from hubbub.protocols.heavy_hitters import search as search_module
from hubbub.protocols.heavy_hitters.pem import (
    ABSENT,
    SEARCH,
    WANTED,
    Level,
    group_asks,
    pooled_shares,
    prefix_extending,
    sensitivity_threshold,
    supported_by_chance,
)
from hubbub.protocols.heavy_hitters.prefixes import Integers, PrefixPlan, Texts
from hubbub.rehearse.top import find_top, run_plan
from tests.shared.answers import holds


def exponential(n: int, bits: int, *, scale: float = 0.1, seed: int = 1) -> tuple[np.ndarray, list[int]]:
    """Values spread at random over all strings of some bits, and the same in the order of their shares."""
    rng = np.random.default_rng(seed)
    names = rng.integers(0, 1 << min(bits, 63), 200).astype(np.uint64)
    shares = np.exp(-scale * np.arange(200))
    return names[rng.choice(200, n, p=shares / shares.sum())], [int(name) for name in names]


def truth_of(values: np.ndarray, top: Any) -> Floats:
    """The shares of the people who have the values that were found."""
    return np.array([np.mean(values == value) for value in top.values])


def test_what_is_common_is_found_among_2_to_the_64_values():
    values, order = exponential(40_000, 64)
    top = find_top(values, k=8, epsilon=4.0, bits=64, query_limit=1 << 13, rng=Random(seed=1))
    assert len(top.plan.lengths) == 9
    # The first three and what stands after place 20 lie at least 7 standard errors apart from the eighth: below 1e-9.
    assert set(order[:3]) <= set(top.values) <= set(order[:20])
    assert holds(top.estimate, truth_of(values, top), 0.999).all()


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
        assert isinstance(ask.mechanism, Mechanism)
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
    monkeypatch.setattr(search_module, "BLOCK_REPORTS", 101)
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
    for limit, groups in ((2**16, 8), (2**22, 4)):
        plan = PrefixPlan(encoding=Integers(64), k=32, epsilon=1.0, query_limit=limit)
        assert (len(plan.lengths), plan.queries <= limit) == (groups, True)
    wrongs: list[dict[str, Any]] = [{"query_limit": 100}, {"groups": 2}]
    for wrong in wrongs:
        with pytest.raises(InvalidValue, match="query_limit"):
            PrefixPlan(encoding=Integers(64), k=32, epsilon=1.0, **wrong)


BAD: list[tuple[str, Any]] = [("k", 0), ("k", 1.5), ("threshold", 2.0), ("branching", "words"), ("groups", -1)]


@pytest.mark.parametrize(("field", "value"), [*BAD, ("bits", 65), ("longest", 4), ("epsilon", 0.0)])
def test_what_cannot_be_searched_is_refused_by_name(field: str, value: Any):
    with pytest.raises(InvalidValue, match="bits" if field == "longest" else field):
        find_top([1, 2, 3], **{"k": 2, "epsilon": 1.0, "bits": 8, "rng": Random(seed=1), field: value})


def test_values_of_two_sorts_are_refused():
    mixed: Any = [1, "a"]
    with pytest.raises(InvalidValue, match="values"):
        find_top(mixed, k=2, epsilon=1.0, bits=8, rng=Random(seed=1))


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


NO_TEXTS = ["e080", "eda0", "f080", "f490", "c3c0", "6180", "00", "610062"]


@pytest.mark.parametrize(("begun", "longest"), [("e282", 2), *((begun, 9) for begun in NO_TEXTS)])
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


# -- the numbers of a search -----------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """Over several searches."""

    intervals: int
    held: float
    usual: float
    false_positives: float
    expected: float
    pooled: float
    last_group: float


def measure(runs: int, n: int, *, epsilon: float = 2.0, k: int = 16) -> Measured:
    held, usual, errors, raw = list[bool](), list[bool](), list[float](), list[float]()
    false, expected = 0, 0.0
    for run in range(runs):
        rng = np.random.default_rng(run)
        names, shares = rng.integers(0, 1 << 32, 400), np.exp(-0.05 * np.arange(400))
        values = names[rng.choice(400, n, p=shares / shares.sum())]
        top = find_top(values, k=k, epsilon=epsilon, bits=32, query_limit=1 << 12, rng=Random(seed=run))
        estimate, truth = top.estimate, truth_of(values, top)
        centre = estimate.centre
        assert centre is not None
        held += holds(estimate, truth).tolist()
        usual += (np.abs(centre - truth) <= 1.96 * estimate.stderr).tolist()
        false, expected = false + int((truth == 0).sum()), expected + top.false_positives
        errors += (estimate.value - truth)[truth > 0].tolist()
        raw += (centre - truth)[truth > 0].tolist()
    pooled, last_group = (float(np.mean(np.square(column))) for column in (errors, raw))
    rates = float(np.mean(held)), float(np.mean(usual))
    return Measured(len(held), *rates, false / runs, expected / runs, pooled, last_group)


def test_intervals_hold_given_that_the_value_was_found() -> None:
    # Of 192 intervals at 95%, below 88% has a probability of 1e-4; the usual intervals, a planted bug, are far below.
    measured = measure(12, 20_000)
    assert measured.intervals == 192
    assert measured.held >= 0.88
    assert measured.usual < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("n", [20_000, 60_000])
def test_intervals_cover_and_false_positives_are_as_many_as_expected(n: int) -> None:
    # Of 960 intervals at 95%, below 93% has a probability of 2e-3; the numbers of false positives differ by chance by
    # less than 1 a run with a probability above 0.999.
    measured = measure(60, n)
    assert measured.held >= 0.93
    assert measured.usual < 0.7
    assert abs(measured.false_positives - measured.expected) < 1.0
    assert measured.pooled < 0.9 * measured.last_group


def test_all_groups_together_tell_a_share_better_than_the_last() -> None:
    rng, truth, error = np.random.default_rng(1), np.array([0.1, 0.2, 0.3]), 0.01
    own = np.arange(3)
    pooled, last = [], []
    for _ in range(400):
        estimates = [truth + error * rng.standard_normal(3) for _ in range(5)]
        estimates[0] = estimates[0] + [0.0, 0.05, 0.3]  # others begin as two of the three do
        pooled.append(pooled_shares([Level(shares, error**2, own) for shares in estimates]) - truth)
        last.append(estimates[-1] - truth)
    gain = np.mean(np.square(last), axis=0) / np.mean(np.square(pooled), axis=0)
    assert (gain > 2.5).all()
    assert (np.abs(np.mean(pooled, axis=0)) < 5 * error / 20).all()  # hardly biased: five standard errors of the last


def test_a_prefix_that_two_values_share_is_not_used() -> None:
    both = Level(np.array([0.9]), 1e-4, np.zeros(1, dtype=np.int64))
    own = Level(np.array([0.3, 0.2]), 1e-4, np.zeros(2, dtype=np.int64))
    assert pooled_shares([both, own]).tolist() == [0.3, 0.2]
    assert pooled_shares([Level(np.array([-0.1]), 1e-4, np.zeros(1, dtype=np.int64))]).tolist() == [0.0]
