"""What a release says: its numbers, and a headline that claims no more than the intervals allow."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
from msgspec import UNSET, UnsetType, structs

from hubbub.consistency.guide import method_named
from hubbub.dashboard.layout import table
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join
from hubbub.service.base.api import EstimateBody, Numbers, ReleaseBody

LEVEL = 0.95
"""How often intervals hold the truth."""

Standing = Literal["clear", "zero", "unknown"]


class Value(NamedTuple):
    """One number of a release: the position and name of what it counts, the estimate and the ends of its interval."""

    code: int
    label: str
    value: float | None
    low: float | None
    high: float | None
    signed: bool = False
    """Whether it may be below zero: a quantity, not a share."""
    consistent: float | None = None
    """The same share made consistent with the others, where the question asks for it."""

    @property
    def reach(self) -> float | None:
        """The distance from the estimate to the farther end of its interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return max(self.value - self.low, self.high - self.value)

    def possible(self, least: float, most: float) -> Self:
        """The same, cut to what is possible."""
        numbers = (self.value, self.low, self.high, self.consistent)
        ends = (None if end is None else min(max(end, least), most) for end in numbers)
        value, low, high, consistent = ends
        return self._replace(value=value, low=low, high=high, consistent=consistent)

    @property
    def standing(self) -> Standing:
        """Whether it differs clearly from zero: its whole interval is above zero, or below where that is possible."""
        if self.value is None or self.low is None or self.high is None:
            return "unknown"
        return "clear" if self.low > 0 or (self.signed and self.high < 0) else "zero"


def values_of(estimate: EstimateBody) -> list[Value]:
    """The numbers of an estimate, in the order of their codes; none if it is withheld."""
    columns = (estimate.value or (), estimate.low or (), estimate.high or ())
    signed = estimate.kind != "share"
    rows = zip(estimate.labels, *columns, strict=True) if estimate.value is not None else ()
    values = [Value(code, *row, signed) for code, row in enumerate(rows)]
    if isinstance(estimate.consistent, UnsetType) or estimate.consistent.value is None:
        return values
    shares = estimate.consistent.value
    return [value._replace(consistent=share) for value, share in zip(values, shares, strict=True)]


def value_at(estimate: EstimateBody, code: int | None) -> Value | None:
    """One of the numbers, if it is there."""
    if code is None or estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    if code >= len(estimate.value):
        return None
    ends = (estimate.value[code], estimate.low[code], estimate.high[code])
    return Value(code, estimate.labels[code], *ends, estimate.kind != "share")


def possible(answer: ReleaseBody, low: float | None = None, high: float | None = None) -> ReleaseBody:
    """The same release with values and intervals cut to what is possible: what people are shown.

    Of shares that is from 0 to 1, of other numbers from `low` to `high`, where these are known. The truth is there,
    so that a cut interval holds it whenever the whole one does. What is added up begins from the whole.
    """
    least, most = (0.0, 1.0) if answer.kind == "share" else (-math.inf, math.inf)
    least, most = least if low is None else low, most if high is None else high

    def cut(numbers: Numbers) -> Numbers:
        if numbers is None:
            return None
        inside = np.clip(np.array(numbers, dtype=np.float64), least, most)  # null becomes NaN
        return [None if math.isnan(number) else number for number in inside.tolist()]

    told = answer.consistent
    if not isinstance(told, UnsetType):
        told = structs.replace(told, value=cut(told.value))
    raw = {name: cut(getattr(answer, name)) for name in ("value", "low", "high")}
    return structs.replace(answer, **raw, consistent=told)


def scale_of(kind: str, values: Sequence[Value]) -> Scale:
    """How the numbers are written."""
    return Scale.of(kind, reaches=(value.reach for value in values if value.reach is not None))


def ranked(values: Sequence[Value]) -> list[Value]:
    """The values, largest first; those that do not differ clearly from zero come last."""
    return sorted(values, key=lambda value: (value.standing != "clear", -(value.value or 0.0), value.code))


def others_of(answer: ReleaseBody) -> dict[str, EstimateBody]:
    """The other estimates of a release by name, such as the quantiles of a distribution."""
    if why_withheld(answer) is not None:
        return {}
    _, *others = answer.estimates.items()
    return {name: estimate for name, estimate in others if estimate.value}


