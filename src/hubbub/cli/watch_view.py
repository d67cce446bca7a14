"""A watched stream as it is shown: the live view, what there is to say at the end, the figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from hubbub.cli.bars import bar
from hubbub.cli.output import shorten
from hubbub.cli.watch_chart import BAND, FAINT, GUTTER, WHITE, YELLOW, chart, written
from hubbub.core.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hubbub.demo.watch import Moment, Watch

__all__ = ["figure", "frame", "summary"]

_WIDEST, _LONGEST = 110, 80  # characters of the view, steps of the chart
_LABEL, _BAR = 12, 12  # left of the facts, of what was spent
_AROUND = 5  # lines of the view that are neither chart nor facts
_QUIET = "#3f7f4f"


def summary(run: Watch) -> list[str]:
    """What there is to say at the end."""
    moments, show = run.moments, written(run.scene)
    total, last = len(moments), moments[-1]
    over = [one.step for one in moments if one.truth > run.monitor.above]
    truth = f"in {len(over)} steps, from {over[0]} to {over[-1]}" if over else "in no step"
    return [
        f"{total} releases: {run.published} published, {total - run.published} approximated by what was known.",
        f"Alarm: {_turns(run.changes) or 'never on'}.",
        f"The truth was above {show(run.monitor.above)} {truth}.",
        f"{run.covered} of {run.known} intervals (95%) held the truth.",
        f"Sent, both ways: {last.bits / total:.3g} bits a device and step.",
        f"Each of the {run.scene.stream.n:,} devices kept a ledger, and none had to refuse:",
        f"the most that one spent in any {run.w} steps is {run.most_spent:.6g} of epsilon {run.epsilon:g}.",
    ]


def frame(run: Watch, width: int, height: int, *, over: bool = False) -> RenderableType:
    """The view after the last moment, in a terminal of this size; without the facts once it is over."""
    width = min(width, _WIDEST)
    columns = max(min(width - GUTTER, _LONGEST), 8)
    scene, devices = run.scene, f"{run.scene.stream.n:,} simulated devices"
    title = Text.assemble(
        ("hubbub watch", "bold"), f"  {run.method}, epsilon {run.epsilon:g} in any {run.w} steps, {devices}"
    )
    lines = [title, Text(shorten(f"{scene.name} ({scene.source})", width), FAINT)]
    facts = _facts(run)[-1:] if over else _facts(run)
    # Below it stand the prompt and, once it is over, the summary and the plot's name.
    below = 2 + sum(math.ceil(len(line) / width) for line in summary(run)) if over else 1
    lines += chart(run, max(height - _AROUND - len(facts) - below, 3), columns)
    lines += [Text(), *facts]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        line.no_wrap = True
    return Group(*lines)


def _facts(run: Watch) -> list[Text]:
    now, monitor, show = run.moments[-1], run.monitor, written(run.scene)
    state = (" ALARM ", f"{WHITE} on {BAND[1, 1]}") if now.alarm else (" quiet ", f"{WHITE} on {_QUIET}")
    rule = f"on once the interval is above {show(monitor.above)}, off once below {show(monitor.below)}"
    estimate = "nothing published yet" if math.isnan(now.value) else f"{show(now.value)}  "
    interval = "" if math.isnan(now.value) else f"{show(now.low)} to {show(now.high)}  "
    if interval and math.isnan(now.low):
        interval = "interval unknown  "
    spent = bar(now.spent, run.epsilon, _BAR).ljust(_BAR, "·")
    average = f"{now.spent:.2f} of {run.epsilon:g} in the last {run.w} steps on average, at most {run.most_spent:.4g}"

    def fact(label: str, *parts: str | tuple[str, str]) -> Text:
        return Text.assemble((label.ljust(_LABEL), FAINT), *parts)

    return [
        fact("alarm", state, " ", (_turns(run.changes[-4:]) or rule, "bold" if now.alarm else "")),
        fact(
            "estimate",
            (estimate, "bold"),
            interval,
            ("● published  ", f"bold {BAND[0, 1]}") if now.published else ("· approximated  ", FAINT),
            (f"truth {show(now.truth)}", FAINT),
        ),
        fact("spent", (spent, BAND[0, 1]), f" {average}"),
        fact("sent", f"{now.bits / now.step:.3g} bits a device and step; {run.published} of {now.step} published"),
        fact("population", f"about {now.n:,.0f} devices, estimated; step {now.step} of {run.steps}"),
        Text.assemble(
            ("━ estimate  ", "bold"),
            ("█ ", BAND[0, 1]),
            "95% interval  ",
            ("╌ alarm  ", YELLOW),
            ("· truth (these devices are simulated)", FAINT),
        ),
    ]


def _turns(changes: list[Moment]) -> str:
    return ", ".join(f"{'on' if one.alarm else 'off'} at step {one.step}" for one in changes)


def figure(run: Watch) -> Figure:
    """The whole run: the estimate in its band, the truth, the threshold, what was published, when the alarm was on."""
    import numpy as np

    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency("matplotlib", "analytics") from None
    scale = 100.0 if run.scene.share else 1.0
    moments, above, below = run.moments, scale * run.monitor.above, scale * run.monitor.below
    steps = np.array([one.step for one in moments])
    value, low, high, truth = scale * np.array([(one.value, one.low, one.high, one.truth) for one in moments]).T
    fresh, on = (np.array([getattr(one, field) for one in moments]) for field in ("published", "alarm"))
    drawn = Figure(figsize=(10, 5), layout="constrained")
    ax = drawn.subplots()
    ax.fill_between(steps, low, high, step="mid", color="#4c78a8", alpha=0.25, linewidth=0, label="95% interval")
    behind = ax.fill_between(steps, 0, 1, where=on, step="mid", transform=ax.get_xaxis_transform(), label="alarm on")
    behind.set(color="#c8443c", alpha=0.15, linewidth=0)
    ax.axhline(above, color="#f58518", linestyle="--", linewidth=1.2, label="alarm goes on above")
    if below < above:
        ax.axhline(below, color="#f58518", linestyle=":", linewidth=1.2, label="and off below")
    ax.plot(steps, truth, color="#888888", linewidth=1.2, label="truth (simulated)")
    ax.step(steps, value, where="mid", color="#26547c", linewidth=1.5, label="estimate")
    ax.plot(steps[fresh], value[fresh], ".", color="#26547c", markersize=6, label="published")
    ax.set_xlabel("step")
    ax.set_ylabel("percent of devices" if run.scene.share else "mean")
    name = shorten(run.scene.name, 50).replace("$", r"\$")  # a dollar would begin a formula
    ax.set_title(f"{name}: {run.method}, epsilon {run.epsilon:g} in any {run.w} steps, {run.scene.stream.n:,} devices")
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.01)
    drawn.legend(loc="outside lower center", ncols=7, frameon=False, fontsize="small")
    return drawn
