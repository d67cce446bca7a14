"""What a question knows of its collection, where it begins on the circle, and the findings of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from hubbub.core.domain import Domain
from hubbub.core.errors import HubbubError
from hubbub.core.spec import spec_id
from hubbub.protocols.ask import CIRCLE, Arc, Ask

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.protocols.driver import Protocol, Reply


class Setting(NamedTuple):
    """What a question knows of its collection.

    Parameters
    ----------
    name
        The question's name in the collection.
    domains
        The domains of the fields that it reads, by name.
    step_seconds, origin
        The grid of steps.
    """

    name: str
    domains: Mapping[str, Domain]
    step_seconds: int
    origin: int = 0

    @property
    def domain(self) -> Domain:
        """The domain of the first field, which for most questions is the only one."""
        return next(iter(self.domains.values()))


def offset_of(name: str) -> int:
    """Where on the circle a question begins."""
    return int(spec_id({"question": name})[:8], 16)


def shifted(stream: Protocol, start: int, labels: tuple[str, ...] | None) -> Protocol:
    """A protocol whose arcs are moved by `start` on the circle, and whose releases have labels.

    All arcs move by the same distance, so that disjoint arcs stay disjoint. Asks carry codes and no labels, which keeps
    them short.
    """
    from hubbub.protocols.driver import Count  # a device, which runs no protocol, does not load it

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


Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One finding of a check.

    "error": the collection is refused. "warning": it is allowed, but should be reconsidered. "note": information.
    """

    level: Level
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.text}"


class UnsafeCollection(HubbubError):
    """A collection is refused; `findings` are all its errors."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("; ".join(f"{finding.where}: {finding.text}" for finding in findings))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)