def why_withheld(answer: ReleaseBody) -> str | None:
    """Why nobody may see the numbers, or why there are none."""
    if answer.withheld is None and not answer.value and answer.stopped is not None:
        return f"stopped: {answer.stopped}"
    return answer.withheld


def latest(answers: Sequence[ReleaseBody]) -> ReleaseBody | None:
    """The latest release that is not withheld."""
    return next((answer for answer in reversed(answers) if answer.value), None)


def chosen_code(answers: Sequence[ReleaseBody], wanted: int | None) -> int | None:
    """The code of the value to show in the large chart: the wanted one if it exists, else the largest."""
    shown = latest(answers)
    if shown is None:
        return None
    return wanted if wanted is not None and 0 <= wanted < len(shown.labels) else ranked(values_of(shown))[0].code


_MOST_NAMED = 3
_BIAS = {
    "none": "none: right on average",
    "ratio": "small compared with the error: each number is a ratio of two unbiased estimates; the intervals hold",
    "consistent": "small: the values are adjusted to be consistent, which adds a bias and reduces the error",
    "heuristic": "possible: the method does not rule it out, and intervals may be too narrow",
}


def headline(answer: ReleaseBody) -> Html:
    """What the release says, in a sentence."""
    withheld = why_withheld(answer)
    if withheld is not None:
        return join(f"Withheld: {withheld}.")
    if answer.bias == "ratio" and answer.kind == "share":
        return join("Shares within each group, and how two groups differ:")
    return sentence_of(values_of(answer), answer.kind)


def sentence_of(values: Sequence[Value], kind: str = "share") -> Html:
    """What numbers say, in a sentence.

    Example:
        >>> a, b, c = Value(0, "a", 0.6, 0.5, 0.7), Value(1, "b", 0.3, 0.2, 0.4), Value(2, "c", 0.25, 0.15, 0.35)
        >>> sentence_of([a, b])
        '<bdi>a</bdi> is the most common: <strong>60%</strong> ± 10.'
        >>> sentence_of([b, c])
        'The most common is <bdi>b</bdi> or <bdi>c</bdi>: the reports so far do not show which.'
        >>> sentence_of([Value(0, "a", 0.6, -0.1, 1.3)])
        'No value is clearly above zero yet: there are too few reports for this number of values.'
        >>> sentence_of([a, b], "quantity")
        '<bdi>a</bdi> is the highest: <strong>0.60</strong> ± 0.10.'
    """
    scale = scale_of(kind, values)
    if kind != "share" and len(values) == 1:
        return join("On average ", _number(values[0], scale), ".")
    in_order = ranked(values)
    if kind != "share":
        return _highest(in_order, scale)
    if len(in_order) == 1 and in_order[0].standing == "clear":
        return join(_name(in_order[0]), ": ", _number(in_order[0], scale), ".")
    if not in_order or in_order[0].standing == "unknown":
        return join("The errors of these numbers are not known.")
    if in_order[0].standing == "zero":
        return join("No value is clearly above zero yet: there are too few reports for this number of values.")
    # All values that may be larger than the first: also those drawn in grey, and those whose error is not known.
    first = [value for value in in_order if value.high is None or value.high >= (in_order[0].low or 0.0)]
    if len(first) == 1:
        return join(_name(in_order[0]), " is the most common: ", _number(in_order[0], scale), ".")
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


def consistency_note(estimate: EstimateBody) -> Html | None:
    """What the consistent shares next to the estimates are."""
    if isinstance(estimate.consistent, UnsetType):
        return None
    method = method_named(estimate.consistent.method)
    return el(
        "p",
        el("b", "Consistent"),
        f" shares, the lines across the bars, are made from the estimates by {method.title}: {method.does}. Taken "
        "together they mostly err less; a single one is biased, and may err more. The intervals are those of the "
        "estimates, extended to a consistent share that lies outside.",
        class_="note",
    )


_MOST_FORGED = 20


