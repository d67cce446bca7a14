"""Two layers: a report from a memo is a report, and no number of them tells more than the permanent answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.checks.failure import FALSE_ALARM, fit
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Reports
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.memoised import Memoised
from hubbub.mechanisms.stateful import States
from hubbub.random.integers import log_upper, pack

RAPPOR = hb.BasicRappor(epsilon=2.0, domain=3)
LOLOHA = hb.Loloha(epsilon=2.0, domain=["a", "b", "c", "d", "e"], buckets=4, report_epsilon=0.8)
BOTH = pytest.mark.parametrize("mechanism", [RAPPOR, LOLOHA], ids=["BasicRappor", "Loloha"])


def permanent_answers(mechanism: Any, value: Any, public: int) -> list[tuple[bytes, Fraction]]:
    """Every permanent answer with its probability, from the stored integers."""
    key = int(mechanism.memo_keys([value], np.array([public]))[0])
    if isinstance(mechanism, hb.Loloha):
        other = Fraction(mechanism.other, 1 << 64)
        truth = 1 - (mechanism.buckets - 1) * other
        return [(bytes([k]), truth if k == key else other) for k in range(mechanism.buckets)]
    one, zero = (Fraction(t, 1 << mechanism.width) for t in (mechanism.one, mechanism.zero))
    answers = []
    for bits in product((0, 1), repeat=mechanism.size):
        chances = [(one if k == key else zero) for k in range(mechanism.size)]
        chance = math.prod((c if bit else 1 - c for c, bit in zip(chances, bits, strict=True)), start=Fraction(1))
        answers.append((pack(np.array([bits], dtype=bool)).tobytes(), chance))
    return answers


def report_chance(mechanism: Any, answer: bytes, report: Reports) -> Fraction:
    """The probability of a report given the permanent answer, from the stored integers."""
    if isinstance(mechanism, hb.Loloha):
        swap = Fraction(mechanism.swap, 1 << 64)
        same = int(report.private["bucket"][0]) == answer[0]
        return 1 - (mechanism.buckets - 1) * swap if same else swap
    keep, lift = (Fraction(t, 1 << mechanism.width) for t in (mechanism.keep, mechanism.lift))
    chance = Fraction(1)
    for k in range(mechanism.size):
        of_one = keep if answer[k // 8] >> k % 8 & 1 else lift
        chance *= of_one if report.private["bits"][0, k // 8] >> k % 8 & 1 else 1 - of_one
    return chance


def outputs(mechanism: Any, public: int) -> list[Reports]:
    if isinstance(mechanism, hb.Loloha):
        every = mechanism.outputs({"function": np.array([public], dtype=mechanism.columns[0].dtype)})
    else:
        every = mechanism.outputs()
    return [every[k : k + 1] for k in range(len(every))]


PUBLIC = {RAPPOR: 0, LOLOHA: 11}  # under function 11 the five values fall in four buckets
YES = np.array([True])


def remembered(mechanism: Any, value: Any, rng: hb.Random, public: int | None = None) -> tuple[States, Reports]:
    """The state of a device with one memo, and the first report from it."""
    states = mechanism.enroll(1, rng)
    if public is not None:
        states = States(states.spec_id, {**states.columns, "public": np.array([public])})
    states, reports, speaks = mechanism.step(states, 0, [value], rng, YES)
    assert speaks.all()
    return states, reports


@BOTH
def test_the_two_layers_together_are_the_stated_probability(mechanism: Any) -> None:
    public = PUBLIC[mechanism]
    for value in mechanism.example_values(9):
        for report in outputs(mechanism, public):
            total = sum(
                chance * report_chance(mechanism, answer, report)
                for answer, chance in permanent_answers(mechanism, value, public)
            )
            assert total == mechanism.prob(report, [value])[0, 0]


def longitudinal_ratio(mechanism: Any, times: int) -> Fraction:
    """The worst ratio of the probabilities of some reports of one value and of another; their order is no matter."""
    public = PUBLIC[mechanism]
    values = mechanism.example_values(9)
    answers = {repr(value): permanent_answers(mechanism, value, public) for value in values}
    reports = outputs(mechanism, public)
    chance_of = {
        (answer, k): report_chance(mechanism, answer, report)
        for answer, _ in answers[repr(values[0])]
        for k, report in enumerate(reports)
    }
    worst = Fraction(0)
    for sequence in combinations_with_replacement(range(len(reports)), times):
        chances = [
            sum(chance * math.prod(chance_of[answer, k] for k in sequence) for answer, chance in answers[repr(value)])
            for value in values
        ]
        worst = max(worst, max(chances) / min(chances))
    return worst


@BOTH
def test_one_report_tells_its_epsilon_and_many_never_more_than_the_permanent_one(mechanism: Any) -> None:
    ratios = [longitudinal_ratio(mechanism, times) for times in (1, 2, 3, 4)]
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


def fits(mechanism: Any, draw: Callable[[Any, hb.Random], Reports], seed: int = 1, n: int = 3000) -> float:
    """How well reports fall as `prob` says, over all outputs and, where there are any, all functions."""
    rng = hb.Random(seed=seed)
    value = mechanism.example_values(9)[1]
    reports = Reports.concat([draw(value, rng) for _ in range(n)])
    if isinstance(mechanism, hb.Loloha):
        rows = np.arange(mechanism.functions)
        every = Reports.concat(
            [mechanism.outputs({"function": rows[k : k + 1].astype(mechanism.columns[0].dtype)}) for k in rows]
        )
        index = reports.public["function"].astype(np.int64) * mechanism.buckets + reports.private["bucket"]
        scale = n / mechanism.functions
    else:
        every, index, scale = mechanism.outputs(), reports.private["bits"][:, 0], n
    expected = np.exp(mechanism.log_prob(every, [value])[:, 0]) * scale
    return fit(np.bincount(index, minlength=len(every)), expected)


@BOTH
def test_a_report_from_a_fresh_memo_falls_as_randomize_does(mechanism: Any) -> None:
    # The failure probability is FALSE_ALARM = 1e-6, and fixed by the seed.
    assert fits(mechanism, lambda value, rng: remembered(mechanism, value, rng)[1]) > FALSE_ALARM


@BOTH
def test_a_second_layer_that_is_left_out_is_noticed(mechanism: Any) -> None:
    def bare(value: Any, rng: hb.Random) -> Reports:
        states, _ = remembered(mechanism, value, rng)
        answer = states["answers"][0]
        if isinstance(mechanism, hb.Loloha):
            public = {"function": states["public"].astype(np.uint8)}
            return Reports(mechanism.spec_id, public=public, private={"bucket": answer[0]})
        return Reports(mechanism.spec_id, private={"bits": answer})

    assert fits(mechanism, bare) < FALSE_ALARM


@BOTH
def test_reports_from_one_memo_differ_and_memos_of_one_value_differ(mechanism: Any) -> None:
    rng = hb.Random(seed=4)
    value, public = mechanism.example_values(9)[0], PUBLIC[mechanism]
    states, _ = remembered(mechanism, value, rng, public)
    again = States.from_bytes(mechanism, states.to_bytes())
    assert again.to_bytes() == states.to_bytes()
    reports = {mechanism.step(again, 1, [value], rng, ~YES)[1].to_bytes() for _ in range(60)}
    assert 1 < len(reports) <= len(outputs(mechanism, public))
    answers = [remembered(mechanism, value, rng, public)[0]["answers"].tobytes() for _ in range(60)]
    assert len(set(answers)) > 1


@BOTH
def test_what_is_drawn_does_not_depend_on_the_value(mechanism: Any) -> None:
    from hubbub.checks.draws import CountingRandom

    drawn = set()
    for value in mechanism.example_values(9):
        rng = CountingRandom(seed=1)
        states, _ = remembered(mechanism, value, rng, PUBLIC[mechanism])
        drawn_first = rng.drawn
        mechanism.step(states, 1, [value], rng, ~YES)
        drawn.add((drawn_first, rng.drawn))
    assert len(drawn) == 1


@BOTH
def test_states_of_another_mechanism_or_shape_are_refused(mechanism: Any) -> None:
    rng = hb.Random(seed=1)
    value = mechanism.example_values(9)[0]
    states, _ = remembered(mechanism, value, rng)
    with pytest.raises(SpecMismatch):
        mechanism.step(States("f" * 32, states.columns), 1, [value], rng, YES)
    for change in (
        {"answers": np.zeros((1, 1, 9), np.uint8)},
        {"answers": np.full_like(states["answers"], 255)},
        {"keys": np.array([[99]])},
        {"keys": np.array([[-1]])},
        {"current": np.array([2])},
        {"public": np.array([1 << 40])},
    ):
        with pytest.raises(DecodeError, match="state"):
            States.from_bytes(mechanism, States(states.spec_id, {**states.columns, **change}).to_bytes())
    with pytest.raises(InvalidValue):
        mechanism.step(states, 1, ["no such value"], rng, YES)


@BOTH
def test_a_device_that_cannot_pay_goes_on_from_its_last_memo_or_says_nothing(mechanism: Any) -> None:
    rng = hb.Random(seed=3)
    first, second = mechanism.example_values(9)[:2]
    fresh = mechanism.enroll(1, rng)
    states, reports, speaks = mechanism.step(fresh, 0, [first], rng, ~YES)
    assert not len(reports)
    assert not speaks.any()
    assert states.to_bytes() == fresh.to_bytes()
    states, _ = remembered(mechanism, first, rng, PUBLIC[mechanism])
    after, reports, speaks = mechanism.step(states, 1, [second], rng, ~YES)
    assert len(reports) == 1
    assert speaks.all()
    assert after.to_bytes() == states.to_bytes()


@pytest.mark.parametrize("name", [name for name, kind in MECHANISMS.items() if issubclass(kind, Memoised)])
def test_a_new_memo_costs_the_permanent_epsilon_rounded_up(name: str) -> None:
    for mechanism in MECHANISMS[name].examples():
        assert isinstance(mechanism, Memoised)
        event = mechanism.permanent_event()
        assert event.spent == math.ceil(Fraction(mechanism.permanent_epsilon) * 10**12)
        assert mechanism.event().spent < event.spent <= math.ceil(Fraction(mechanism.epsilon) * 10**12)
        assert (event.mechanism, event.spec_id) == (name, mechanism.spec_id)
