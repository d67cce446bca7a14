"""Which asks a client goes along with. Nothing here looks at a value: what is refused tells nothing about one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hubbub.client.documents import Published, Refused
from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON

__all__ = ["admit", "on_arc", "phase_of"]


def phase_of(collection: Collection, question: str, step: int, now: float) -> tuple[float, float]:
    """When the present phase of a question's step began, and when it closes; an adaptive stream's steps have two.

    Example:
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> phase_of(load_collection(EXAMPLE), "popular", 1, 4000.0)
        (3600.0, 7200.0)
    """
    opens, half = float(collection.opens(step)), float(collection.closes(step, question=question, phase=1))
    closes = float(collection.closes(step, question=question))
    return (opens, half) if now < half else (half if half < closes else opens, closes)


def admit(collection: Collection, published: Published, step: int) -> None:
    """Refuse an ask that the collection's own question would not make.

    The view and the mechanism must be the very ones that the signed question builds at that epsilon: then every value
    that can be recorded has an answer, and no value is betrayed by an error. The ledger says what may be spent.

    Example:
        >>> from dataclasses import replace
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> from hubbub.protocols.cohort import Arc
        >>> collection = load_collection(EXAMPLE)
        >>> ask = replace(next(collection.protocol("popular")), step=7)
        >>> admit(collection, Published("popular", ask), 7)
        >>> admit(collection, Published("popular", replace(ask, cohort=Arc(5, 1))), 7)
        Traceback (most recent call last):
            ...
        hubbub.client.documents.Refused: arc: 1 of 2^32 places, below 4294967
    """
    question = collection.questions.get(published.question)
    if question is None:
        raise Refused("question", f"there is no question {published.question}")
    ask = published.ask
    if ask.step != step:
        raise Refused("step", f"{ask.step} is not {step}")
    if ask.cohort.length < collection.minimum_arc:
        raise Refused("arc", f"{ask.cohort.length} of 2^32 places, below {collection.minimum_arc}")
    domain = collection.fields[question.field]
    asked = question.question(domain)
    units = math.ceil(Fraction(ask.mechanism.epsilon) * UNITS_PER_EPSILON)
    try:
        expected = question.mechanism_for(domain) if question.kind == "memo" else asked.mechanism(units)
    except InvalidValue as error:  # an epsilon at which nothing can be asked
        raise Refused("mechanism", str(error)) from error
    if ask.view != asked.view or ask.mechanism.spec_id != expected.spec_id:
        raise Refused("mechanism", f"not what {published.question} asks")


def on_arc(published: Published, place: int) -> bool:
    """Whether a place on the circle is asked.

    Example:
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> on_arc(Published("popular", next(load_collection(EXAMPLE).protocol("popular"))), 17)
        True
    """
    return bool(published.ask.cohort.holds(np.array([place]))[0])
