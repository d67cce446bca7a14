"""Which asks a client goes along with. Nothing here looks at a value: what is refused tells nothing about one."""

from __future__ import annotations

import numpy as np

from hubbub.client.documents import Published, Refused
from hubbub.collection import Collection

__all__ = ["admit", "on_arc", "phase_of"]


def phase_of(collection: Collection, question: str, step: int, now: float) -> tuple[float, float]:
    """When the present phase of a question's step began, and when it closes; an adaptive stream's steps have two.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> phase_of(load_collection(EXAMPLE), "popular", 1, 4000.0)
        (3600.0, 7200.0)
    """
    opens, half = float(collection.opens(step)), float(collection.closes(step, question=question, phase=1))
    closes = float(collection.closes(step, question=question))
    return (opens, half) if now < half else (half if half < closes else opens, closes)


def admit(collection: Collection, published: Published, step: int) -> None:
    """Refuse an ask that the signed terms of its question do not allow.

    The view must be the one that is signed, and the mechanism one of those: then every value that can be recorded has
    an answer, no value is betrayed by an error, and no epsilon of its own tags a device. The ledger says what is spent.

    Example:
        >>> from dataclasses import replace
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.protocols.cohort import Arc
        >>> collection = load_collection(EXAMPLE)
        >>> ask = replace(next(collection.protocol("popular")), step=7)
        >>> admit(collection, Published("popular", ask), 7)
        >>> admit(collection, Published("popular", replace(ask, cohort=Arc(5, 1))), 7)
        Traceback (most recent call last):
            ...
        hubbub.client.documents.Refused: arc: 1 of 2^32 places, below 4294967
    """
    terms, ask = collection.terms.get(published.question), published.ask
    if terms is None:
        raise Refused("question", f"there is no question {published.question}")
    if ask.step != step:
        raise Refused("step", f"{ask.step} is not {step}")
    if not 1 <= published.round <= terms.rounds:
        raise Refused("round", f"{published.round} is not one of {terms.rounds}")
    if ask.cohort.length < collection.minimum_arc:
        raise Refused("arc", f"{ask.cohort.length} of 2^32 places, below {collection.minimum_arc}")
    if ask.view.spec() not in terms.views or ask.mechanism.spec_id not in terms.mechanisms:
        raise Refused("mechanism", f"not what {published.question} asks")


def on_arc(published: Published, place: int) -> bool:
    """Whether a place on the circle is asked.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> on_arc(Published("popular", next(load_collection(EXAMPLE).protocol("popular"))), 17)
        True
    """
    return bool(published.ask.cohort.holds(np.array([place]))[0])
