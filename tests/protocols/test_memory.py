"""A protocol that is stopped after any step, stored as JSON and made anew goes on as if nothing had happened."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask, Pointer
from hubbub.protocols.driver import Conversation, Protocol, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.steady import steady
from hubbub.protocols.window import METHODS, Frequencies, Means, Statistic, window_stream
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.filters import Kalman, LastPublication, Pid
from tests.shared.answers import answered

STEPS, W = 24, 4
QUESTIONS: dict[str, Statistic] = {"shares": Frequencies(3), "mean": Means(0.0, 2.0)}
Make = Callable[[Memory], Protocol]


def stream(method: str, question: str) -> Make:
    return lambda memory: window_stream(method, QUESTIONS[question], epsilon=2.0, w=W, memory=memory)


def crowd(ask: Ask) -> Sketch:
    """The answer of a crowd whose values change, and which is absent in one step; always the same to the same ask."""
    size = 0 if ask.step == 17 else round(900 * ask.cohort.share)
    often = [2] * round(size * (0.2 if ask.step % 9 < 5 else 0.7))
    values = often + [ask.step % 2] * (size - len(often))
    return answered(ask, values, Random(seed=int(ask.ask_id[:12], 16)))


def contents(message: Ask | Release) -> Any:
    """All that a message says, to the last bit."""
    if isinstance(message, Ask):
        return message.spec()
    estimate = message.estimate
    bits = (estimate.value.tobytes(), estimate.variance.tobytes(), estimate.n, estimate.bias, estimate.noise)
    return message.step, message.published, message.spent, message.n, bits


def run(make: Make, state: dict[str, Any] | None, steps: int) -> tuple[list[list[Any]], list[str]]:
    """The messages of each step, and the state after each step."""
    memory = Memory(state)
    conversation = Conversation(make(memory))
    messages: list[list[Any]] = [[]]
    states: list[str] = []
    while len(states) < steps:
        message = conversation.message  # `listen` would move on
        assert isinstance(message, Ask | Release)
        messages[-1].append(contents(message))
        if isinstance(message, Ask):
            conversation.reply(message.ask_id, crowd(message))
        else:
            states.append(json.dumps(memory.state()))
            conversation.listen()
            messages.append([])
    return messages[:steps], states


def check(make: Make, every: int = 1) -> None:
    uninterrupted, states = run(make, None, STEPS)
    for step in range(1, STEPS, every):
        resumed, resumed_states = run(make, json.loads(states[step - 1]), STEPS - step)
        assert resumed == uninterrupted[step:], f"stopped after step {step}"
        assert resumed_states == states[step:], f"stopped after step {step}, and remembered otherwise"


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_on_after_any_step(method: str, question: str, every: int):
    check(stream(method, question), every)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_steady_question_goes_on(question: str):
    check(lambda memory: steady(QUESTIONS[question], epsilon=1.0, memory=memory))


@pytest.mark.parametrize(
    ("kind", "method"),
    [(LastPublication, "LPA"), (Division, "LBA"), (Pointer, "LPU"), (Kalman, "LB-FAST"), (Pid, "LB-RescueDP")],
)
def test_what_is_forgotten_is_noticed(kind: Any, method: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kind, "remembered", ())
    with pytest.raises(AssertionError, match="stopped after step"):
        check(stream(method, "shares"))


def test_a_state_of_another_protocol_is_refused():
    _, states = run(stream("LPA", "shares"), None, 3)
    state = json.loads(states[-1])
    with pytest.raises(InvalidValue, match="state"):
        next(stream("LPD", "shares")(Memory(state)))
    with pytest.raises(InvalidValue, match="exactly"):
        next(stream("LPA", "shares")(Memory({**state, "last": {"value": 1}})))
    memory = Memory({**state, "more": {}})
    next(stream("LPA", "shares")(memory))
    with pytest.raises(InvalidValue, match="only parts that the protocol has"):
        memory.state()


def test_what_cannot_be_remembered_is_refused():
    memory = Memory()
    memory.keep("thing", Pid())
    with pytest.raises(InvalidValue, match="not taken"):
        memory.keep("thing", Pid())
    other = Memory()
    other.keep("object", object())
    with pytest.raises(InvalidValue, match="a class with `remembered`"):
        other.state()
