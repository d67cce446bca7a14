"""Steady questions: one ask for everyone at every step."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.steady import steady
from hubbub.protocols.window import Frequencies, Means


def answer(ask: Ask, people: int = 400) -> Sketch:
    values = np.arange(people) % 2
    reports = ask.mechanism.randomize(ask.view(values), hb.Random(seed=ask.step))
    return ask.mechanism.accumulate(reports)


@pytest.mark.parametrize("question", [Frequencies(2), Frequencies(40), Means(0.0, 1.0)], ids=["two", "forty", "mean"])
def test_everyone_is_asked_the_same_at_every_step(question: Frequencies | Means) -> None:
    asks: list[Ask] = []

    def listen(ask: Ask) -> Sketch:
        asks.append(ask)
        return answer(ask)

    releases = list(converse(steady(question, epsilon=1.0), listen, steps=5))
    assert [ask.step for ask in asks] == [release.step for release in releases] == [1, 2, 3, 4, 5]
    assert {ask.mechanism.spec_id for ask in asks} == {asks[0].mechanism.spec_id}
    assert all(ask.standing and ask.cohort.share == 1.0 and ask.mechanism.epsilon <= 1.0 for ask in asks)
    assert all(release.published and release.spent == 1.0 and release.n == 400 for release in releases)
    assert len({ask.ask_id for ask in asks}) == 5


def test_a_release_rests_on_its_own_step() -> None:
    for release in converse(steady(Frequencies(2), epsilon=4.0), answer, steps=3):
        alone = answer(Ask(mechanism=Frequencies(2).mechanism(4 * 10**12), step=release.step))
        assert release.estimate.value.tolist() == _estimate(alone).tolist()


def _estimate(sketch: Sketch) -> np.ndarray:
    return Frequencies(2).mechanism(4 * 10**12).estimate(sketch).value


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
