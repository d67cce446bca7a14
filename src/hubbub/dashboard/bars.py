"""Tables of shares whose rows draw themselves, in order of size or in an order of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hubbub.dashboard.answers import LEVEL, Value, ranked, scale_of
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join, ticks

MOST_ROWS = 200
"""A domain may have millions of values; the others are in the JSON."""

_WIDTH, _HEIGHT = 1000, 20
_WORDS = {"zero": "not distinguishable from zero", "unknown": "its error is not known"}
_FOLDED = {"zero": ("rest", "not distinguishable from zero"), "unknown": ("unknown", "of which nothing is known yet")}


@dataclass(frozen=True)
class BarTable:
    """How values are drawn: all of their tables share one axis.

    `values`, `kind`: the values, and "share" or "quantity". `name`: an id that no other element of the page begins
    with. `link`, `chosen`: where the name of a value leads, and the code of the one that is shown there now.
    """

    values: Sequence[Value]
    kind: str
    name: str
    link: Callable[[Value], str] | None = None
    chosen: int | None = None

    def table(self, values: Sequence[Value], caption: str) -> Html:
        """Some of the values."""
        axis, scale = self._axis, scale_of(self.kind, self.values)
        heads = (
            el("th", "Value", scope="col"),
            el("th", el("span", "Drawn", class_="unseen"), scope="col", class_="bar"),
            el("th", "Estimate", scope="col", class_="number"),
            el("th", "Consistent", scope="col", class_="consistent") if self._consistent else None,
            el("th", f"{LEVEL:.0%} interval", scope="col", class_="wide"),
        )
        return el(
            "table",
            el("caption", caption, class_="unseen"),
            el("thead", el("tr", heads)),
            el("tbody", [self._row(value, axis, scale) for value in values]),
            class_="bars",
        )

    @cached_property
    def _consistent(self) -> bool:
        return any(value.consistent is not None for value in self.values)

    @cached_property
    def _axis(self) -> _Axis:
        return _Axis(self.values)

    def _row(self, value: Value, axis: _Axis, scale: Scale) -> Html:
        label: Html = el("bdi", value.label)
        if self.link is not None:
            current = "true" if value.code == self.chosen else None
            label = el("a", label, href=self.link(value), id=f"{self.name}-value-{value.code}", aria_current=current)
        between = "" if value.low is None else f"{scale.text(value.low)} to {scale.text(value.high)}"
        words = _WORDS.get(value.standing)
        return el(
            "tr",
            el("th", label, scope="row"),
            el("td", _drawn(value, axis), class_="bar"),
            el(
                "td",
                el("b", scale.text(value.value)),
                " ",
                el("span", scale.reach(value.reach), class_="reach"),
                el("span", f", {words}", class_="unseen") if words else None,
                class_="number",
            ),
            el("td", scale.text(value.consistent), class_="consistent") if self._consistent else None,
            el("td", between, class_="wide"),
            class_=None if value.standing == "clear" else "grey",
        )


def ranked_bars(bars: BarTable, *, most: int) -> Html:
    """The largest values first, up to a number; the others, and those that cannot be told from zero, are folded
    away.
    """
    in_order = ranked(bars.values)
    clear = [value for value in in_order if value.standing == "clear"]
    rest = in_order[len(clear) :]
    parts: list[Child] = []
    if clear:
        parts.append(bars.table(clear[:most], "Values that can be told from zero, largest first"))
    if more := clear[most:]:
        table = bars.table(more[:MOST_ROWS], "Further values that can be told from zero")
        parts.append(fold(f"{bars.name}-more", f"{count(len(more))} more", table))
    for standing, (suffix, words) in _FOLDED.items():
        few = [value for value in rest if value.standing == standing]
        if few:
            summary = f"{count(len(few), 'value')} {words}"
            parts.append(fold(f"{bars.name}-{suffix}", summary, bars.table(few[:MOST_ROWS], summary)))
    if max(len(more), len(rest)) > MOST_ROWS:
        parts.append(el("p", f"Lists end after {MOST_ROWS} values; the JSON has all.", class_="note"))
    return el("div", parts)


def fold(name: str, title: str, content: Child) -> Html:
    """Something that is shown if one wants to see it."""
    return el("details", el("summary", title), content, id=name)


class _Axis:
    """From the lowest end of an interval, or zero, to the highest."""

    def __init__(self, values: Iterable[Value]) -> None:
        ends = [0.0]
        for value in values:
            ends += [end for end in (value.low, value.value, value.high, value.consistent) if end is not None]
        self._low, self._high = min(ends), max(ends)

    def at(self, number: float) -> float:
        return round(_WIDTH * (number - self._low) / ((self._high - self._low) or 1.0), 1)


def _drawn(value: Value, axis: _Axis) -> Html:
    zero, middle = axis.at(0.0), _HEIGHT // 2
    shapes = [el("line", class_="zero", x1=zero, x2=zero, y1=0, y2=_HEIGHT)]
    if value.value is not None:
        end = axis.at(value.value)
        width = round(abs(end - zero), 1)
        shapes.append(el("rect", class_="amount", x=min(zero, end), y=3, width=width, height=_HEIGHT - 6))
    if value.low is not None and value.high is not None:
        low, high = axis.at(value.low), axis.at(value.high)
        path = f"M{low} {middle}H{high}M{low} 6V{_HEIGHT - 6}M{high} 6V{_HEIGHT - 6}"
        shapes.append(el("path", class_="interval", d=path))
    if value.consistent is not None:
        shapes.append(el("path", class_="consistent", d=f"M{axis.at(value.consistent)} 1V{_HEIGHT - 1}"))
    # The number is next to it: who does not see the bar misses nothing.
    return el("svg", shapes, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", preserveAspectRatio="none", aria_hidden="true")


_FEW = 12
"""The number that fits below each other; more are side by side."""

_COLUMNS_WIDTH, _COLUMNS_HEIGHT = 1000, 240
_GREY = join(el("span", class_="swatch"), "Grey: not distinguishable from zero.")


def ordered_bars(bars: BarTable) -> Html:
    """All values in their order: as a table of bars, or as columns with the table folded away."""
    values = bars.values
    table = bars.table(values[:MOST_ROWS], "Values in their order")
    notes: list[Child] = []
    if any(value.standing == "zero" for value in values):
        notes.append(el("p", _GREY, class_="note"))
    if len(values) > MOST_ROWS:
        notes.append(el("p", f"The table ends after {MOST_ROWS} values; the JSON has all.", class_="note"))
    if len(values) <= _FEW:
        return el("div", table, notes)
    return el("figure", _columns(bars), notes, fold(f"{bars.name}-all", "As a table", table), class_="columns")


def _columns(bars: BarTable) -> Html:
    values = bars.values
    numbers = ((value.low, value.value, value.high, value.consistent) for value in values)
    ends = [end for several in numbers for end in several if end is not None]
    marks = ticks(min([0.0, *ends]), max([0.0, *ends]))
    scale = scale_of(bars.kind, values)
    bottom, rise = marks[0], marks[-1] - marks[0]
    width = _COLUMNS_WIDTH / len(values)

    def y(number: float) -> float:
        return round(_COLUMNS_HEIGHT * (1 - (number - bottom) / rise), 1)

    def column(value: Value) -> Html:
        left, shapes = width * value.code, []
        if value.value is not None:
            top, foot = sorted((y(value.value), y(0.0)))
            shapes.append(
                el(
                    "rect",
                    class_="amount",
                    x=round(left + width * 0.12, 1),
                    y=top,
                    width=round(width * 0.76, 1),
                    height=round(foot - top, 1),
                )
            )
        if value.low is not None and value.high is not None:
            middle = round(left + width / 2, 1)
            shapes.append(el("path", class_="interval", d=f"M{middle} {y(value.low)}V{y(value.high)}"))
        if value.consistent is not None:
            mark = f"M{round(left + width * 0.12, 1)} {y(value.consistent)}h{round(width * 0.76, 1)}"
            shapes.append(el("path", class_="consistent", d=mark))
        return el("g", shapes, class_=None if value.standing == "clear" else "grey")

    lines = [el("path", class_="grid", d=f"M0 {y(tick)}H{_COLUMNS_WIDTH}") for tick in marks]
    clear = sum(value.standing == "clear" for value in values)
    largest = max(values, key=lambda value: value.value or 0.0)
    text = (
        f"{count(len(values), 'value')} in their order; {clear} can be told from zero. "
        f"The largest is {largest.label}: {scale.text(largest.value)} {scale.reach(largest.reach)}."
    )
    return el(
        "div",
        el("ol", [el("li", Scale(scale.kind, 0).text(tick)) for tick in reversed(marks)], class_="ticks-y"),
        el(
            "svg",
            lines,
            [column(value) for value in values],
            viewBox=f"0 0 {_COLUMNS_WIDTH} {_COLUMNS_HEIGHT}",
            preserveAspectRatio="none",
            role="img",
            aria_label=text,
        ),
        el(
            "ol",
            [el("li", el("bdi", values[place].label)) for place in _places(len(values))],
            class_="ticks-x",
        ),
        class_="drawing",
    )


def _places(size: int) -> list[int]:
    return [0, size // 2, size - 1]
