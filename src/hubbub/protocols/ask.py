"""Asks, which devices answer with one report each; and cohorts, the arcs of a circle whose devices are asked.

Cohorts as arcs of a circle: population division without a table of users.

Every device has a random key. A keyed hash puts the device at one of 2^32 places of a circle; the server never learns
which. A cohort is an arc of the circle. A stream that recycles its population moves a pointer round the circle: while
the arcs taken in any w consecutive steps sum to at most one turn, nobody is asked twice in w steps. (Suppose the
place x is taken in step s and again in step t > s. From x to x the pointer made at least one whole turn, so the arcs of
steps s to t sum to more than one turn: the turn itself, and at least the place x a second time. Hence s and t are not
within w consecutive steps.)
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import Event
from hubbub.core.reports import Array, Bools
from hubbub.core.spec import Json, integer, spec_id
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.views.basic import View, Whole

CIRCLE = 1 << 32


def offset_of(name: str) -> int:
    """Where on the circle a question begins."""
    return int(spec_id({"question": name})[:8], 16)


@dataclass(frozen=True)
class Arc:
    """The places start, start + 1, ..., start + length - 1, modulo 2^32."""

    start: int
    length: int

    def __post_init__(self) -> None:
        for end, high in (("start", CIRCLE - 1), ("length", CIRCLE)):
            value = getattr(self, end)
            check_integer(f"cohort.{end}", value, 0, high)

    @property
    def share(self) -> float:
        """The part of the population that is asked."""
        return self.length / CIRCLE

    def holds(self, places: Array) -> Bools:
        """Whether each of some places is on the arc."""
        return (places.astype(np.int64) - self.start) % CIRCLE < self.length

    def pieces(self) -> list[tuple[int, int]]:
        """The arc as half-open intervals of places: two where it passes 0, none where it is empty."""
        end = self.start + self.length
        if end <= CIRCLE:
            return [(self.start, end)] if self.length else []
        return [(self.start, CIRCLE), (0, end - CIRCLE)]

    def spec(self) -> dict[str, Json]:
        return {"start": self.start, "length": self.length}


EVERYONE = Arc(0, CIRCLE)


def equal_arcs(number: int) -> list[Arc]:
    """The circle cut into a number of arcs, whose lengths differ by at most 1."""
    borders = [CIRCLE * part // number for part in range(number + 1)]
    return [Arc(low, high - low) for low, high in pairwise(borders)]


def shared_arcs(shares: Sequence[float], numbers: Sequence[int]) -> list[Arc]:
    """The circle cut into a part of each share, and each part into a number of arcs."""
    ends = [0, *(math.floor(CIRCLE * min(share, 1.0)) for share in accumulate(shares[:-1])), CIRCLE]
    cuts = [
        low + (high - low) * place // number
        for (low, high), number in zip(pairwise(ends), numbers, strict=True)
        for place in range(number)
    ]
    return [Arc(low, high - low) for low, high in pairwise([*cuts, CIRCLE])]


def disjoint(arcs: Iterable[Arc]) -> bool:
    """Whether no place is on two of the arcs."""
    pieces = sorted(piece for arc in arcs for piece in arc.pieces())
    return all(end <= start for (_, end), (start, _) in pairwise(pieces))


class Pointer:
    """Hands out arcs one after another, round and round."""

    remembered = ("at",)

    def __init__(self, at: int = 0) -> None:
        self.at = at % CIRCLE

    def take(self, length: int) -> Arc:
        """The next arc of this length."""
        arc = Arc(self.at, length)
        self.at = (self.at + length) % CIRCLE
        return arc


def place_on_circle(device_key: bytes, collection: str) -> int:
    """A device's place in a collection: 32 bits of HMAC-SHA-256, never sent."""
    return int.from_bytes(_keyed(device_key, collection)[:4], "little")


def group_on_circle(device_key: bytes, collection: str, groups: int) -> int:
    """Which of some equal groups a device is in: by a second place, independent of the first, and never sent either."""
    return int.from_bytes(_keyed(device_key, collection)[4:8], "little") * groups >> 32


def _keyed(device_key: bytes, collection: str) -> bytes:
    if len(device_key) < 16:
        raise InvalidValue("device_key", f"{len(device_key)} bytes", "at least 16 random bytes")
    return hmac.new(device_key, collection.encode(), hashlib.sha256).digest()


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What the server publishes, the same for every device.

    A device that is in the cohort, and whose ledger allows the cost, answers `mechanism.randomize(view(value))` with
    its value of that step.

    Parameters
    ----------
    view
        The function of the value that the mechanism is given.
    standing
        Whether every device answers the same ask at every step, so that it is published only once.
    following
        The first ask of the next step, where it does not depend on the answer to this ask. It is not published: the
        server uses it to ask on time while it still waits for late answers.
    kept
        Whether the single reports are kept in addition to their sketch, so that a `Count` can read them later.
    """

    mechanism: ReportFormat
    step: int
    view: View = Whole()  # noqa: RUF009 - frozen
    cohort: Arc = EVERYONE
    standing: bool = False
    following: Ask | None = field(default=None, compare=False, repr=False)
    kept: bool = False

    def __post_init__(self) -> None:
        check_integer("step", self.step, 0)

    @cached_property
    def ask_id(self) -> str:
        """The hash of the whole ask."""
        return spec_id({**self.spec(), "mechanism": self.mechanism.spec_id})

    def event(self) -> Event:
        """What an answer spends, and at which step."""
        event = self.mechanism.event()
        return Event(event.mechanism, event.spec_id, event.spent, self.step)

    def spec(self) -> dict[str, Json]:
        return {
            "mechanism": self.mechanism.spec(),
            "step": self.step,
            "view": self.view.spec(),
            "cohort": self.cohort.spec(),
            "standing": self.standing,
            **({"kept": True} if self.kept else {}),
        }

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Ask:
        """Read an ask from JSON. The mechanism recomputes its epsilon from its own integers."""
        fields = {"mechanism", "step", "view", "cohort", "standing"}
        if not isinstance(spec, Mapping) or set(spec) - {"kept"} != fields:
            raise InvalidValue("ask", spec, f"exactly the fields {sorted(fields)}")
        arc = spec["cohort"]
        if not isinstance(arc, Mapping) or set(arc) != {"start", "length"}:
            raise InvalidValue("cohort", arc, "a start and a length")
        if not isinstance(spec["standing"], bool):
            raise InvalidValue("standing", spec["standing"], "true or false")
        if spec.get("kept", True) is not True:
            raise InvalidValue("kept", spec["kept"], "true, or left out")
        return Ask(
            mechanism=ReportFormat.from_spec(spec["mechanism"]),
            step=integer("step", spec["step"]),
            view=View.from_spec(spec["view"]),
            cohort=Arc(integer("start", arc["start"]), integer("length", arc["length"])),
            standing=spec["standing"],
            kept="kept" in spec,
        )
