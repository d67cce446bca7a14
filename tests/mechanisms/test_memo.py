"""Two layers: a report from a memo is a report, and no number of them tells more than the permanent answer."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.checks.draws import CountingRandom
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.loloha import supports, toeplitz, toeplitz_functions
from hubbub.mechanisms.memoised import Memoised
from hubbub.mechanisms.stateful import States
from hubbub.random.integers import log_upper
from tests.shared.answers import estimated, outputs_of

RAPPOR = hb.BasicRappor(epsilon=2.0, domain=3)
LOLOHA = hb.Loloha(epsilon=2.0, domain=["a", "b", "c", "d", "e"], buckets=4, report_epsilon=0.8)
BOTH = pytest.mark.parametrize("mechanism", [RAPPOR, LOLOHA], ids=["BasicRappor", "Loloha"])


def outputs(mechanism: Any, public: int) -> list[Reports]:
    functions = {"function": np.array([public], dtype=mechanism.columns[0].dtype)}
    every = outputs_of(mechanism, functions if isinstance(mechanism, hb.Loloha) else None)
    return [every[k : k + 1] for k in range(len(every))]


PUBLIC = {RAPPOR: 0, LOLOHA: 11}  # under function 11 the five values fall in four buckets


def transcripts(mechanism: Any, value: Any, times: int) -> dict[tuple[bytes, ...], Fraction]:
    """What a device may send of one value, with exact probabilities; the contract suite checks that it does."""
    listed = mechanism.transcripts(PUBLIC[mechanism], [value] * times)
    assert listed is not None
    return dict(listed)


@BOTH
def test_the_two_layers_together_are_the_stated_probability(mechanism: Any) -> None:
    for value in mechanism.example_values(9):
        sent = transcripts(mechanism, value, 1)
        for report in outputs(mechanism, PUBLIC[mechanism]):
            assert sent[report.to_bare(),] == mechanism.prob(report, [value])[0, 0]


def longitudinal_ratio(mechanism: Any, times: int) -> Fraction:
    """The worst ratio of the probabilities of some reports of one value and of another."""
    listed = [transcripts(mechanism, value, times) for value in mechanism.example_values(9)]
    chances = ([sent[sequence] for sent in listed] for sequence in listed[0])
    return max(max(each) / min(each) for each in chances)


@BOTH
def test_one_report_tells_its_epsilon_and_many_never_more_than_the_permanent_one(mechanism: Any) -> None:
    ratios = [longitudinal_ratio(mechanism, times) for times in (1, 2, 3)]
    assert ratios[0] == mechanism.ratio()
    assert log_upper(ratios[0]) == mechanism.effective_epsilon
    assert ratios == sorted(ratios)
    assert ratios[1] > ratios[0]  # they do tell more together
    assert all(log_upper(ratio) < mechanism.permanent_epsilon <= mechanism.epsilon for ratio in ratios)


def test_many_reports_come_near_what_the_permanent_answer_tells() -> None:
    loloha = hb.Loloha(epsilon=1.0, domain=2, report_epsilon=0.9, buckets=2)
    other, swap = Fraction(loloha.other, 1 << 64), Fraction(loloha.swap, 1 << 64)
    same, swapped = (1 - swap) ** 30, swap**30
    ratio = ((1 - other) * same + other * swapped) / (other * same + (1 - other) * swapped)
    assert 0.999 * loloha.permanent_epsilon < log_upper(ratio) <= loloha.permanent_epsilon


def test_that_a_value_changed_is_not_hidden() -> None:
    """What is not promised: apart from m memos of epsilon each, the times of change show through the second layer."""
    loloha = hb.Loloha(epsilon=1.0, domain=2, report_epsilon=0.5, buckets=2)
    other, swap = Fraction(loloha.other, 1 << 64), Fraction(loloha.swap, 1 << 64)
    answers = ((0, 1 - other), (1, other))  # of bucket 0; bucket 1 has them the other way round

    def chance(times: int, answer: int, seen: int) -> Fraction:
        return (1 - swap if answer == seen else swap) ** times

    def ratios(times: int) -> Fraction:
        """The ratio of some 0s and then as many 1s, from a device whose value changed and from one that stayed."""
        stayed = sum(p * chance(times, a, 0) * chance(times, a, 1) for a, p in answers)
        changed = sum(p * chance(times, a, 0) * q * chance(times, 1 - b, 1) for a, p in answers for b, q in answers)
        return Fraction(changed) / Fraction(stayed)

    assert log_upper(ratios(1)) < 2 * loloha.permanent_epsilon
    assert log_upper(ratios(200)) > 20 * loloha.permanent_epsilon


@BOTH
def test_what_is_drawn_does_not_depend_on_the_value(mechanism: Any) -> None:
    drawn = set()
    for value in mechanism.example_values(9):
        rng = CountingRandom(seed=1)
        states = mechanism.enroll(1, rng)
        states = States(states.spec_id, {**states.columns, "public": np.array([PUBLIC[mechanism]])})
        drawn_by_step = []
        for step, paid in ((0, [True]), (1, [False])):
            states, _, _ = mechanism.step(states, step, [value], rng, np.array(paid))
            drawn_by_step.append(rng.drawn)
        drawn.add(tuple(drawn_by_step))
    assert len(drawn) == 1


@pytest.mark.parametrize("name", [name for name, kind in MECHANISMS.items() if issubclass(kind, Memoised)])
def test_a_new_memo_costs_the_permanent_epsilon_rounded_up(name: str) -> None:
    for mechanism in MECHANISMS[name].examples():
        assert isinstance(mechanism, Memoised)
        event = mechanism.permanent_event()
        assert event.spent == math.ceil(Fraction(mechanism.permanent_epsilon) * 10**12)
        assert mechanism.event().spent < event.spent <= math.ceil(Fraction(mechanism.epsilon) * 10**12)
        assert (event.mechanism, event.spec_id) == (name, mechanism.spec_id)


# -- LOLOHA: functions under which chance is exact, and epsilons that come out as asked ------------------------------


@pytest.mark.parametrize(("size", "buckets"), [(2, 2), (5, 2), (16, 4), (33, 2), (20, 8), (7, 16)])
def test_any_two_values_meet_under_exactly_one_function_in_g(size: int, buckets: int) -> None:
    functions = toeplitz_functions(size, buckets)
    table = toeplitz(np.arange(functions)[:, None], np.arange(size)[None, :], buckets)
    assert table.min() >= 0
    assert table.max() < buckets
    meet = (table[:, :, None] == table[:, None, :]).sum(axis=0)
    assert (meet[~np.eye(size, dtype=bool)] == functions // buckets).all()


def test_a_list_one_function_short_is_noticed() -> None:
    table = toeplitz(np.arange(15)[:, None], np.arange(16)[None, :], 2)
    meet = (table[:, :, None] == table[:, None, :]).sum(axis=0)[~np.eye(16, dtype=bool)]
    assert len(set(meet.tolist())) > 1


@pytest.mark.parametrize(("size", "buckets"), [(2, 2), (3, 2), (5, 8), (9, 4), (40, 8)])
def test_transforms_give_the_same_totals_as_looking_up(size: int, buckets: int) -> None:
    functions = toeplitz_functions(size, buckets)
    table = hb.Random(seed=1).below(1000, functions * buckets).reshape(functions, buckets)
    fallen = toeplitz(np.arange(functions)[:, None], np.arange(size)[None, :], buckets)
    assert supports(table, size).tolist() == table[np.arange(functions)[:, None], fallen].sum(axis=0).tolist()


def test_a_skewed_population_is_estimated_without_bias() -> None:
    # Hashing by a short list of mixed seeds would be off by about 3% of the heavy value's share, for good. Here the
    # error has a standard deviation of 0.24%: the chance of a failure is below 1e-8 (six of them), fixed by the seed.
    loloha = hb.Loloha(epsilon=4.0, domain=1000, report_epsilon=3.0, buckets=2)
    values = np.where(np.arange(400_000) % 10 < 7, 3, 900)
    estimate = estimated(loloha, values, hb.Random(seed=2))
    truth = np.zeros(1000)
    truth[3], truth[900] = 0.7, 0.3
    assert float(estimate.stderr.max()) < 0.0024
    assert np.abs(estimate.value - truth).max() < 6 * 0.0024
    inside = np.abs(estimate.value - truth) < 1.96 * estimate.stderr
    assert 0.92 < inside.mean() < 0.98


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("buckets", [0, 2, 8])
def test_both_epsilons_come_out_just_below_what_was_asked(epsilon: float, share: float, buckets: int) -> None:
    loloha = hb.Loloha(epsilon=epsilon, domain=64, report_epsilon=share * epsilon, buckets=buckets)
    assert 0 <= epsilon - loloha.permanent_epsilon < 1e-9
    assert 0 <= share * epsilon - loloha.effective_epsilon < 1e-9


def test_the_variance_is_that_of_local_hashing_at_one_reports_epsilon() -> None:
    for buckets in (2, 4):
        olh = hb.OLH(epsilon=1.0, domain=64, buckets=buckets)
        for permanent in (1.5, 6.0):
            loloha = hb.Loloha(epsilon=permanent, domain=64, report_epsilon=1.0, buckets=buckets)
            assert loloha.variance(1000) == pytest.approx(olh.variance(1000), rel=1e-9)


@pytest.mark.parametrize(("report_epsilon", "buckets"), [(0.2, 2), (1.0, 4), (2.0, 8)])
def test_the_number_of_buckets_is_the_best_power_of_two(report_epsilon: float, buckets: int) -> None:
    chosen = hb.Loloha(epsilon=4.0, domain=64, report_epsilon=report_epsilon)
    assert chosen.buckets == buckets == chosen.most_memos
    for other in (2, 4, 8, 16):
        rival = hb.Loloha(epsilon=4.0, domain=64, report_epsilon=report_epsilon, buckets=other)
        assert chosen.variance(1) <= rival.variance(1) * (1 + 1e-9)


def test_a_device_keeps_its_function_and_needs_at_most_g_memos() -> None:
    loloha, rng = hb.Loloha(epsilon=2.0, domain=500), hb.Random(seed=1)
    states = loloha.enroll(1, rng)
    public = states["public"].tolist()
    for value in range(500):
        states, _, _ = loloha.step(states, value, [value], rng, np.array([True]))
    assert states["public"].tolist() == public
    assert states["keys"].shape[1] <= loloha.most_memos == loloha.buckets
    functions = loloha.enroll(200, rng)["public"]
    assert 0 <= functions.min() <= functions.max() < loloha.functions
    assert len(set(functions.tolist())) > 150


WRONG: list[dict[str, Any]] = [{"report_epsilon": share} for share in (2.0, 3.0, -1.0, math.nan, "1", True)]
WRONG += [{"buckets": buckets} for buckets in (3, 1, 512)]
WRONG += [{"domain": 1 << 17}, {"domain": 1 << 13, "buckets": 64}, {"swap": 1}, {"other": 1}, {"other": 1 << 63}]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_what_is_not_allowed_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        hb.Loloha(**{"epsilon": 2.0, "domain": 8, **options})


BLOOM = hb.BloomRappor(epsilon=2.0, domain=["a", "b", "c", "d", "e"], bits=4, cohorts=2)


def test_both_layers_of_a_bloom_filter_are_the_stated_probability_and_tell_no_more_than_the_permanent_one() -> None:
    ratios = []
    for times in (1, 2):
        listed = [BLOOM.transcripts(1, [value] * times) for value in BLOOM.example_values(9)]
        assert all(listed)
        chances = [[sent[sequence] for sent in listed if sent] for sequence in listed[0] or ()]
        ratios.append(max(max(each) / min(each) for each in chances))
    assert ratios[0] == BLOOM.ratio()
    assert log_upper(ratios[0]) == BLOOM.effective_epsilon
    assert BLOOM.ratio() < ratios[1] < BLOOM.permanent_rates[0] ** 4 / BLOOM.permanent_rates[1] ** 4
    every = outputs_of(BLOOM, {"cohort": np.array([1], dtype=BLOOM.columns[0].dtype)})
    for value in BLOOM.example_values(9):
        sent = BLOOM.transcripts(1, [value])
        assert sent is not None
        for row in range(len(every)):
            report = every[row : row + 1]
            assert sent[report.to_bare(),] == BLOOM.prob(report, [value])[0, 0]


def test_texts_of_one_filter_share_a_memo_and_others_do_not() -> None:
    mechanism = hb.BloomRappor(epsilon=2.0, bits=5, hashes=3, cohorts=2)
    texts = [f"text {number}" for number in range(60)]
    codes = mechanism.encode(texts)
    for cohort in range(2):
        cohorts = np.full(60, cohort)
        filters = [frozenset(row[row >= 0].tolist()) for row in mechanism.filters(cohorts, codes)]
        keys = mechanism.memo_keys(texts, cohorts).tolist()
        assert len(set(filters)) == len(set(keys)) == len(set(zip(filters, keys, strict=True)))
        assert [frozenset(row[row >= 0].tolist()) for row in mechanism._places(np.array(keys))] == filters


def test_a_filter_whose_places_cannot_be_numbered_is_refused() -> None:
    assert hb.BloomRappor(epsilon=2.0, bits=128, hashes=7).most_memos > 1 << 30
    with pytest.raises(InvalidValue, match="hashes: got 8; allowed: at most 7, with a filter of 128 bits"):
        hb.BloomRappor(epsilon=2.0, bits=128, hashes=8)


@pytest.mark.parametrize(("report", "hashes"), [(0.2, 1), (1.0, 2), (3.5, 2), (3.9, 5)])
def test_one_report_spends_what_was_asked_for_and_no_more(report: float, hashes: int) -> None:
    mechanism = hb.BloomRappor.of_report(report, epsilon=4.0, hashes=hashes)
    assert 0.999 * report < mechanism.effective_epsilon <= report
    assert 0.999 * 4.0 < mechanism.permanent_epsilon <= 4.0


def test_devices_that_keep_their_filters_are_decoded_step_by_step() -> None:
    mechanism = hb.BloomRappor.of_report(4.0, epsilon=8.0, bits=32, cohorts=3)
    rng, n = hb.Random(seed=5), 12_000
    values = ["yes"] * (n // 2) + ["no"] * (n // 3) + ["perhaps"] * (n - n // 2 - n // 3)
    states = mechanism.enroll(n, rng)
    for step in range(2):
        price = mechanism.price(states, step, values)
        assert (price > 0).all() == (step == 0)
        states, reports, speaks = mechanism.step(states, step, values, rng, np.ones(n, dtype=bool))
        assert speaks.all()
        estimate = mechanism.estimate(mechanism.accumulate(reports), candidates=["yes", "no", "maybe"])
        low, high = estimate.interval(0.9999)  # one in 10,000, three times in two steps
        assert ((low <= [1 / 2, 1 / 3, 0]) & (high >= [1 / 2, 1 / 3, 0])).all()
        assert estimate.bias == "heuristic"


def test_more_candidates_than_a_half_of_few_cohorts_has_equations_are_decoded() -> None:
    rappor = hb.Rappor(epsilon=6.0, bits=4, cohorts=3, domain=["x", "y", "z", "w"])
    for seed in range(4):
        reports = rappor.randomize(["x", "y", "z", "w"] * 1000, hb.Random(seed=seed))
        assert np.isfinite(rappor.estimate(rappor.accumulate(reports)).value).all()
