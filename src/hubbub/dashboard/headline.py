"""The headline of a release: one sentence that claims no more than the intervals allow; means and other numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hubbub.dashboard.layout import table
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join
from hubbub.dashboard.reader import AnswerCard, Value

_MOST_NAMED = 3
_BIAS = {
    "none": "none: right on average",
    "ratio": "small compared with the error: each number is a ratio of two unbiased estimates; the intervals hold",
    "consistent": "small: the values are adjusted to be consistent, which adds a bias and reduces the error",
    "heuristic": "possible: the method does not rule it out, and intervals may be too narrow",
}


def headline(answer: AnswerCard) -> Html:
    """What the release says, in a sentence.

    Example:
        >>> def answer(*values):
        ...     return AnswerCard("q", 1, 0.0, 9, values)
        >>> a, b, c = Value(0, "a", 0.6, 0.5, 0.7), Value(1, "b", 0.3, 0.2, 0.4), Value(2, "c", 0.25, 0.15, 0.35)
        >>> headline(answer(a, b))
        '<bdi>a</bdi> is the most common: <strong>60%</strong> ± 10.'
        >>> headline(answer(b, c))
        'The most common is <bdi>b</bdi> or <bdi>c</bdi>: the reports so far do not show which.'
        >>> headline(answer(Value(0, "a", 0.6, -0.1, 1.3)))
        'No value is clearly above zero yet: there are too few reports for this number of values.'
        >>> headline(AnswerCard("q", 1, 0.0, 9, (a, b), kind="quantity"))
        '<bdi>a</bdi> is the highest: <strong>0.60</strong> ± 0.10.'
    """
    if answer.withheld is not None:
        return join(f"Withheld: {answer.withheld}.")
    scale = Scale.of_answer(answer)
    if answer.bias == "ratio" and answer.kind == "share":
        return join("Shares within each group, and how two groups differ:")
    if answer.kind != "share" and len(answer.values) == 1:
        return join("On average ", _number(answer.values[0], scale), ".")
    ranked = answer.ranked()
    if answer.kind != "share":
        return _highest(ranked, scale)
    if len(ranked) == 1 and ranked[0].standing == "clear":
        return join(_name(ranked[0]), ": ", _number(ranked[0], scale), ".")
    if not ranked or ranked[0].standing == "unknown":
        return join("The errors of these numbers are not known.")
    if ranked[0].standing == "zero":
        return join("No value is clearly above zero yet: there are too few reports for this number of values.")
    # All values that may be larger than the first: also those drawn in grey, and those whose error is not known.
    first = [value for value in ranked if value.high is None or value.high >= (ranked[0].low or 0.0)]
    if len(first) == 1:
        return join(_name(ranked[0]), " is the most common: ", _number(ranked[0], scale), ".")
    return _undecided("most common", first)


def _highest(ranked: list[Value], scale: Scale) -> Html:
    """The headline of numbers for several keys."""
    known = sorted((value for value in ranked if value.standing != "unknown"), key=lambda value: -(value.value or 0.0))
    if not known:
        return join("Nothing is known of any key yet: there are too few reports for this number of keys.")
    first = [value for value in known if (value.high or 0.0) >= (known[0].low or 0.0)]
    if len(first) == 1:
        return join(_name(first[0]), " is the highest: ", _number(first[0], scale), ".")
    return _undecided("highest", first)


def _undecided(rank: str, first: list[Value]) -> Html:
    """The headline where any of several values may be the first."""
    names: Child = _listed([_name(value) for value in first], last=" or ")
    if len(first) > _MOST_NAMED:
        names = (_name(first[0]), f" or one of {count(len(first) - 1, 'other value')}")
    return join(f"The {rank} is ", names, ": the reports so far do not show which.")


def bias_text(bias: str, *, smoothed: bool = False) -> str:
    """What a kind of bias means."""
    if smoothed:
        return "possible: values are smoothed, or corrected on average; the intervals do not rest on that, and hold"
    return _BIAS.get(bias, bias)


def _name(value: Value) -> Html:
    return el("bdi", value.label)


def _number(value: Value, scale: Scale) -> Html:
    return join(el("strong", scale.text(value.value)), " ", scale.reach(value.reach))


def _listed(names: list[Html], *, last: str) -> Html:
    parts: list[Child] = []
    for place, name in enumerate(names):
        parts += [None if place == 0 else last if place == len(names) - 1 else ", ", name]
    return join(parts)


def mean_figure(answer: AnswerCard, low: float, high: float) -> Html:
    """The number, and where it lies."""
    mean, scale = answer.values[0], Scale.of_answer(answer)

    def x(number: float) -> float:
        return round(1000 * (min(max(number, low), high) - low) / (high - low), 1)

    shapes: list[Child] = [el("path", class_="range", d="M0 20H1000M0 12V28M1000 12V28")]
    if mean.low is not None and mean.high is not None:
        left, right = x(mean.low), x(mean.high)
        shapes.append(el("rect", class_="band", x=left, y=8, width=round(right - left, 1), height=24))
    if mean.value is not None:
        shapes.append(el("path", class_="dot", d=f"M{x(mean.value)} 20h0"))
    text = f"{scale.text(mean.value)} {scale.reach(mean.reach)}, on a range from {low:g} to {high:g}"
    return el(
        "figure",
        el("figcaption", scale.text(mean.value), " ", el("span", scale.reach(mean.reach), class_="reach")),
        el("svg", shapes, viewBox="0 0 1000 40", preserveAspectRatio="none", role="img", aria_label=text),
        el("p", el("span", f"{low:g}"), el("span", f"{high:g}"), class_="ends"),
        class_="mean",
    )


def other_numbers(others: Mapping[str, Sequence[Value]]) -> Html | None:
    """A table for each of the named estimates."""
    headings = ("#value", "#from", "#to")
    tables = [
        table(name, [name.capitalize(), *headings], [_row(value) for value in values])
        for name, values in others.items()
    ]
    return join(tables) if tables else None


def _row(value: Value) -> tuple[str, str, str, str]:
    scale = Scale.of("quantity" if value.signed else "share", reaches=[value.reach or 0.0])
    if value.low == value.high:  # a number that is known, and no estimate
        number = value.value
        return value.label, scale.text(number) if number is None else f"{number:,.3g}", "", ""
    return value.label, scale.text(value.value), scale.text(value.low), scale.text(value.high)


def together(answers: Sequence[AnswerCard]) -> AnswerCard | None:
    """The mean over the steps that are not withheld, as an answer of the last step; None with fewer than two steps.

    Its interval assumes that the errors of steps are independent, as they are for a question that asks everyone anew in
    every step. It is an interval for the mean of the truths of these steps.
    """
    shown = [answer for answer in answers if len(answer.values)]
    if len(shown) < 2:
        return None
    values = tuple(_mean(steps) for steps in zip(*(answer.values for answer in shown), strict=True))
    return replace(shown[-1], n=sum(answer.n for answer in shown), values=values)


def _mean(steps: Sequence[Value]) -> Value:
    known = [value.value for value in steps if value.value is not None]
    reaches = [value.reach for value in steps if value.reach is not None]
    last = steps[-1]
    if len(known) < len(steps) or len(reaches) < len(steps):
        return Value(last.code, last.label, None, None, None, last.signed)
    mean, reach = sum(known) / len(known), math.hypot(*reaches) / len(reaches)
    return Value(last.code, last.label, mean, mean - reach, mean + reach, last.signed)
