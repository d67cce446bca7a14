"""Markup from Python, in which everything else is escaped; numbers and times as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TypeAlias

from hubbub.collection import SignedCollection

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_SHAPES = frozenset({"circle", "line", "path", "rect"})
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"


def el(tag: str, *children: Child, **attributes: object) -> Html:
    """An element. In a name, _ becomes - and one at the end is dropped; None and False leave an attribute out."""
    spelled = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{spelled}>")
    if tag in _SHAPES:
        return Html(f"<{tag}{spelled}/>")
    return Html(f"<{tag}{spelled}>{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    """One after another, each escaped unless it is markup; None is nothing."""
    return Html("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return escape(_clean(str(child)), quote=False)
    return "".join(_text(part) for part in child)


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escape(_clean(str(value)))}"'


def _clean(text: str) -> str:
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


MINUS = "\N{MINUS SIGN}"
_MOST_DECIMALS = 4
_DAY = 86400


@dataclass(frozen=True)
class Scale:
    """How the numbers of one chart are written: shares as percentages, with as many decimals as their errors
    deserve.
    """

    kind: str
    decimals: int

    @staticmethod
    def of(kind: str, *, reaches: Iterable[float]) -> Scale:
        """Decimals such that the typical error has two digits."""
        known = sorted(reach for reach in reaches if reach > 0)
        if not known:
            return Scale(kind, 2)
        typical = known[len(known) // 2] * (100 if kind == "share" else 1)
        return Scale(kind, min(max(1 - math.floor(math.log10(typical)), 0), _MOST_DECIMALS))

    def text(self, number: float | None) -> str:
        """A number, with its unit."""
        if number is None:
            return "not known"
        return self._digits(number) + ("%" if self.kind == "share" else "")

    def reach(self, reach: float | None) -> str:
        """How far it may be off."""
        return "" if reach is None else f"± {self._digits(reach)}"

    def _digits(self, number: float) -> str:
        text = f"{abs(number) * (100 if self.kind == 'share' else 1):,.{self.decimals}f}"
        return MINUS + text if number < 0 and text.strip("0.,") else text


def count(number: float, noun: str = "") -> str:
    """How many of something."""
    text = f"{number:,.0f}"
    return text if not noun else f"{text} {noun}{'s' * (text != '1')}"


def part(share: float) -> str:
    """A part of a whole; never nothing where there is something."""
    if share and share < 1e-4:
        return "under 0.01%"
    return f"{100 * share:.{1 if share >= 0.01 else 2}f}".rstrip("0").rstrip(".") + "%"


def nearly(seconds: float) -> str:
    """A duration, roughly."""
    for size, noun, enough in ((_DAY, "day", 4), (3600, "hour", 3), (60, "minute", 2)):
        if seconds >= size * enough:
            return count(round(seconds / size), noun)
    return count(max(round(seconds), 1), "second")


def moment(unix: float, *, precision: float = 1.0) -> Html:
    """A time in UTC, no finer than it is known."""
    when = datetime.fromtimestamp(unix, UTC)
    clock = "" if precision >= _DAY else f", {when:%H:%M} UTC" if precision >= 60 else f", {when:%H:%M:%S} UTC"
    return el("time", f"{when.day} {when:%B %Y}{clock}", datetime=f"{when:%Y-%m-%dT%H:%M:%SZ}")


def step_time(collection: SignedCollection, step: int) -> Html:
    """When a step begins, no finer than steps are apart."""
    midnight = collection.origin % _DAY == 0 and collection.step_seconds % _DAY == 0
    return moment(collection.opens(step), precision=_DAY if midnight else min(collection.step_seconds, 3600))


def ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    """Round numbers, evenly apart, the first at most `low` and the last at least `high`."""
    if not high > low:
        high = low + 1.0
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, 12) for k in range(first, last + 1)]
