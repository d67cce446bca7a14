"""The live demonstration as it is shown, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from hubbub.cli.bars import painted
from hubbub.cli.output import percent
from hubbub.cli.tables import plain_table

if TYPE_CHECKING:
    from hubbub.demo.alarm_receiver import DeliveredAlarm
    from hubbub.demo.live import Live, Look, Seen

_TOP, _FEW = 8, 3
_BAR = 20


def screen(live: Live, look: Look) -> RenderableType:
    """What a terminal shows while it runs: short enough for 24 lines."""
    parts = (_part(seen, _FEW) for seen in look.seen)
    return Group(_counted(look), *parts, *_alarms(live, look)[-1:], Text(f"{live.address}/", style="bold"))


def result(live: Live, look: Look) -> RenderableType:
    """What is printed at the end: tables, and what the devices were promised."""
    parts: list[RenderableType] = [_counted(look)]
    for seen in look.seen:
        parts += [_part(seen, _TOP), _covered(seen), Padding(_promised(seen), (1, 0, 1, 2))]
    return Group(*parts, *(_alarms(live, look) or [Text("No alarm was raised yet.", style="dim")]))


def answer(live: Live, look: Look) -> dict[str, Any]:
    """The result as JSON."""
    totals: dict[str, Any] = {
        "devices": live.devices,
        "processes": len(live.processes),
        "step_seconds": live.scenes[0].collection.step_seconds,
        "accepted": look.accepted,
        "rejected": look.rejected,
        "outcomes": look.outcomes,
    }
    alarms = [{"when": _when(live, alarm), "id": alarm.id, **alarm.data} for alarm in look.alarms]
    return {**totals, **{seen.scene.name: _scene(seen) for seen in look.seen}, "alarms": alarms}


def _alarms(live: Live, look: Look) -> list[Text]:
    """What the webhook was told, a line an event."""
    lines = []
    for alarm in look.alarms:
        told, state = alarm.data, f" ALARM {alarm.data['state']} "
        value, low, high = (percent(min(max(told[key], 0.0), 1.0)) for key in ("value", "low", "high"))
        said = f" {told['title']}, {_when(live, alarm)}: {value}"
        ends = f" ({low} to {high})"
        where = f", {told['direction']} {percent(told['threshold'])}" if told["state"] == "raised" else ""
        style = "bold white on red" if told["state"] == "raised" else "bold white on green"
        lines.append(Text.assemble((state, style), said, ends, where, ("; the webhook took it, signed", "dim")))
    return lines


def _when(live: Live, alarm: DeliveredAlarm) -> str:
    """The time in the data of the step that decided it."""
    return next(scene.when(alarm.data["step"]) for scene in live.scenes if scene.name == alarm.data["collection"])


def _scene(seen: Seen) -> dict[str, Any]:
    from hubbub.demo.live import covered

    rows = _rows(seen, None)
    return {
        "source": seen.scene.source,
        "question": seen.scene.question,
        "steps": seen.steps,
        "when": seen.when or None,
        "covered": None if seen.estimate is None else covered(seen.estimate, seen.truth),
        "estimates": rows,
        "promise": _promise(seen),
    }


def _counted(look: Look) -> Text:
    why = ", ".join(f"{count:,} {reason}" for reason, count in look.outcomes.items() if reason != "accepted" and count)
    return Text(f"{look.accepted:,} reports accepted, {look.rejected:,} rejected{f' ({why})' if why else ''}")


def _part(seen: Seen, most_rows: int) -> RenderableType:
    collection = seen.scene.collection
    title = collection.questions[seen.scene.question].title
    rule = Rule(f"[bold]{title}[/]", align="left", style="dim")
    if seen.estimate is None:
        return Group(rule, Text("the first step is not over yet", style="dim"))
    several = f"{seen.steps:,} steps together" if seen.scene.pooled and seen.steps > 1 else "one step"
    caption = f"{several}; the diamond is the truth" if seen.scene.pooled else f"{seen.when}; the diamond is the truth"
    table = plain_table("", "estimate", "95% interval", "truth", "", left=["", ""])
    rows = _rows(seen, most_rows, possible=True)
    most = max(max(row["high"], row["truth"]) for row in rows)
    for row in rows:
        ends = f"{percent(row['low'])} to {percent(row['high'])}"
        drawn = painted(row["estimate"], most, _BAR, mark=row["truth"])
        style = None if row["low"] > 0 else "dim"
        table.add_row(row["value"], percent(row["estimate"]), ends, percent(row["truth"]), drawn, style=style)
    return Group(rule, Text(caption, style="dim"), table)


def _rows(seen: Seen, most: int | None, *, possible: bool = False) -> list[dict[str, Any]]:
    """The largest estimates; of a stream all of them, in order, so that a line stays where it is.

    They are unbiased, or as far as they are possible, for people to read.
    """
    if seen.estimate is None:
        return []
    value, (low, high) = seen.estimate.value, seen.estimate.interval(0.95)
    if possible:
        value, low, high = seen.estimate.possible()
    names = seen.estimate.names()
    shown = seen.estimate.top(len(names) if most is None else most) if seen.scene.pooled else range(len(names))
    return [
        {
            "value": names[i],
            "estimate": float(value[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "truth": float(seen.truth[i]),
        }
        for i in shown
    ]


def _covered(seen: Seen) -> Text:
    from hubbub.demo.live import covered

    if seen.estimate is None:
        return Text("")
    size = len(seen.truth)
    return Text(f"{covered(seen.estimate, seen.truth)} of {size} intervals hold the truth.")


def _promise(seen: Seen) -> str:
    """What the question promises to a device."""
    from hubbub.authoring import promise

    start = f"{seen.scene.question}. "
    told = next(part for part in promise(seen.scene.collection).split("\n\n") if part.startswith(start))
    return told.removeprefix(start)


def _promised(seen: Seen) -> Text:
    return Text(f"What each device is promised. {_promise(seen)}", style="green")
