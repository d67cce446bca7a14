"""`hubbub watch`: a live stream, its interval, and an alarm."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Plot
from hubbub.core.errors import InvalidValue, MissingDependency

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType
    from rich.text import Text

    from hubbub.core.random import Random
    from hubbub.simulate.watch import Moment, Scene, Watch

__all__ = ["figure", "frame", "summary", "watch"]

_SPEED = 10.0  # steps a second in the live view
_STEPS = 200  # of the demo
_WIDEST, _LONGEST = 110, 80  # characters of the view, steps of the chart
_GUTTER, _LABEL, _BAR = 9, 12, 12  # right of the chart, left of the facts, of what was spent
_AROUND = 5  # lines of the view that are neither chart nor facts
_LEVELS = 3  # of a line within a character: low, middle, high
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LINE, _THRESHOLD, _TRUTH = "▁━▔", "▁╌▔", ".·˙"
# Of the band: (alarm, published). Fresh reports are bright, a stand-in is dark; red while the alarm is on.
# A terminal of 16 colours takes the nearest, and still tells them apart.
_BAND = {(0, 1): "#4a90e0", (0, 0): "#1c4a8c", (1, 1): "#c8443c", (1, 0): "#8b1a1a"}
_WHITE, _YELLOW, _FAINT, _QUIET = "bold #ffffff", "#e6c229", "#9aa4ae", "#3f7f4f"


def watch(
    file: Annotated[
        Path | None,
        typer.Argument(help="A CSV, TSV, JSON lines or Parquet file; a row is a device's value at a step."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="200,000 invented devices, with a surge.")] = False,
    method: Annotated[str, typer.Option("--method", "-m", help="How a window is divided, such as LPA.")] = "LPA",
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="What a device may spend in any w consecutive steps.")
    ] = 1.0,
    w: Annotated[int, typer.Option("--w", "-w", help="The window, in steps.")] = 20,
    steps: Annotated[
        int | None, typer.Option("--steps", help="How many steps to watch.", show_default=f"all; the demo {_STEPS}")
    ] = None,
    speed: Annotated[
        float | None, typer.Option("--speed", help="Steps a second.", show_default=f"live {_SPEED:g}, else no limit")
    ] = None,
    above: Annotated[
        float | None,
        typer.Option(
            "--above", help="The alarm is on once surely above.", show_default="demo 0.11, file 3/4 of the way up"
        ),
    ] = None,
    below: Annotated[
        float | None,
        typer.Option("--below", help="It is off once surely below.", show_default="demo 0.1, file as --above"),
    ] = None,
    step: Annotated[str, typer.Option("--step", help="The column of the step.")] = "step",
    device: Annotated[str, typer.Option("--device", help="The column of the device.")] = "device",
    value: Annotated[str, typer.Option("--value", help="The column of the value.")] = "value",
    watched: Annotated[
        str | None, typer.Option("--watch", help="The value to watch.", show_default="the most frequent")
    ] = None,
    mean: Annotated[
        str | None, typer.Option("--mean", metavar="LOW,HIGH", help="Watch the mean of numbers in this range.")
    ] = None,
    plot: Plot = None,
    seed: Annotated[int | None, typer.Option("--seed", help="For a repeatable run.", show_default="drawn anew")] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a stream of private reports, with an alarm.

    Live on a terminal; elsewhere, or with --json, a line of JSON a release.

    A device without a row in a step holds "none". The truth is shown beside: these devices are simulated.
    """
    from hubbub.cli.names import named
    from hubbub.cli.output import check_plot, say
    from hubbub.core.random import Random
    from hubbub.protocols.window import METHODS
    from hubbub.simulate.watch import Watch

    check_plot(plot)
    method = named("method", method, METHODS)
    if speed is not None and not (math.isfinite(speed) and speed > 0):
        raise InvalidValue("speed", speed, "a finite number of steps a second, above 0")
    rng = Random(seed=seed)
    columns = {"step": step, "device": device, "value": value}
    scene = _scene(file, demo, steps, columns, watched, mean, rng.child("stream"))
    run = Watch(
        scene, method=method, epsilon=epsilon, w=w, steps=steps, above=above, below=below, rng=rng.child("devices")
    )
    live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not as_json
    for note in scene.notes:
        say(note)
    try:
        _show(run, _SPEED if speed is None else speed) if live else _print(run, speed)
    except KeyboardInterrupt:
        _end(run, live, plot)
        raise
    _end(run, live, plot)


def _scene(
    file: Path | None,
    demo: bool,
    steps: int | None,
    columns: dict[str, str],
    watched: str | None,
    mean: str | None,
    rng: Random,
) -> Scene:
    from hubbub.simulate.watch import demo_scene, file_scene

    if demo == (file is not None):
        raise InvalidValue("file", None if file is None else str(file), "one of: a file, or --demo")
    if file is not None:
        return file_scene(file, rng, **columns, watch=watched, mean=None if mean is None else _range(mean))
    for field, given in (("watch", watched), ("mean", mean)):
        if given is not None:
            raise InvalidValue(field, given, "nothing with --demo")
    return demo_scene(rng, steps=_STEPS if steps is None else steps)


