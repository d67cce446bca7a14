"""A question's releases over time: one value in a large chart, the largest ones in small charts.

A number over time: line, interval and marks as a drawing that needs no program, and all of it as a table.

A program on the page may replace the drawing by one that answers to the pointer; it reads the table.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hubbub.dashboard.alarms import AlarmHistory
from hubbub.dashboard.answers import LEVEL, Value, latest, ranked, value_at, values_of, why_withheld
from hubbub.dashboard.bars import fold
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join, step_time, ticks
from hubbub.questions.collection import Collection
from hubbub.service.alarms import AlarmsBody
from hubbub.service.base.api import ReleaseBody

_WIDTH, _HEIGHT = 1000, 240


class Point(NamedTuple):
    """A number at a time, its interval where it has one, and whether it is marked, an alarm was raised, or a new
    version of the collection begins.
    """

    time: float
    when: Html
    value: float | None
    low: float | None = None
    high: float | None = None
    marked: bool = False
    note: str = ""
    alarm: bool = False
    begins: bool = False


def band(
    points: Sequence[Point],
    *,
    name: str,
    title: Child,
    summary: str,
    scale: Scale,
    headings: Sequence[str],
    from_zero: bool = True,
    legend: str = "",
) -> Html:
    """A figure of at least two points, oldest first.

    Parameters
    ----------
    name
        An id that no other element of the page begins with.
    title, summary, legend
        What it shows; what can be seen in it, for those who do not see it; what its parts are.
    scale
        How its numbers are written.
    headings
        Of the table: of the time, of the number, of its interval, of the note. Without intervals, "" for the third.
    from_zero
        Whether zero is on the axis.
    """
    marks = ticks(*span_of(points, from_zero=from_zero), about=5)
    drawing = el(
        "div",
        el("ol", [el("li", scale.text(tick)) for tick in reversed(marks)], class_="ticks-y"),
        curve(points, marks, summary),
        el("ol", [el("li", points[i].when) for i in (0, len(points) // 2, -1)], class_="ticks-x"),
        class_="drawing",
    )
    table = el(
        "table",
        el("caption", title, class_="unseen"),
        el("thead", el("tr", [el("th", text, scope="col") for text in headings if text])),
        el("tbody", [_row(point, scale, headings) for point in reversed(points)]),
    )
    return el(
        "figure",
        el("figcaption", title),
        el("div", drawing, class_="plot", data_label=summary),
        el("p", legend, class_="note") if legend else None,
        fold(
            f"{name}-table",
            "As a table",
            el("div", table, class_="scroll", tabindex=0, role="region", aria_label="Table"),
        ),
        id=name,
        class_="chart",
        data_chart=scale.kind,
        data_decimals=scale.decimals,
        data_zero=from_zero,
        data_interval=bool(headings[2]),
    )


def span_of(points: Sequence[Point], *, from_zero: bool) -> tuple[float, float]:
    """The lowest and the highest that is drawn."""
    numbers = [end for point in points for end in (point.low, point.value, point.high) if end is not None]
    numbers += [0.0] if from_zero or not numbers else []
    return min(numbers), max(numbers)


def curve(points: Sequence[Point], marks: Sequence[float], summary: str) -> Html:
    """The drawing alone, between the first and the last of the marks; it fills whatever room it has."""
    start, span = points[0].time, (points[-1].time - points[0].time) or 1.0
    bottom, rise = marks[0], marks[-1] - marks[0]

    def x(point: Point) -> float:
        return round(_WIDTH * (point.time - start) / span, 1)

    def y(number: float) -> float:
        return round(_HEIGHT * (1 - (number - bottom) / rise), 1)

    lines = [el("path", class_="grid", d=f"M0 {y(tick)}H{_WIDTH}") for tick in marks]
    lines += [el("path", class_="alarmed", d=f"M{left} 0V{_HEIGHT}H{right}V0Z") for left, right in _alarms(points, x)]
    lines += [el("path", class_="begins", d=f"M{x(point)} 0V{_HEIGHT}") for point in points if point.begins]
    areas, curves, dots = [], [], []
    for run in _runs(points):
        if all(point.low is not None and point.high is not None for point in run):
            over = " ".join(f"{x(point)},{y(point.high or 0.0)}" for point in run)
            under = " ".join(f"{x(point)},{y(point.low or 0.0)}" for point in reversed(run))
            areas.append(el("path", class_="band", d=f"M{over} L{under}Z"))
        ends = " ".join(f"{x(point)},{y(point.value or 0.0)}" for point in run)
        curves.append(el("path", class_="curve", d=f"M{ends}" + ("h0" if len(run) == 1 else "")))
        # A line without length, with round ends: a dot that keeps its shape however the drawing is stretched.
        dots += [el("path", class_="dot", d=f"M{x(point)} {y(point.value or 0.0)}h0") for point in run if point.marked]
    return el(
        "svg",
        join(lines, areas, curves, dots),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=summary,
    )


def _alarms(points: Sequence[Point], x: Callable[[Point], float]) -> Iterator[tuple[float, float]]:
    """From where to where an alarm was raised: from each such point half the way to its neighbours."""
    places = [x(point) for point in points]
    for index, point in enumerate(points):
        if point.alarm:
            before, after = places[max(index - 1, 0)], places[min(index + 1, len(places) - 1)]
            yield round((before + places[index]) / 2, 1), round((places[index] + after) / 2, 1)


def _runs(points: Sequence[Point]) -> Iterator[list[Point]]:
    """The stretches without a gap."""
    run: list[Point] = []
    for point in points:
        if point.value is not None:
            run.append(point)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _row(point: Point, scale: Scale, headings: Sequence[str]) -> Html:
    cells: list[Child] = [el("th", point.when, scope="row", data_time=point.time), el("td", _data(point.value, scale))]
    if headings[2]:
        known = point.low is not None and point.high is not None
        cells.append(el("td", (_data(point.low, scale), " to ", _data(point.high, scale)) if known else ""))
    if headings[3]:
        cells.append(el("td", point.note))
    return el("tr", cells, data_marked=point.marked, data_alarm=point.alarm, data_begins=point.begins)


def _data(number: float | None, scale: Scale) -> Child:
    return "" if number is None else el("data", scale.text(number), value=number)


_GLANCES = 6


def over_time(
    collection: Collection, name: str, answers: Sequence[ReleaseBody], code: int | None, alarms: AlarmsBody
) -> Html | None:
    """A chart of one value, step by step, and of when its alarms were raised; None with fewer than two steps."""
    points = points_of(collection, answers, code)
    shown = latest(answers)
    if code is None or shown is None or len(points) < 2:
        return None
    label, scale = shown.labels[code], _scale(shown.kind, points)
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
    collection: Collection, name: str, answers: Sequence[ReleaseBody], code: int | None, link: Callable[[Value], str]
) -> Html | None:
    """Small charts of the values that are largest now, all on one scale."""
    shown = latest(answers)
    if shown is None or shown.kind != "share" or len(answers) < 2 or len(shown.labels) < 2:
        return None
    values = values_of(shown)
    lines = {value.code: points_of(collection, answers, value.code) for value in ranked(values)[:_GLANCES]}
    spans = [span_of(points, from_zero=True) for points in lines.values()]
    marks = sorted({min(low for low, _ in spans), 0.0, max(high for _, high in spans)})
    if len(marks) < 2:
        return None
    scale = _scale("share", [point for points in lines.values() for point in points])
    items = []
    for place, points in lines.items():
        value = values[place]
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


def points_of(collection: Collection, answers: Sequence[ReleaseBody], code: int | None) -> list[Point]:
    """One value of each release. Releases that published a new estimate are marked, if some did not."""
    stand_ins = any(not answer.published for answer in answers)
    return [_point(collection, answer, code, mark=stand_ins) for answer in answers]


def _point(collection: Collection, answer: ReleaseBody, code: int | None, *, mark: bool) -> Point:
    when, time = step_time(collection, answer.step), float(collection.opens(answer.step))
    value, withheld = value_at(answer, code), why_withheld(answer)
    if value is None:
        return Point(time, when, None, note=f"withheld: {withheld}" if withheld else "")
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
