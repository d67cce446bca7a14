"""A conversation takes the sketch of the open ask, and nothing else; a steady question asks everyone at every step."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Arc, Ask
from hubbub.protocols.driver import (
    Conversation,
    Count,
    CountResult,
    OutOfOrder,
    Protocol,
    Release,
    ask_all,
    ask_count,
    ask_once,
    converse,
)
from hubbub.protocols.steady import steady
from hubbub.protocols.window import METHODS, Frequencies, Means, window_stream
from tests.shared.answers import answered

RNG = hb.Random(seed=5)
GRR = hb.GRR(epsilon=1.0, domain=2)
KINDS = {"two": Frequencies(2), "forty": Frequencies(40), "mean": Means(0.0, 1.0)}
QUESTIONS = pytest.mark.parametrize("question", KINDS.values(), ids=KINDS)


def answer(ask: Ask) -> Sketch:
    return answered(ask, np.repeat([0, 1], 100), RNG)


def test_a_sketch_of_another_ask_changes_nothing() -> None:
    conversation = Conversation(window_stream("LBU", Frequencies(2), epsilon=1.0, w=3))
    ask = conversation.listen()
    assert isinstance(ask, Ask)
    with pytest.raises(OutOfOrder, match="open ask"):
        conversation.reply("0" * 32, answer(ask))
    with pytest.raises(SpecMismatch):
        conversation.reply(ask.ask_id, hb.GRR(epsilon=1.0, domain=3).empty())
    with pytest.raises(SpecMismatch):
        conversation.reply(ask.ask_id, Sketch(ask.mechanism.spec_id, 1, np.zeros(5, dtype=np.int64)))
    assert conversation.listen() is ask
    conversation.reply(ask.ask_id, answer(ask))
    with pytest.raises(OutOfOrder, match="no ask is open"):
        conversation.reply(ask.ask_id, answer(ask))
    release = conversation.listen()
    assert isinstance(release, Release)
    assert release.step == 1
    following = conversation.listen()
    assert isinstance(following, Ask)
    assert following.step == 2
    with pytest.raises(OutOfOrder, match="open ask"):  # yesterday's sketch, late
        conversation.reply(ask.ask_id, answer(ask))


@pytest.mark.parametrize("steps", [[1, 3], [1, 1], [2, 1]])
def test_a_protocol_that_skips_or_repeats_a_step_is_stopped(steps: list[int]) -> None:
    def broken() -> Protocol:
        for step in steps:
            yield _release(step)

    conversation = Conversation(broken())
    with pytest.raises(OutOfOrder, match="step"):
        conversation.listen()


@pytest.mark.parametrize("method", METHODS)
@QUESTIONS
def test_every_method_converses_and_survives_silence(method: str, question: Frequencies | Means) -> None:
    def sometimes(ask: Ask) -> Sketch:
        return ask.mechanism.empty() if ask.step % 3 == 0 else answer(ask)

    releases = list(converse(window_stream(method, question, epsilon=2.0, w=4), sometimes, steps=20))
    assert [release.step for release in releases] == list(range(1, 21))
    assert all(len(release.estimate) == question.size for release in releases)
    assert all(0 <= release.spent <= 1 for release in releases)
    assert any(release.published for release in releases)
    assert not any(release.published for release in releases if release.step % 3 == 0)
    assert all((release.estimate.variance >= 0).all() for release in releases)


WRONG: list[tuple[str, Any]] = [("w", 0), ("w", 2.0), ("w", True), ("method", "LXX")]
WRONG += [("epsilon", epsilon) for epsilon in (0.0, math.nan, -1.0)]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_bad_settings_are_refused_before_anything_is_asked(field: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=field):
        window_stream(**{"method": "LPA", "question": Frequencies(2), "epsilon": 1.0, "w": 5, field: value})


def test_converse_needs_a_step() -> None:
    with pytest.raises(InvalidValue, match="steps"):
        next(converse(window_stream("LBU", Frequencies(2), epsilon=1.0, w=2), answer, steps=0))


def _release(step: int, **changes: Any) -> Release:
    estimates = {"shares": Estimate(np.array([0.5]), np.array([0.1]), 1), "all": Estimate(np.zeros(7), np.ones(7), 9)}
    return Release(step=step, **{"estimates": estimates, "published": True, "spent": 0.0, "n": 1.0, **changes})


def test_a_protocol_that_returns_ends_the_conversation() -> None:
    def finite() -> Protocol:
        for step in (1, 2, 3):
            yield Ask(mechanism=GRR, step=step)
            yield _release(step)

    assert [release.step for release in converse(finite(), answer, steps=2)] == [1, 2]
    assert [release.step for release in converse(finite(), answer)] == [1, 2, 3]
    assert [release.step for release in converse(finite(), answer, steps=9)] == [1, 2, 3]
    conversation = Conversation(finite())
    while conversation.message is not None:
        if conversation.asks:
            conversation.reply_all([answer(ask) for ask in conversation.asks])
        else:
            conversation.listen()
    assert conversation.listen() is None
    with pytest.raises(OutOfOrder, match="ended"):
        conversation.reply("0" * 32, GRR.empty())
    assert conversation.message is None


def test_parts_counts_and_releases_of_many_estimates() -> None:
    reports: dict[str, hb.Reports] = {}

    def keeping(ask: Ask) -> Sketch:
        reports[ask.ask_id] = GRR.randomize(ask.view(np.array([0, 1, 1] * 100)), RNG)
        return GRR.accumulate(reports[ask.ask_id])

    def counting(count: Count) -> CountResult:
        return count.among(lambda: [reports[count.ask.ask_id]])

    def study() -> Protocol:
        halves = [Ask(mechanism=GRR, step=0, cohort=Arc(at << 31, 1 << 31), kept=True) for at in (0, 1)]
        first, second = yield from ask_all(halves)
        result = yield from ask_count(Count(halves[1], (1,)))
        assert (first.n, result.n, result.support.tolist()) == (300, 300, [second.counts[1]])
        yield _release(0)
        sketch = yield from ask_once(Ask(mechanism=GRR, step=0))
        yield _release(0, estimates={"rest": GRR.estimate(sketch)})

    first, second = converse(study(), keeping, count=counting, rounds=2, parts=2)
    assert (len(first.estimate), len(first.estimates["all"]), second.main) == (1, 7, "rest")
    with pytest.raises(OutOfOrder, match="round 2, and 1 are signed"):
        list(converse(study(), keeping, count=counting, rounds=1))
    with pytest.raises(OutOfOrder, match="2 parts"):
        list(converse(study(), keeping, count=counting, parts=1))
    with pytest.raises(InvalidValue, match="count"):
        list(converse(study(), keeping))


def test_what_a_protocol_may_not_say() -> None:
    half, more = Arc(0, 1 << 31), Arc((1 << 31) - 1, 10)

    def meeting() -> Protocol:
        yield [Ask(mechanism=GRR, step=1, cohort=half), Ask(mechanism=GRR, step=1, cohort=more)]

    def nothing() -> Protocol:
        yield []

    with pytest.raises(OutOfOrder, match="arcs meet"):
        Conversation(meeting())
    with pytest.raises(OutOfOrder, match="0 parts"):
        Conversation(nothing())
    with pytest.raises(InvalidValue, match="kept"):
        Count(Ask(mechanism=GRR, step=1), (1,))
    with pytest.raises(InvalidValue, match="differ"):
        Count(Ask(mechanism=GRR, step=1, kept=True), (1, 1))
    with pytest.raises(InvalidValue, match="frequency oracle"):
        Count(Ask(mechanism=hb.Hybrid(epsilon=1.0, low=0.0, high=1.0), step=1, kept=True), (1,))
    with pytest.raises(InvalidValue, match="estimates"):
        _release(1, estimates={})
    assert len(_release(1, estimates={}, stopped="nobody came").estimate) == 0


def test_an_ask_that_keeps_reports_says_so_and_others_are_as_they_were() -> None:
    ask = Ask(mechanism=GRR, step=3)
    assert "kept" not in ask.spec()
    keeping = replace(ask, kept=True)
    assert Ask.from_spec(keeping.spec()) == keeping
    assert keeping.ask_id != ask.ask_id
    with pytest.raises(InvalidValue, match="kept"):
        Ask.from_spec({**ask.spec(), "kept": False})


@pytest.mark.parametrize("message", [None, "hello", 5, (), ["hello"], [None]], ids=repr)
def test_what_is_no_message_is_refused(message: Any) -> None:
    def protocol() -> Any:
        yield message

    with pytest.raises(OutOfOrder, match="not an ask, a count or a release"):
        Conversation(protocol())


# -- steady questions ------------------------------------------------------------------------------------------------


@QUESTIONS
def test_everyone_is_asked_the_same_at_every_step(question: Frequencies | Means) -> None:
    asks: list[Ask] = []

    def listen(ask: Ask) -> Sketch:
        asks.append(ask)
        return answer(ask)

    releases = list(converse(steady(question, epsilon=1.0), listen, steps=5))
    assert [ask.step for ask in asks] == [release.step for release in releases] == [1, 2, 3, 4, 5]
    assert {ask.mechanism.spec_id for ask in asks} == {asks[0].mechanism.spec_id}
    assert all(ask.standing and ask.cohort.share == 1.0 and ask.mechanism.epsilon <= 1.0 for ask in asks)
    assert all(release.published and release.spent == 1.0 and release.n == 200 for release in releases)
    assert len({ask.ask_id for ask in asks}) == 5


def test_a_release_rests_on_its_own_step() -> None:
    def again(ask: Ask) -> Sketch:
        return answered(ask, np.repeat([0, 1], 100), hb.Random(seed=ask.step))

    oracle = Frequencies(2).mechanism(4 * 10**12)
    for release in converse(steady(Frequencies(2), epsilon=4.0), again, steps=3):
        alone = oracle.estimate(again(Ask(mechanism=oracle, step=release.step)))
        assert release.estimate.value.tolist() == alone.value.tolist()


@pytest.mark.parametrize("question", [Frequencies(3), Means(0.0, 1.0)], ids=["shares", "mean"])
def test_silence_is_released_as_unknown(question: Frequencies | Means) -> None:
    def sometimes(ask: Ask) -> Sketch:
        return ask.mechanism.empty() if ask.step == 2 else answer(ask)

    first, silent, third = converse(steady(question, epsilon=1.0), sometimes, steps=3)
    assert (first.published, silent.published, third.published) == (True, False, True)
    assert silent.n == silent.estimate.n == 0
    assert np.isinf(silent.estimate.variance).all()
    assert silent.estimate.kind == first.estimate.kind
    assert len(silent.estimate) == question.size


def test_an_epsilon_that_is_none_is_refused() -> None:
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidValue, match="epsilon"):
            next(steady(Frequencies(2), epsilon=epsilon))
