"""Whether devices can answer: whatever is recorded, tried on the values of the fields; and whether browsers can."""

import reprlib
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from hubbub.collection.admits import admits
from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain
from hubbub.core.errors import HubbubError
from hubbub.core.reports import Reports
from hubbub.mechanisms import browsers_lack
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation
from hubbub.questions.collection import Collection
from hubbub.questions.words import listed
from hubbub.random.source import Random

MOST_VALUES = 1 << 10
_HUGE = 1e300


def every_value_has_an_answer(collection: Collection) -> Iterator[Finding]:
    """The first asks of each question are admitted, and answered whatever is recorded: silence would tell the value."""
    for name, terms in collection.terms.items():
        try:
            asks = first_asks(collection, name)
        except HubbubError:
            continue  # an error already
        for ask in asks:
            reason = admits(terms, ask, fields=collection.fields)
            if reason is not None:
                text = f"devices refuse what it asks ({reason}): its terms, its view and its mechanism do not fit"
                yield Finding("error", f"questions.{name}", text)
                break
            value = unanswered(collection, terms, ask)
            if value is not None:
                text = f"{type(ask.mechanism).__name__} does not take what its view gives of {value}"
                yield Finding("error", f"questions.{name}", f"{text}: a device that holds it would fall silent")
                break


def browsers_answer(collection: Collection) -> Iterator[Finding]:
    """Browsers have the mechanisms of the first asks: without, they send nothing."""
    for name in collection.questions:
        with suppress(HubbubError):  # an error already
            lacking = {lack for ask in first_asks(collection, name) for lack in browsers_lack(ask.mechanism)}
            if lacking:
                text = (
                    f"browsers do not have {listed(sorted(lacking))}, and answer nothing: only the Python client does"
                )
                yield Finding("warning", f"questions.{name}", text)


def first_asks(collection: Collection, name: str) -> Sequence[Ask]:
    """The first asks of a question, as the collector begins."""
    terms = collection.terms[name]
    return Conversation(collection.protocol(name), rounds=terms.rounds, parts=terms.parts).asks


def unanswered(collection: Collection, terms: Terms, ask: Ask) -> str | None:
    """A recorded value to which the ask has no answer; None if all that were tried have one.

    All values of a field are tried, or 1,024 of them from the first to the last, and "nothing was recorded".
    """
    values = list(recorded_values(collection, terms))
    if answers(ask, values):
        return None
    return next((reprlib.repr(value) for value in values if not answers(ask, [value])), "several values")


def answers(ask: Ask, values: list[object]) -> bool:
    """Whether devices that recorded these values can answer the ask."""
    try:
        answer(ask, values, Random(seed="hubbub check"))
    except Exception:  # whatever it is, a device would fall silent
        return False
    return True


def answer(ask: Ask, values: list[object], rng: Random) -> Reports:
    """The reports of devices that recorded these values; devices that remember have just enrolled."""
    mechanism, seen = ask.mechanism, ask.view.look(values, rng)
    if isinstance(mechanism, Stateful):
        states = mechanism.enroll(len(values), rng)
        return mechanism.step(states, ask.step, seen, rng, np.ones(len(values), dtype=bool))[1]
    assert isinstance(mechanism, Mechanism)
    return mechanism.randomize(seen, rng)


def recorded_values(collection: Collection, terms: Terms) -> Iterator[object]:
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


def codes_of(domain: Domain) -> list[object]:
    """The codes of all values of a field, or of 1,024 from the first to the last, and of "nothing was recorded"."""
    if isinstance(domain.missing(), int):
        return domain.symbols().examples(MOST_VALUES)
    codes: list[object] = [domain.missing(), *(domain.code(value) for value in domain.examples(MOST_VALUES))]
    return [*codes, -_HUGE, _HUGE] if isinstance(codes[0], float) else codes  # numbers are recorded as they are
