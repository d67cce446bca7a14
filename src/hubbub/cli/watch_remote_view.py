"""A watched collector as it is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from hubbub.cli.watch_chart import BAND, FAINT, YELLOW, written
from hubbub.cli.watch_view import fact, layout, legend, state_of, turns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.demo.remote_watch import RemoteWatch


def remote_frame(run: RemoteWatch, width: int, height: int, *, over: bool = False) -> RenderableType:
    """The view after the last moment, in a terminal of this size; without the facts once it is over."""
    facts = _facts(run)[-1:] if over else _facts(run)
    below = remote_summary(run) if over else []
    return layout(run, f"{run.collection} at {run.api.url}", run.name, facts, width, height, below)


def remote_summary(run: RemoteWatch) -> list[str]:
    """What there is to say at the end."""
    moments = run.moments
    known = sum(not math.isnan(moment.value) for moment in moments)
    lines = [f"{len(moments)} release{'s' * (len(moments) != 1)} of {run.question}, {known} of them with numbers."]
    if run.times is not None and moments:
        first, last = (run.times.label(moments[place].step) for place in (0, -1))
        lines.append(f"From {first} to {last} UTC.")
    if run.alarms:
        lines.append(f"Alarm: {turns(run, run.changes) or 'no change'}; now {'; '.join(run.alarms.raised) or 'quiet'}.")
    if run.away is not None:
        lines.append(f"The collector is away: {run.away}.")
    return lines


def _facts(run: RemoteWatch) -> list[Text]:
    now, show = run.moments[-1], written(run.share)
    if math.isnan(now.value):
        estimate = fact("estimate", ("no number", "bold"), f"  {run.withheld or 'nothing published yet'}")
    else:
        interval = "interval unknown" if math.isnan(now.low) else f"{show(now.low)} to {show(now.high)}"
        fresh = ("● published", f"bold {BAND[0, 1]}") if now.published else ("· approximated", FAINT)
        estimate = fact("estimate", (show(now.value), "bold"), f"  {interval}  ", fresh)
    step = f"step {now.step:,}" + ("" if run.times is None else f", {run.times.label(now.step)} UTC")
    people = "" if math.isnan(now.n) else f"; about {now.n:,.0f} devices"
    here = "it answers" if run.away is None else f"AWAY: {run.away}"
    alarms = run.alarms or ()
    quiet = turns(run, run.changes[-4:]) or (f"{len(alarms)} watched" if alarms else "none is set")
    raised = "; ".join(run.alarms.raised) if run.alarms is not None else ""
    return [
        fact("alarm", state_of(now.alarm), " ", (raised, "bold") if raised else quiet),
        estimate,
        fact("newest", step + people),
        fact("collector", (here, "" if run.away is None else f"bold {YELLOW}")),
        legend(),
    ]
