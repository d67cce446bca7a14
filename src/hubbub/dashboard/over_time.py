"""A question's releases over time: one value in a large chart, the largest ones in small charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hubbub.collection import Collection
from hubbub.dashboard.alarm_history import AlarmHistory
from hubbub.dashboard.answer import LEVEL, AnswerCard, Value
from hubbub.dashboard.band import Point, band, curve, span_of
from hubbub.dashboard.markup import Html, el
from hubbub.dashboard.words import Scale, count, step_time

__all__ = ["at_a_glance", "chosen_code", "latest", "over_time"]

_GLANCES = 6


def over_time(
    collection: Collection, name: str, answers: Sequence[AnswerCard], code: int | None, alarms: Mapping[str, Any]
) -> Html | None:
    """A chart of one value, step by step, and of when its alarms were raised; None with fewer than two steps."""
    points = points_of(collection, answers, code)
    shown = latest(answers)
    if code is None or shown is None or len(points) < 2:
        return None
    label, scale = shown.values[code].label, _scale(shown.kind, points)
    history = AlarmHistory(alarms, name, label)
    points = [
        point._replace(alarm=True, note=f"{point.note}; alarm" if point.note else "alarm")
        if history.raised_at(answer.step)
        else point
        for point, answer in zip(points, answers, strict=True)
    ]
    points = [
        point._replace(begins=True, note=", ".join(filter(None, [point.note, f"version {answer.version} begins"])))
        if before is not None and answer.version != before.version
        else point
        for point, answer, before in zip(points, answers, [None, *answers], strict=False)
    ]
    legend = f"Line: the estimate. Band: its {LEVEL:.0%} interval."
    if any(point.marked for point in points):
        legend += " Dots: steps that published a new estimate; the steps between carry on from earlier ones."
    if any(point.alarm for point in points):
        legend += " Shaded: steps in which an alarm was raised."
    if any(point.begins for point in points):
        legend += " Upright lines: a new version of the collection begins, in which the question goes on."
    return band(
        points,
        name=f"q-{name}-time",
        title=[el("bdi", label), ", step by step"],
        summary=_summary(label, points, scale),
        scale=scale,
        headings=("Step", "Estimate", f"{LEVEL:.0%} interval", "Made from"),
        from_zero=shown.kind == "share",
        legend=legend,
    )


def at_a_glance(
    collection: Collection, name: str, answers: Sequence[AnswerCard], code: int | None, link: Callable[[Value], str]
) -> Html | None:
    """Small charts of the values that are largest now, all on one scale."""
    shown = latest(answers)
    if shown is None or shown.kind != "share" or len(answers) < 2 or len(shown.values) < 2:
        return None
    lines = {value.code: points_of(collection, answers, value.code) for value in shown.ranked()[:_GLANCES]}
    spans = [span_of(points, from_zero=True) for points in lines.values()]
    marks = sorted({min(low for low, _ in spans), 0.0, max(high for _, high in spans)})
    if len(marks) < 2:
        return None
    scale = _scale("share", [point for points in lines.values() for point in points])
    items = []
    for place, points in lines.items():
        value = shown.values[place]
        drawing = curve([point._replace(marked=False) for point in points], marks, _summary(value.label, points, scale))
        link_to = el(
            "a",
            el("span", el("bdi", value.label), el("b", scale.text(value.value)), class_="line"),
            drawing,
            href=link(value),
            id=f"q-{name}-glance-{place}",
            aria_current="true" if place == code else None,
        )
        items.append(el("li", link_to))
    title = f"q-{name}-glances"
    note = f"All on one scale, from {scale.text(marks[0])} to {scale.text(marks[-1])}."
    return el(
        "section",
        el("h2", "The largest, at a glance", id=title),
        el("ul", items, class_="glances"),
        el("p", note, class_="note"),
        aria_labelledby=title,
    )


def points_of(collection: Collection, answers: Sequence[AnswerCard], code: int | None) -> list[Point]:
    """One value of each release. Releases that published a new estimate are marked, if some did not."""
    stand_ins = any(not answer.published for answer in answers)
    return [_point(collection, answer, code, mark=stand_ins) for answer in answers]


def latest(answers: Sequence[AnswerCard]) -> AnswerCard | None:
    """The latest release that is not withheld."""
    return next((answer for answer in reversed(answers) if answer.values), None)


def chosen_code(answers: Sequence[AnswerCard], wanted: int | None) -> int | None:
    """The code of the value to show in the large chart: the wanted one if it exists, else the largest."""
    shown = latest(answers)
    if shown is None:
        return None
    return wanted if wanted is not None and 0 <= wanted < len(shown.values) else shown.ranked()[0].code


def _point(collection: Collection, answer: AnswerCard, code: int | None, *, mark: bool) -> Point:
    when, time = step_time(collection, answer.step), float(collection.opens(answer.step))
    if code is None or code >= len(answer.values):
        return Point(time, when, None, note=f"withheld: {answer.withheld}" if answer.withheld else "")
    value = answer.values[code]
    note = count(answer.n, "report") if answer.published else "the release before"
    return Point(time, when, value.value, value.low, value.high, mark and answer.published, note)


def _scale(kind: str, points: Sequence[Point]) -> Scale:
    known = [(point.low, point.high) for point in points]
    return Scale.of(kind, reaches=[(high - low) / 2 for low, high in known if low is not None and high is not None])


def _summary(label: str, points: Sequence[Point], scale: Scale) -> str:
    known = [point.value for point in points if point.value is not None]
    if not known:
        return f"{label}: nothing is known yet."
    return (
        f"{label} over {count(len(points), 'step')}: from {scale.text(known[0])} to {scale.text(known[-1])}, never "
        f"below {scale.text(min(known))} nor above {scale.text(max(known))}."
    )
