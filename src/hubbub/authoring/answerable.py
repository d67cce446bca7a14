"""Whether an ask has an answer for every value that a device can record: tried on the values of the fields."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from hubbub.collection.document import Collection
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random

MOST_VALUES = 1 << 10
_HUGE = 1e300


def unanswered(collection: Collection, terms: Terms, ask: Ask) -> str | None:
    """A recorded value to which the ask has no answer; None if all that were tried have one.

    All values of a field are tried, or 1,024 of them from the first to the last, and "nothing was recorded".
    """
    values = list(recorded_values(collection, terms))
    if answers(ask, values):
        return None
    return next((reprlib.repr(value) for value in values if not answers(ask, [value])), "several values")


def answers(ask: Ask, values: list[Any]) -> bool:
    """Whether devices that recorded these values can answer the ask."""
    try:
        answer(ask, values, Random(seed="hubbub check"))
    except Exception:  # whatever it is, a device would fall silent
        return False
    return True


def answer(ask: Ask, values: list[Any], rng: Random) -> Reports:
    """The reports of devices that recorded these values; devices that remember have just enrolled."""
    mechanism, seen = ask.mechanism, ask.view.look(values, rng)
    if isinstance(mechanism, Stateful):
        states = mechanism.enroll(len(values), rng)
        return mechanism.step(states, ask.step, seen, rng, np.ones(len(values), dtype=bool))[1]
    assert isinstance(mechanism, Mechanism)
    return mechanism.randomize(seen, rng)


def recorded_values(collection: Collection, terms: Terms) -> Iterator[Any]:
    """What devices may have frozen: a code of the one field, or codes by field: none, one of them, or all."""
    several = len(terms.fields) > 1
    missing = {field: collection.missing(field, several=several) for field in terms.fields}
    yield missing if several else missing[terms.fields[0]]
    codes = {field: codes_of(collection.fields[field]) for field in terms.fields}
    for field in terms.fields:
        yield from ({**missing, field: code} if several else code for code in codes[field])
    if several:
        for place in range(max(map(len, codes.values()))):
            yield {field: codes[field][place % len(codes[field])] for field in terms.fields}


def codes_of(domain: Domain) -> list[Any]:
    """The codes of all values of a field, or of 1,024 from the first to the last, and of "nothing was recorded"."""
    if isinstance(domain.missing(), int):
        return domain.symbols().examples(MOST_VALUES)
    codes: list[Any] = [domain.missing(), *(domain.code(value) for value in domain.examples(MOST_VALUES))]
    return [*codes, -_HUGE, _HUGE] if isinstance(codes[0], float) else codes  # numbers are recorded as they are