def forged_table(answer: ReleaseBody, low: float | None = None, high: float | None = None) -> Html | None:
    """The intervals next to those that hold even if a part of the devices is forged; None where nothing is known.

    Numbers are cut to what is possible: from 0 to 1 for shares, others from `low` to `high`, where these are known.
    """
    told = next((each for each in (answer, *answer.estimates.values()) if not isinstance(each.forged, UnsetType)), None)
    if told is None or isinstance(told.forged, UnsetType) or told.forged.low is None or told.forged.high is None:
        return None
    least, most = (0.0, 1.0) if told.kind == "share" else (-math.inf, math.inf)
    least, most = least if low is None else low, most if high is None else high
    values = [value.possible(least, most) for value in values_of(told)]
    ends = zip(told.forged.low, told.forged.high, strict=True)
    wider = [
        value._replace(low=end, high=other).possible(least, most)
        for value, (end, other) in zip(values, ends, strict=True)
    ]
    scale = scale_of(told.kind, wider)
    rows = [
        (_name(plain), _between(scale, plain), _between(scale, wide))
        for plain, wide in sorted(zip(values, wider, strict=True), key=lambda pair: -(pair[0].value or 0.0))
    ]
    part = f"{100 * told.forged.devices:g}% of the devices are forged"
    note = f"The last column holds the truth as often as the intervals if at most {part}, whatever they send."
    return el(
        "details",
        el("summary", f"What if {part}?"),
        table(
            "Intervals, and with forged devices",
            ["Value", "#95% interval", "#At most that many forged"],
            rows[:_MOST_FORGED],
        ),
        el("p", note, class_="note"),
    )


def _between(scale: Scale, value: Value) -> str:
    if value.low is None or value.high is None:
        return "unknown"
    return f"{scale.text(value.low)} to {scale.text(value.high)}"


def bias_text(answer: ReleaseBody) -> str:
    """What the bias of a release is, in words."""
    if answer.bias != "consistent" and not isinstance(answer.centre, UnsetType):
        return "possible: values are smoothed, or corrected on average; the intervals do not rest on that, and hold"
    return _BIAS[answer.bias]


def _name(value: Value) -> Html:
    return el("bdi", value.label)


def _number(value: Value, scale: Scale) -> Html:
    return join(el("strong", scale.text(value.value)), " ", scale.reach(value.reach))


def _listed(names: list[Html], *, last: str) -> Html:
    parts: list[Child] = []
    for place, name in enumerate(names):
        parts += [None if place == 0 else last if place == len(names) - 1 else ", ", name]
    return join(parts)


def mean_figure(answer: ReleaseBody, low: float, high: float) -> Html:
    """The number, and where it lies."""
    mean = values_of(answer)[0]
    scale = scale_of(answer.kind, [mean])

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


def other_numbers(answer: ReleaseBody) -> Html | None:
    """A table for each of the other estimates."""
    headings = ("#value", "#from", "#to")
    tables = [
        table(name, [name.capitalize(), *headings], [_row(value) for value in values_of(estimate)])
        for name, estimate in others_of(answer).items()
    ]
    return join(tables) if tables else None


def _row(value: Value) -> tuple[str, str, str, str]:
    scale = Scale.of("quantity" if value.signed else "share", reaches=[value.reach or 0.0])
    if value.low == value.high:  # a number that is known, and no estimate
        number = value.value
        return value.label, scale.text(number) if number is None else f"{number:,.3g}", "", ""
    return value.label, scale.text(value.value), scale.text(value.low), scale.text(value.high)


def pooled(answers: Sequence[ReleaseBody]) -> ReleaseBody | None:
    """The mean over the steps that are not withheld, as a release of the last step; None with fewer than two steps.

    Its interval assumes that the errors of steps are independent, as they are for a question that asks everyone anew in
    every step. It is an interval for the mean of the truths of these steps.
    """
    shown = [answer for answer in answers if answer.value]
    if len(shown) < 2:
        return None
    rows = [_mean(steps) for steps in zip(*map(values_of, shown), strict=True)]
    value, low, high = (list(column) for column in zip(*rows, strict=True))
    n = sum(answer.n for answer in shown)
    return structs.replace(shown[-1], n=n, value=value, low=low, high=high, consistent=UNSET)


def _mean(steps: Sequence[Value]) -> tuple[float | None, float | None, float | None]:
    """The mean and the ends of its interval."""
    known = [value.value for value in steps if value.value is not None]
    reaches = [value.reach for value in steps if value.reach is not None]
    if len(known) < len(steps) or len(reaches) < len(steps):
        return None, None, None
    mean, reach = sum(known) / len(known), math.hypot(*reaches) / len(reaches)
    return mean, mean - reach, mean + reach
