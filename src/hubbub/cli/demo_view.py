"""The demonstrations: how they are run, in a terminal or for a result, and how they are shown."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from hubbub.cli.output import emit, found_rows, page, painted, percent, plain_table, say
from hubbub.collection.time import duration_text
from hubbub.core.errors import HubbubError
from hubbub.demo.alarm_receiver import DeliveredAlarm
from hubbub.demo.live import Live, LiveResults, SceneResult, covered

if TYPE_CHECKING:
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
    rows = found_rows(result.estimate.names(), result.estimate, result.truth, possible=False)
    return {
        "devices": demo.devices,
        "processes": len(demo.processes),
        "outcomes": result.outcomes,
        "batches": list(result.batches),
        "present": result.present,
        "title": demo.collection.questions[demo.scene.question].title,
        "coalitions": [asdict(coalition) for coalition in result.coalitions],
        "shufflers": [shuffler["counts"] for shuffler in result.shufflers],
        "covered": covered(result.estimate, result.truth),
        "estimates": [rows[i] for i in result.estimate.top(len(rows))],
    }


def shuffled(answer: dict[str, Any]) -> RenderableType:
    """The result of shuffled reports: estimates, and what each coalition can learn of one report."""
    from hubbub.questions.words import rounded_up

    batches = answer["batches"]
    people, fakes = (sum(batch[name] for batch in batches) for name in ("people", "fakes"))
    if len(batches) == 1:
        came = f"One batch: {people:,} people's reports and {fakes:,} fakes, shuffled together."
        of, within = "one report of the batch", "for this batch"
    else:
        came = (
            f"{len(batches)} batches, one for each level and step: {people:,} reports of {answer['devices']:,} people. "
            f"On each level at least {answer['present']:,} devices missed none."
        )
        of, within = "all reports of a device that missed no batch", "for all batches of these steps"
    numbers = plain_table("", "estimate", "95% interval", "truth")
    for row in answer["estimates"][:_TOP]:
        ends = f"{percent(max(row['low'], 0.0))} to {percent(min(max(row['high'], 0.0), 1.0))}"
        share = percent(min(max(row["estimate"], 0.0), 1.0))
        numbers.add_row(row["value"], share, ends, percent(row["truth"]))
    parties = plain_table("who works together", "epsilon", "delta")
    parties.columns[0].no_wrap = False  # long names of parties leave room for the numbers
    for coalition in answer["coalitions"]:
        delta = f"{coalition['delta']:g}" if coalition["delta"] else "0"
        parties.add_row(coalition["who"], rounded_up(coalition["epsilon"]), delta)
    central = answer["coalitions"][0]
    local = max(answer["coalitions"], key=lambda coalition: coalition["epsilon"])
    return Group(
        Text(came),
        Text(answer["title"], style="bold"),
        numbers,
        Text(f"{answer['covered']} of {len(answer['estimates'])} intervals hold the truth.\n"),
        Text(f"What can be learned of {of}", style="bold"),
        parties,
        Text(
            f"The local epsilon, {rounded_up(local['epsilon'])}, is what a device spends; it holds even if everyone "
            f"works together. The central epsilon, {rounded_up(central['epsilon'])} with delta "
            f"{central['delta']:g}, holds against the collector alone, {within}.",
            style="green",
        ),
    )


_GRACE = 60.0
"""Seconds that a run goes on beyond its end, if it has nothing to show yet: a machine may be busy."""


class NothingYet(HubbubError):
    """There is no result to print."""


def run_live(
    live: Live, *, seconds: float | None, quiet: bool, browser: bool, as_json: bool, until_alarm: bool = False
) -> None:
    """Start everything, follow it for some seconds or until Ctrl-C, stop everything, and print the result.

    With `until_alarm` it goes on until the webhook was told of an alarm, if that is soon.
    """
    with _terminable():
        with live:
            results = _follow(live, seconds, quiet=quiet, silent=as_json, browser=browser, until_alarm=until_alarm)
        if quiet and not results.complete:
            step = live.scenes[0].collection.step_seconds
            raise NothingYet(
                f"nothing was released; steps are {duration_text(step)} long, and this machine may be busy"
            )
        if as_json:
            return emit(answer(live, results))
        page().print(summary(live, results))
    return None


def run_shuffled(demo: ShuffledDemo, *, as_json: bool) -> None:
    """Start everything, wait for the first release, stop everything, and print the result."""
    from hubbub.demo.shuffled import HORIZON

    with demo:
        collection = demo.collection
        if not as_json:
            say(f"the page: {demo.address}/; the shufflers: {', '.join(demo.urls)}")
            say(f"{demo.devices:,} devices, each of which seals its report to all of them; {demo.scene.source}")
        end = collection.opens(HORIZON if demo.stream else 1) + collection.lateness_seconds + _GRACE
        while (result := demo.result()) is None:
            if time.time() > end:
                raise NothingYet("nothing was released; this machine may be busy")
            time.sleep(0.5)
    answer = shuffled_answer(demo, result)
    if as_json:
        return emit(answer)
    page().print(shuffled(answer))
    return None


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end things as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _introduce(live: Live, seconds: float | None) -> None:
    say(f"the page: {live.address}/")
    for scene in live.scenes:
        say(f"{scene.name}: {live.devices:,} devices; {scene.source}")
    say("Ctrl-C stops everything" if seconds is None else f"for {seconds:g} seconds")


def _open(address: str) -> None:
    """Open the page where there is a screen: a browser made of text would take the terminal."""
    import webbrowser

    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)


def _follow(
    live: Live, seconds: float | None, *, quiet: bool, silent: bool, browser: bool, until_alarm: bool
) -> LiveResults:
    """Ask for the results once a second, show them, and return the last; Ctrl-C ends a run that has no end."""
    end = None if seconds is None else time.monotonic() + seconds
    results = live.results()
    try:
        if not silent:
            _introduce(live, seconds)
        if browser:
            _open(live.address)
        with _screen(live, quiet) as show:
            while end is None or time.monotonic() < end:
                time.sleep(1.0 if end is None else max(0.0, min(1.0, end - time.monotonic())))
                results = live.results()
                show(results)
            while end is not None and time.monotonic() < end + _GRACE:
                if results.complete and (results.alarms or not until_alarm):
                    break
                time.sleep(0.5)
                results = live.results()
    except KeyboardInterrupt:
        if end is not None:
            raise
    return results


@contextmanager
def _screen(live: Live, quiet: bool) -> Iterator[Callable[[LiveResults], object]]:
    """Yields a function that shows results."""
    if quiet:
        yield lambda results: None
        return
    from rich.live import Live as Screen

    with Screen(console=page(), auto_refresh=False, transient=True) as shown:
        yield lambda results: shown.update(screen(live, results), refresh=True)
