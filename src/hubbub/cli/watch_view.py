"""A watched stream as it is shown: the live view, and what there is to say at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from hubbub.cli.bars import bar
from hubbub.cli.output import shorten
from hubbub.cli.watch_chart import BAND, FAINT, GUTTER, WHITE, YELLOW, chart, written
from hubbub.collection.duration import duration_text

if TYPE_CHECKING:
    from hubbub.demo.moment import Moment, Watched
    from hubbub.demo.watch import Watch

_WIDEST, _LONGEST = 110, 80  # characters of the view, steps of the chart
_LABEL, _BAR = 12, 12  # left of the facts, of what was spent
_AROUND = 5  # lines of the view that are neither chart nor facts
_QUIET = "#3f7f4f"


def summary(run: Watch) -> list[str]:
    """What there is to say at the end."""
    moments, show = run.moments, written(run.share)
    total, last = len(moments), moments[-1]
    over = [moment.step for moment in moments if moment.truth > run.alarm.above]
    ends = [_when(run, step) for step in over[:1] + over[-1:]]
    truth = f"in {len(over)} steps, from {ends[0]} to {ends[1]}" if over else "in no step"
    return [
        f"{total} releases: {run.published} published, {total - run.published} approximated by what was known.",
        f"Alarm: {turns(run, run.changes) or 'never on'}.",
        f"The truth was above {show(run.alarm.above)} {truth}.",
        f"{run.covered} of {run.known} intervals (95%) held the truth.",
        f"Sent, both ways: {last.bits / total:.3g} bits a device and step.",
        f"Each of the {run.scene.stream.n:,} devices kept a ledger, and none had to refuse:",
        f"the most that one spent in any {run.w} steps is {run.most_spent:.6g} of epsilon {run.epsilon:g}.",
    ]


def frame(run: Watch, width: int, height: int, *, over: bool = False) -> RenderableType:
    """The view after the last moment, in a terminal of this size; without the facts once it is over."""
    facts = _facts(run)[-1:] if over else _facts(run)
    about = f"{run.scene.name} ({run.scene.source})"
    return layout(run, title(run), about, facts, width, height, summary(run) if over else [])


def title(run: Watch) -> str:
    """How the devices are asked, and how many there are."""
    window = f"{run.w} steps" if run.times is None else f"{run.w} steps of {duration_text(run.times.seconds)}"
    return f"{run.method}, epsilon {run.epsilon:g} in any {window}, {run.scene.stream.n:,} simulated devices"


def layout(
    run: Watched, head: str, about: str, facts: list[Text], width: int, height: int, below: list[str]
) -> RenderableType:
    """A head, what is watched, the chart, facts; no higher than leaves room for the lines below and a prompt."""
    width = min(width, _WIDEST)
    columns = max(min(width - GUTTER, _LONGEST), 8)
    lines = [Text.assemble(("hubbub watch", "bold"), f"  {head}"), Text(shorten(about, width), FAINT)]
    # Below it stand the prompt and, once it is over, the summary and the plot's name.
    reserved = 2 + sum(math.ceil(len(line) / width) for line in below) if below else 1
    lines += chart(run, max(height - _AROUND - len(facts) - reserved, 3), columns)
    lines += [Text(), *facts]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        line.no_wrap = True
    return Group(*lines)


def fact(label: str, *parts: str | tuple[str, str]) -> Text:
    """A line of facts."""
    return Text.assemble((label.ljust(_LABEL), FAINT), *parts)


def state_of(alarm: bool) -> tuple[str, str]:
    """Whether the alarm is on, in its colour."""
    return (" ALARM ", f"{WHITE} on {BAND[1, 1]}") if alarm else (" quiet ", f"{WHITE} on {_QUIET}")


def _facts(run: Watch) -> list[Text]:
    now, alarm, show = run.moments[-1], run.alarm, written(run.share)
    rule = f"on once surely above {show(alarm.above)}, off once surely below {show(alarm.below)}"
    estimate = "nothing published yet" if math.isnan(now.value) else f"{show(now.value)}  "
    interval = "" if math.isnan(now.value) else f"{show(now.low)} to {show(now.high)}  "
    if interval and math.isnan(now.low):
        interval = "interval unknown  "
    spent = bar(now.spent, run.epsilon, _BAR).ljust(_BAR, "·")
    average = f"{now.spent:.2f} of {run.epsilon:g} in the last {run.w} steps on average, at most {run.most_spent:.4g}"
    changes = turns(run, run.changes[-4:])
    where = f"step {now.step} of {run.steps}" + ("" if run.times is None else f", {_when(run, now.step)} UTC")
    return [
        fact("alarm", state_of(now.alarm), " ", (changes or rule, "bold" if now.alarm else "")),
        fact(
            "estimate",
            (estimate, "bold"),
            interval,
            ("● published  ", f"bold {BAND[0, 1]}") if now.published else ("· approximated  ", FAINT),
            (f"truth {show(now.truth)}", FAINT),
        ),
        fact("spent", (spent, BAND[0, 1]), f" {average}"),
        fact("sent", f"{now.bits / now.step:.3g} bits a device and step; {run.published} of {now.step} published"),
        fact("population", f"about {now.n:,.0f} devices, estimated; {where}"),
        legend().append("╌ alarm  ", YELLOW).append("· truth (these devices are simulated)", FAINT),
    ]


def legend() -> Text:
    """What the chart's lines are."""
    return Text.assemble(("━ estimate  ", "bold"), ("█ ", BAND[0, 1]), "95% interval  ")


def turns(run: Watched, changes: list[Moment]) -> str:
    """When the alarm went on or off."""
    at = "at step " if run.times is None else "at "
    return ", ".join(f"{'on' if moment.alarm else 'off'} {at}{_when(run, moment.step)}" for moment in changes)


def _when(run: Watched, step: int) -> str:
    return str(step) if run.times is None else run.times.label(step)
