"""Which collections a device refuses, by their signed terms alone: a device knows no kinds of questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hubbub.collection.document import Collection
from hubbub.collection.finding import Finding, UnsafeCollection
from hubbub.collection.sealing import open_sealed
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.privacy.promise import Promise

LARGEST_EPSILON = 8
SMALLEST_BATCH = 20
SMALLEST_ARC = 100
_NAMES = {0: "user", 1: "event"}


def privacy_key(promise: Promise) -> str:
    """The key of a promise about the whole collection in a collection file."""
    return f"privacy.{_NAMES.get(promise.steps, 'window')}"


def unsafe_terms(collection: Collection) -> Iterator[Finding]:
    """Every reason for which a device refuses a collection; none if the collection is safe.

    - A question costs more than epsilon 8 at once, or releases rest on fewer than 20 reports, and the author gives no
      reason.
    - The shortest arc has fewer than 100 of the devices that the collection is planned for, and the author gives no
      reason.
    - There is no limit for the whole collection, or none for life where a question costs again for every new value.
    - A question does not fit into its account's part of a limit: it would never be answered.
    - Numbers are sent without randomisation, and the author gives no reason.
    - Reports are shuffled, and a question has devices keep a state or send numbers as they are: their reports could be
      recognised, which undoes the shuffle.
    """
    if collection.minimum_batch < SMALLEST_BATCH and "minimum_batch_below_20" not in collection.overrides:
        yield Finding("error", "privacy.minimum_batch", f"at least {SMALLEST_BATCH}, or a reason for fewer")
    least = SMALLEST_BATCH if collection.shuffle is None else collection.shuffle.least
    if least < SMALLEST_BATCH and "minimum_batch_below_20" not in collection.overrides:
        yield Finding("error", "shuffle.least", f"at least {SMALLEST_BATCH}, or a reason for fewer")
    people = collection.smallest_arc
    if people is not None and people < SMALLEST_ARC and "arc_below_100" not in collection.overrides:
        yield Finding("error", "privacy.minimum_arc", f"at least {SMALLEST_ARC} devices, or a reason for fewer")
    if not collection.promises:
        yield Finding("error", "privacy", "no limit of what a device may spend")
    for name, terms in collection.terms.items():
        plain = any(view["kind"] == "beside" for view in terms.views)
        if collection.shuffle is not None and (terms.state or plain):
            by = "devices keep a state for it" if terms.state else "it sends numbers as they are"
            text = f"{by}, by which their reports can be linked: that undoes the shuffle"
            yield Finding("error", f"questions.{name}", f'{text}; ask it in a collection of trust "local"')
        if plain and "sent_as_it_is" not in collection.overrides:
            yield Finding("error", f"questions.{name}", "it sends numbers as they are, without a reason for it")
        where, most = f"questions.{name}", LARGEST_EPSILON * UNITS_PER_EPSILON
        large = max([terms.limit, *(promise.limit for promise in terms.promises if promise.steps)])
        if large > most and "epsilon_above_8" not in collection.overrides:
            allowed = f"at most {LARGEST_EPSILON}, or a reason for more"
            yield Finding("error", where, f"epsilon {large / UNITS_PER_EPSILON:g}; {allowed}")
        again = any(promise.steps == 0 and promise.limit > terms.limit for promise in terms.promises)
        if again and all(promise.steps for promise in collection.promises):
            yield Finding("error", "privacy.user", f"{name} costs again for every new value: give a limit for life")
        for promise in collection.promises:
            if promise.parts.get(terms.account, 0) < terms.limit:
                yield Finding("error", privacy_key(promise), f"too little is kept for {name}, which it never answers")


def open_collection(document: object, public: bytes | Any) -> Collection:
    """Open a sealed collection as a device does. It must be signed by a trusted key, well formed and safe."""
    collection = Collection.from_spec(open_sealed(document, public))
    errors = list(unsafe_terms(collection))
    if errors:
        raise UnsafeCollection(errors)
    return collection
