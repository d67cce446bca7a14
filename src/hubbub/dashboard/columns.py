"""Shares of values that have an order of their own: the order is kept."""

from __future__ import annotations

from hubbub.dashboard.answer import AnswerCard, Value
from hubbub.dashboard.axis import ticks
from hubbub.dashboard.bars import MOST_ROWS, BarTable, fold
from hubbub.dashboard.markup import Child, Html, el, join
from hubbub.dashboard.words import Scale, count

_FEW = 12
"""So many fit below each other; more stand side by side."""

_WIDTH, _HEIGHT = 1000, 240
_GREY = join(el("span", class_="swatch"), "Grey: not distinguishable from zero.")


def ordered_bars(bars: BarTable) -> Html:
    """All values in their order: as a table of bars, or as columns with the table folded away."""
    values = bars.answer.values
    table = bars.table(values[:MOST_ROWS], "Values in their order")
    notes: list[Child] = []
    if any(value.standing == "zero" for value in values):
        notes.append(el("p", _GREY, class_="note"))
    if len(values) > MOST_ROWS:
        notes.append(el("p", f"The table ends after {MOST_ROWS} values; the JSON has all.", class_="note"))
    if len(values) <= _FEW:
        return el("div", table, notes)
    return el("figure", _columns(bars.answer), notes, fold(f"{bars.name}-all", "As a table", table), class_="columns")


def _columns(answer: AnswerCard) -> Html:
    ends = [end for value in answer.values for end in (value.low, value.value, value.high) if end is not None]
    marks = ticks(min([0.0, *ends]), max([0.0, *ends]))
    scale = Scale.of_answer(answer)
    bottom, rise = marks[0], marks[-1] - marks[0]
    width = _WIDTH / len(answer.values)

    def y(number: float) -> float:
        return round(_HEIGHT * (1 - (number - bottom) / rise), 1)

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
        return el("g", shapes, class_=None if value.standing == "clear" else "grey")

    lines = [el("path", class_="grid", d=f"M0 {y(tick)}H{_WIDTH}") for tick in marks]
    clear = sum(value.standing == "clear" for value in answer.values)
    largest = max(answer.values, key=lambda value: value.value or 0.0)
    text = (
        f"{count(len(answer.values), 'value')} in their order; {clear} can be told from zero. "
        f"The largest is {largest.label}: {scale.text(largest.value)} {scale.reach(largest.reach)}."
    )
    return el(
        "div",
        el("ol", [el("li", Scale(scale.kind, 0).text(tick)) for tick in reversed(marks)], class_="ticks-y"),
        el(
            "svg",
            lines,
            [column(value) for value in answer.values],
            viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
            preserveAspectRatio="none",
            role="img",
            aria_label=text,
        ),
        el(
            "ol",
            [el("li", el("bdi", answer.values[place].label)) for place in _places(len(answer.values))],
            class_="ticks-x",
        ),
        class_="drawing",
    )


def _places(size: int) -> list[int]:
    return [0, size // 2, size - 1]
