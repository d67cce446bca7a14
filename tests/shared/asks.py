"""Asks, as tests use them: of a mechanism that makes reports afresh, and the first one of a protocol."""

from typing import Any

from hubbub.core.reports import Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Protocol
from hubbub.random.source import Random


def randomizer(ask: Ask) -> Mechanism:
    """The mechanism of an ask, whose devices remember nothing."""
    assert isinstance(ask.mechanism, Mechanism)
    return ask.mechanism


def answered(ask: Ask, values: Any, rng: Random) -> Sketch:
    """What the reports of people with these values come to, through the view of the ask."""
    mechanism = randomizer(ask)
    return mechanism.accumulate(mechanism.randomize(ask.view(values), rng))


def first_ask(protocol: Protocol) -> Ask:
    """What a protocol asks first."""
    ask = next(protocol)
    assert isinstance(ask, Ask)
    return ask
