"""The place on the circle where a question begins, and the labels of its releases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hubbub.core.spec import spec_id
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, Arc

if TYPE_CHECKING:  # a device estimates nothing
    from hubbub.core.estimate import Estimate
    from hubbub.protocols.driver import Protocol, Reply


def offset_of(name: str) -> int:
    """Where on the circle a question begins."""
    return int(spec_id({"question": name})[:8], 16)


def shifted(stream: Protocol, start: int, labels: tuple[str, ...] | None) -> Protocol:
    """A protocol whose arcs are moved by `start` on the circle, and whose releases have labels.

    All arcs move by the same distance, so that disjoint arcs stay disjoint. Asks carry codes and no labels, which keeps
    them short.
    """
    from hubbub.protocols.count import Count  # a device, which runs no protocol, does not load it

    reply: Reply = None
    while True:
        try:
            message = stream.send(reply)
        except StopIteration:
            return
        if isinstance(message, Ask):
            message = _shifted(message, start)
        elif isinstance(message, list):
            message = [_shifted(ask, start) for ask in message]
        elif isinstance(message, Count):
            message = replace(message, ask=_shifted(message.ask, start))
        elif labels is not None:
            message = replace(
                message, estimates={name: _named(estimate, labels) for name, estimate in message.estimates.items()}
            )
        reply = yield message


def _named(estimate: Estimate, labels: tuple[str, ...]) -> Estimate:
    fits = estimate.labels is None and len(labels) == len(estimate)
    return replace(estimate, labels=labels) if fits else estimate


def _shifted(ask: Ask, start: int) -> Ask:
    following = None if ask.following is None else _shifted(ask.following, start)
    return replace(ask, cohort=Arc((ask.cohort.start + start) % CIRCLE, ask.cohort.length), following=following)