def _range(mean: str) -> tuple[float, float]:
    try:
        low, high = map(float, mean.split(","))
    except ValueError:
        raise InvalidValue("mean", mean, "two numbers, such as 0,100") from None
    return low, high


def _paced(run: Watch, speed: float | None) -> Iterator[Moment]:
    """The moments, no faster than so many a second."""
    due = time.monotonic()
    for moment in run:
        yield moment
        if speed is not None:
            due = max(due + 1 / speed, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))


def _print(run: Watch, speed: float | None) -> None:
    for moment in _paced(run, speed):
        fields = moment.to_dict().items()
        typer.echo(json.dumps({key: None if held != held else held for key, held in fields}))  # NaN is null


def _show(run: Watch, speed: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        try:
            for _ in _paced(run, speed):
                live.update(frame(run, console.width, console.height), refresh=True)
        finally:  # a last frame that leaves room for what is said below it
            if run.moments:
                live.update(frame(run, console.width, console.height, over=True), refresh=True)


def _end(run: Watch, live: bool, plot: Path | None) -> None:
    from hubbub.cli.output import save_plot

    if run.moments:
        typer.echo("\n".join(summary(run)), err=not live)
        if plot is not None:
            save_plot(figure(run), plot)


def summary(run: Watch) -> list[str]:
    """What there is to say at the end."""
    moments, show = run.moments, _text(run.scene)
    total, last = len(moments), moments[-1]
    changes = ", ".join(f"{'on' if one.alarm else 'off'} at step {one.step}" for one in run.changes) or "never on"
    over = [one.step for one in moments if one.truth > run.monitor.above]
    truth = f"in {len(over)} steps, from {over[0]} to {over[-1]}" if over else "in no step"
    return [
        f"{total} releases: {run.published} published, {total - run.published} approximated by what was known.",
        f"Alarm: {changes}.",
        f"The truth was above {show(run.monitor.above)} {truth}.",
        f"{run.covered} of {total} intervals (95%) held the truth.",
        f"Sent, both ways: {last.bits / total:.3g} bits a device and step.",
        f"Each of the {run.scene.stream.n:,} devices kept a ledger, and none had to refuse:",
        f"the most that one spent in any {run.w} steps is {run.most_spent:.6g} of epsilon {run.epsilon:g}.",
    ]


def frame(run: Watch, width: int, height: int, *, over: bool = False) -> RenderableType:
    """The view after the last moment, in a terminal of this size; without the facts once it is over."""
    from rich.console import Group
    from rich.text import Text

    from hubbub.cli.output import shorten

    width = min(width, _WIDEST)
    columns = max(min(width - _GUTTER, _LONGEST), 8)
    scene, devices = run.scene, f"{run.scene.stream.n:,} simulated devices"
    title = Text.assemble(
        ("hubbub watch", "bold"), f"  {run.method}, epsilon {run.epsilon:g} in any {run.w} steps, {devices}"
    )
    lines = [title, Text(shorten(f"{scene.name} ({scene.source})", width), _FAINT)]
    facts = _facts(run)[-1:] if over else _facts(run)
    # Below it stand the prompt and, once it is over, the summary and the plot's name.
    below = 2 + sum(math.ceil(len(line) / width) for line in summary(run)) if over else 1
    lines += _chart(run, max(height - _AROUND - len(facts) - below, 3), columns)
    lines += [Text(), *facts]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        line.no_wrap = True
    return Group(*lines)


def _facts(run: Watch) -> list[Text]:
    from rich.text import Text

    from hubbub.cli.bars import bar

    now, monitor, show = run.moments[-1], run.monitor, _text(run.scene)
    changed = ", ".join(f"{'on' if one.alarm else 'off'} at step {one.step}" for one in run.changes[-4:])
    state = (" ALARM ", f"{_WHITE} on {_BAND[1, 1]}") if now.alarm else (" quiet ", f"{_WHITE} on {_QUIET}")
    rule = f"on once the interval is above {show(monitor.above)}, off once below {show(monitor.below)}"
    estimate = "nothing published yet" if math.isnan(now.value) else f"{show(now.value)}  "
    interval = "" if math.isnan(now.value) else f"{show(now.low)} to {show(now.high)}  "
    spent = bar(now.spent, run.epsilon, _BAR).ljust(_BAR, "·")
    average = f"{now.spent:.2f} of {run.epsilon:g} in the last {run.w} steps on average, at most {run.most_spent:.4g}"

    def fact(label: str, *parts: str | tuple[str, str]) -> Text:
        return Text.assemble((label.ljust(_LABEL), _FAINT), *parts)

    return [
        fact("alarm", state, " ", (changed or rule, "bold" if now.alarm else "")),
        fact(
            "estimate",
            (estimate, "bold"),
            interval,
            ("● published  ", f"bold {_BAND[0, 1]}") if now.published else ("· approximated  ", _FAINT),
            (f"truth {show(now.truth)}", _FAINT),
        ),
        fact("spent", (spent, _BAND[0, 1]), f" {average}"),
        fact("sent", f"{now.bits / now.step:.3g} bits a device and step; {run.published} of {now.step} published"),
        fact("population", f"about {now.n:,.0f} devices, estimated; step {now.step} of {run.steps}"),
        Text.assemble(
            ("━ estimate  ", "bold"),
            ("█ ", _BAND[0, 1]),
            "95% interval  ",
            ("╌ alarm  ", _YELLOW),
            ("· truth (these devices are simulated)", _FAINT),
        ),
    ]


def _chart(run: Watch, rows: int, columns: int) -> list[Text]:
    """The band, a column a step, with its scale to the right; then which were published, and when."""
    from rich.text import Text

    shown, monitor, show = run.moments[-columns:], run.monitor, _text(run.scene)
    least, most = run.scene.span
    numbers = [number for one in shown for number in (one.truth, one.value)] + [monitor.above, monitor.below]
    numbers += [min(max(edge, least), most) for one in shown for edge in (one.low, one.high)]  # wide bands are cut
    numbers = [number for number in numbers if not math.isnan(number)]
    bottom, top, tick = _scale(min(numbers), max(numbers), rows)

    def height(number: float) -> float:
        return min(max((number - bottom) / (top - bottom) * rows, 0.0), rows - 1e-9)  # NaN stays NaN

    lines_at = {int(height(bound)): height(bound) for bound in (monitor.below, monitor.above)}
    gutter = {int(height(bottom + k * tick)): (bottom + k * tick, _FAINT) for k in range(round((top - bottom) / tick))}
    gutter[int(height(monitor.above))] = (monitor.above, _YELLOW)
    if not math.isnan(shown[-1].value):
        gutter[int(height(shown[-1].value))] = (shown[-1].value, f"{_WHITE} on {_BAND[shown[-1].alarm, 1]}")
    drawn = []
    for row in reversed(range(rows)):
        line = Text()
        for one in shown:
            line.append(*_cell(one, row, height, lines_at.get(row)))
        rest = columns - len(shown)
        line.append((_level(_THRESHOLD, lines_at[row]) if row in lines_at else " ") * rest, _YELLOW)
        if row in gutter:
            line.append(" ").append(show(gutter[row][0]).rjust(_GUTTER - 2), gutter[row][1])
        drawn.append(line)
    marks, axis = Text(), [" "] * columns
    for place, one in enumerate(shown):
        marks.append("●" if one.published else "·", _BAND[0, 1] if one.published else _FAINT)
        if one.step % 10 == 0 and place + len(str(one.step)) < columns:
            axis[place : place + len(str(one.step)) + 1] = f"╵{one.step}"
    marks.append(" " * (columns - len(shown)) + " fresh", _FAINT)
    return [*drawn, marks, Text("".join(axis) + " step", _FAINT)]


def _cell(one: Moment, row: int, height: Callable[[float], float], threshold: float | None) -> tuple[str, str]:
    """A character and its style: the estimate hides the truth, which hides the threshold, which hides the band."""
    band = _BAND[one.alarm, one.published]
    low, high, value, truth = (height(number) for number in (one.low, one.high, one.value, one.truth))
    covered = min(high, row + 1) - max(low, row)  # NaN where nothing is known: every comparison is false
    under = f" on {band}" if covered > 0.5 else ""
    if row <= value < row + 1:
        return _level(_LINE, value), f"{_WHITE} on {band}"
    if row <= truth < row + 1:
        return _level(_TRUTH, truth), _FAINT + under
    if threshold is not None:
        return _level(_THRESHOLD, threshold), _YELLOW + under
    if not covered > 0:
        return " ", ""
    if high < row + 1 or covered == 1:
        return _EIGHTHS[round(8 * covered)], band
    return _EIGHTHS[8 - round(8 * covered)], f"{band} reverse"  # the lower edge: what is not covered, inverted


def _level(glyphs: str, height: float) -> str:
    """The glyph for where in its character a line is."""
    return glyphs[min(int((height - math.floor(height)) * _LEVELS), _LEVELS - 1)]


def _scale(low: float, high: float, rows: int) -> tuple[float, float, float]:
    """A bottom, a top and a round tick between, at least two rows apart.

    Example:
        >>> [round(number, 2) for number in _scale(0.031, 0.187, 13)]
        [0.0, 0.2, 0.05]
    """
    least = (high - low or abs(high) or 1.0) / max(rows / 2, 1)
    power = 10.0 ** math.floor(math.log10(least))
    tick = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
    bottom = math.floor(low / tick) * tick
    return bottom, max(math.ceil(high / tick) * tick, bottom + tick), tick


def _text(scene: Scene) -> Callable[[float], str]:
    """How the watched number is written."""
    from hubbub.cli.output import percent

    return percent if scene.share else "{:.4g}".format


def figure(run: Watch) -> Figure:
    """The whole run: the estimate in its band, the truth, the threshold, what was published, when the alarm was on."""
    import numpy as np

    from hubbub.cli.output import shorten

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
