"""A conversation takes the sketch of the open ask, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.estimate import Estimate
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask, Release
from hubbub.protocols.driver import Conversation, OutOfOrder, Protocol, converse
from hubbub.protocols.window import METHODS, Frequencies, Means, window_stream

RNG = hb.Random(seed=5)


def answer(ask: Ask, people: int = 200) -> Sketch:
    values = [0] * (people // 2) + [1] * (people // 2)
    return ask.mechanism.accumulate(ask.mechanism.randomize(ask.view(np.array(values)), RNG))


def test_a_sketch_of_another_ask_changes_nothing() -> None:
    talk = Conversation(window_stream("LBU", Frequencies(2), epsilon=1.0, w=3))
    ask = talk.listen()
    assert isinstance(ask, Ask)
    with pytest.raises(OutOfOrder, match="open ask"):
        talk.reply("0" * 32, answer(ask))
    with pytest.raises(SpecMismatch):
        talk.reply(ask.ask_id, hb.GRR(epsilon=1.0, domain=3).empty())
    with pytest.raises(SpecMismatch):
        talk.reply(ask.ask_id, Sketch(ask.mechanism.spec_id, 1, np.zeros(5, dtype=np.int64)))
    assert talk.listen() is ask
    talk.reply(ask.ask_id, answer(ask))
    with pytest.raises(OutOfOrder, match="no ask is open"):
        talk.reply(ask.ask_id, answer(ask))
    release = talk.listen()
    assert isinstance(release, Release)
    assert release.step == 1
    following = talk.listen()
    assert following.step == 2
    with pytest.raises(OutOfOrder, match="open ask"):  # yesterday's sketch, late
        talk.reply(ask.ask_id, answer(ask))


@pytest.mark.parametrize("steps", [[1, 3], [1, 1], [2, 1]])
def test_a_protocol_that_skips_or_repeats_a_step_is_stopped(steps: list[int]) -> None:
    def broken() -> Protocol:
        for step in steps:
            yield Release(step=step, estimate=Estimate(np.zeros(1), np.zeros(1), 1), published=True, spent=0.0, n=1.0)

    talk = Conversation(broken())
    with pytest.raises(OutOfOrder, match="step"):
        talk.listen()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("question", [Frequencies(2), Frequencies(40), Means(0.0, 1.0)], ids=["two", "forty", "mean"])
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


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"w": 0}, "w"),
        ({"w": 2.0}, "w"),
        ({"w": True}, "w"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"method": "LXX"}, "method"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_asked(change: dict[str, object], field: str) -> None:
    settings: dict[str, object] = {"method": "LPA", "question": Frequencies(2), "epsilon": 1.0, "w": 5, **change}
    with pytest.raises(InvalidValue, match=field):
        window_stream(**settings)  # type: ignore[arg-type]


def test_converse_needs_a_step() -> None:
    with pytest.raises(InvalidValue, match="steps"):
        next(converse(window_stream("LBU", Frequencies(2), epsilon=1.0, w=2), answer, steps=0))
