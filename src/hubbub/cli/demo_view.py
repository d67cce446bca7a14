"""The demonstrations as they are shown, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from hubbub.cli.output import found_rows, painted, percent, plain_table

if TYPE_CHECKING:
    from hubbub.demo.alarm_receiver import DeliveredAlarm
    from hubbub.demo.live import Live, LiveResults, SceneResult
    from hubbub.demo.shuffled import ShuffledDemo, ShuffledResult

_TOP, _FEW = 8, 3
_BAR = 20


def screen(live: Live, results: LiveResults) -> RenderableType:
    """What a terminal shows while it runs: short enough for 24 lines."""
    parts = (_part(result, _FEW) for result in results.scenes)
    return Group(_counted(results), *parts, *_alarms(live, results)[-1:], Text(f"{live.address}/", style="bold"))


def summary(live: Live, results: LiveResults) -> RenderableType:
    """What is printed at the end: tables, and what the devices were promised."""
    parts: list[RenderableType] = [_counted(results)]
    for result in results.scenes:
        parts += [_part(result, _TOP), _covered(result), Padding(_promised(result), (1, 0, 1, 2))]
    return Group(*parts, *(_alarms(live, results) or [Text("No alarm was raised yet.", style="dim")]))


def answer(live: Live, results: LiveResults) -> dict[str, Any]:
    """The result as JSON."""
    totals: dict[str, Any] = {
        "devices": live.devices,
        "processes": len(live.processes),
        "step_seconds": live.scenes[0].collection.step_seconds,
        "accepted": results.accepted,
        "rejected": results.rejected,
        "outcomes": results.outcomes,
    }
    alarms = [{"when": _when(live, alarm), "id": alarm.id, **alarm.data} for alarm in results.alarms]
    return {**totals, **{result.scene.name: _scene(result) for result in results.scenes}, "alarms": alarms}


def _alarms(live: Live, results: LiveResults) -> list[Text]:
    """The alarms that the webhook received, one line each."""
    lines = []
    for alarm in results.alarms:
        event, state = alarm.data, f" ALARM {alarm.data['state']} "
        value, low, high = (percent(min(max(event[key], 0.0), 1.0)) for key in ("value", "low", "high"))
        text = f" {event['title']}, {_when(live, alarm)}: {value} ({low} to {high})"
        if event["state"] == "raised":
            text += f", {event['direction']} {percent(event['threshold'])}"
        style = "bold white on red" if event["state"] == "raised" else "bold white on green"
        lines.append(Text.assemble((state, style), text, ("; received by the webhook, signed", "dim")))
    return lines


def _when(live: Live, alarm: DeliveredAlarm) -> str:
    """The time, in the data, of the step that raised or cleared the alarm."""
    return next(scene.when(alarm.data["step"]) for scene in live.scenes if scene.name == alarm.data["collection"])


def _scene(result: SceneResult) -> dict[str, Any]:
    from hubbub.demo.live import covered

    rows = _rows(result, None)
    return {
        "source": result.scene.source,
        "question": result.scene.question,
        "steps": result.steps,
        "when": result.when or None,
        "covered": None if result.estimate is None else covered(result.estimate, result.truth),
        "estimates": rows,
        "promise": _promise(result),
    }


def _counted(results: LiveResults) -> Text:
    why = ", ".join(
        f"{count:,} {reason}" for reason, count in results.outcomes.items() if reason != "accepted" and count
    )
    return Text(f"{results.accepted:,} reports accepted, {results.rejected:,} rejected{f' ({why})' if why else ''}")


def _part(result: SceneResult, most_rows: int) -> RenderableType:
    collection = result.scene.collection
    title = collection.questions[result.scene.question].title
    rule = Rule(f"[bold]{title}[/]", align="left", style="dim")
    if result.estimate is None:
        return Group(rule, Text("the first step is not over yet", style="dim"))
    several = f"{result.steps:,} steps together" if result.scene.pooled and result.steps > 1 else "one step"
    caption = f"{several if result.scene.pooled else result.when}; the diamond is the truth"
    table = plain_table("", "estimate", "95% interval", "truth", "", left=["", ""])
    rows = _rows(result, most_rows, possible=True)
    most = max(max(row["high"], row["truth"]) for row in rows)
    for row in rows:
        ends = f"{percent(row['low'])} to {percent(row['high'])}"
        drawn = painted(row["estimate"], most, _BAR, mark=row["truth"])
        style = None if row["low"] > 0 else "dim"
        table.add_row(row["value"], percent(row["estimate"]), ends, percent(row["truth"]), drawn, style=style)
    return Group(rule, Text(caption, style="dim"), table)


def _rows(result: SceneResult, most: int | None, *, possible: bool = False) -> list[dict[str, Any]]:
    """The largest estimates; of a stream all of them, in order, so that each line stays where it is.

    The numbers are the unbiased ones or, for people to read, those cut to what is possible.
    """
    if result.estimate is None:
        return []
    size = len(result.truth)
    shown = result.estimate.top(size if most is None else most) if result.scene.pooled else range(size)
    rows = found_rows(result.estimate.names(), result.estimate, result.truth, possible=possible)
    return [rows[i] for i in shown]


def _covered(result: SceneResult) -> Text:
    from hubbub.demo.live import covered

    if result.estimate is None:
        return Text("")
    size = len(result.truth)
    return Text(f"{covered(result.estimate, result.truth)} of {size} intervals hold the truth.")


def _promise(result: SceneResult) -> str:
    """What the question promises to a device."""
    from hubbub.authoring import promise

    start = f"{result.scene.question}. "
    paragraph = next(part for part in promise(result.scene.collection).split("\n\n") if part.startswith(start))
    return paragraph.removeprefix(start)


def _promised(result: SceneResult) -> Text:
    return Text(f"What each device is promised. {_promise(result)}", style="green")


def shuffled_answer(demo: ShuffledDemo, result: ShuffledResult) -> dict[str, Any]:
    """The result of shuffled reports as JSON."""
    from hubbub.demo.live import covered

    rows = found_rows(result.estimate.names(), result.estimate, result.truth, possible=False)
    return {
        "devices": demo.devices,
        "processes": len(demo.processes),
        "outcomes": result.outcomes,
        "batch": result.batch,
        "coalitions": [asdict(coalition) for coalition in result.coalitions],
        "shufflers": [shuffler["counts"] for shuffler in result.shufflers],
        "covered": covered(result.estimate, result.truth),
        "estimates": [rows[i] for i in result.estimate.top(len(rows))],
    }


def shuffled(answer: dict[str, Any]) -> RenderableType:
    """The result of shuffled reports: estimates, and what each coalition can learn of one report."""
    from hubbub.questions.words import rounded_up

    batch = answer["batch"]
    numbers = plain_table("", "estimate", "95% interval", "truth")
    for row in answer["estimates"][:_TOP]:
        ends = f"{percent(max(row['low'], 0.0))} to {percent(min(max(row['high'], 0.0), 1.0))}"
        share = percent(min(max(row["estimate"], 0.0), 1.0))
        numbers.add_row(row["value"], share, ends, percent(row["truth"]))
    parties = plain_table("who works together", "epsilon", "delta")
    for coalition in answer["coalitions"]:
        delta = f"{coalition['delta']:g}" if coalition["delta"] else "0"
        parties.add_row(coalition["who"], rounded_up(coalition["epsilon"]), delta)
    local, central = answer["coalitions"][-1], answer["coalitions"][0]
    return Group(
        Text(f"One batch: {batch['people']:,} people's reports and {batch['fakes']:,} fakes, shuffled together."),
        Text("Which emoji is used most?", style="bold"),
        numbers,
        Text(f"{answer['covered']} of {len(answer['estimates'])} intervals hold the truth.\n"),
        Text("What can be learned of one report of the batch", style="bold"),
        parties,
        Text(
            f"The local epsilon, {rounded_up(local['epsilon'])}, is what a device spends; it holds even if everyone "
            f"works together. The central epsilon, {rounded_up(central['epsilon'])} with delta "
            f"{central['delta']:g}, holds against the collector alone, for this batch.",
            style="green",
        ),
    )
