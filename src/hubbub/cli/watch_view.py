"""A watched stream as it is shown: the live view, and what there is to say at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from hubbub.cli.output import bar, percent, shorten
from hubbub.collection.time import duration_text
from hubbub.core.errors import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hubbub.watch.moment import Moment, Watched
    from hubbub.watch.watch import Watch

GUTTER = 9  # characters right of the chart
# Of the band: (alarm, published). Fresh reports are bright, a stand-in is dark; red while the alarm is on.
# A terminal of 16 colours takes the nearest, and still tells them apart.
BAND = {(0, 1): "#4a90e0", (0, 0): "#1c4a8c", (1, 1): "#c8443c", (1, 0): "#8b1a1a"}
WHITE, YELLOW, FAINT = "bold #ffffff", "#e6c229", "#9aa4ae"
_LEVELS = 3  # of a line within a character: low, middle, high
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LINE, _THRESHOLD, _TRUTH = "▁━▔", "▁╌▔", ".·˙"


def chart(run: Watched, rows: int, columns: int) -> list[Text]:
    """The band, one column per step, with its scale to the right; then which were published, and when."""
    shown, show = run.moments[-columns:], written(run.share)
    least, most = run.span
    numbers = [number for moment in shown for number in (moment.truth, moment.value)] + [*run.thresholds]
    numbers += [min(max(edge, least), most) for moment in shown for edge in (moment.low, moment.high)]  # cut
    numbers = [number for number in numbers if not math.isnan(number)] or [0.0]
    bottom, top, tick = scale(min(numbers), max(numbers), rows)

    def height(number: float) -> float:
        return min(max((number - bottom) / (top - bottom) * rows, 0.0), rows - 1e-9)  # NaN stays NaN

    lines_at = {int(height(bound)): height(bound) for bound in reversed(run.thresholds)}
    gutter = {int(height(bottom + k * tick)): (bottom + k * tick, FAINT) for k in range(round((top - bottom) / tick))}
    gutter |= {int(height(bound)): (bound, YELLOW) for bound in run.thresholds[:1]}
    if not math.isnan(shown[-1].value):
        gutter[int(height(shown[-1].value))] = (shown[-1].value, f"{WHITE} on {BAND[shown[-1].alarm, 1]}")
    lines = []
    for row in reversed(range(rows)):
        line = Text()
        for moment in shown:
            line.append(*_cell(moment, row, height, lines_at.get(row)))
        rest = columns - len(shown)
        line.append((_level(_THRESHOLD, lines_at[row]) if row in lines_at else " ") * rest, YELLOW)
        if row in gutter:
            line.append(" ").append(show(gutter[row][0]).rjust(GUTTER - 2), gutter[row][1])
        lines.append(line)
    marks, axis = Text(), [" "] * columns
    for place, moment in enumerate(shown):
        marks.append("●" if moment.published else "·", BAND[0, 1] if moment.published else FAINT)
        words = _tick(run, moment.step)
        if words and place + len(words) < columns and not "".join(axis[place:]).strip():
            axis[place : place + len(words) + 1] = f"╵{words}"
    marks.append(" " * (columns - len(shown)) + " fresh", FAINT)
    return [*lines, marks, Text("".join(axis) + (" step" if run.times is None else " UTC"), FAINT)]


def _tick(run: Watched, step: int) -> str | None:
    """What stands below a step."""
    if run.times is not None:
        return run.times.tick(step)
    return str(step) if step % 10 == 0 else None


def _cell(moment: Moment, row: int, height: Callable[[float], float], threshold: float | None) -> tuple[str, str]:
    """A character and its style: the estimate hides the truth, which hides the threshold, which hides the band."""
    band = BAND[moment.alarm, moment.published]
    low, high, value, truth = (height(number) for number in (moment.low, moment.high, moment.value, moment.truth))
    covered = min(high, row + 1) - max(low, row)  # NaN where nothing is known: every comparison is false
    under = f" on {band}" if covered > 0.5 else ""
    if row <= value < row + 1:
        return _level(_LINE, value), f"{WHITE} on {band}"
    if row <= truth < row + 1:
        return _level(_TRUTH, truth), FAINT + under
    if threshold is not None:
        return _level(_THRESHOLD, threshold), YELLOW + under
    if not covered > 0:
        return " ", ""
    if high < row + 1 or covered == 1:
        return _EIGHTHS[round(8 * covered)], band
    return _EIGHTHS[8 - round(8 * covered)], f"{band} reverse"  # the lower edge: what is not covered, inverted


def _level(glyphs: str, height: float) -> str:
    """The glyph for where in its character a line is."""
    return glyphs[min(int((height - math.floor(height)) * _LEVELS), _LEVELS - 1)]


def scale(low: float, high: float, rows: int) -> tuple[float, float, float]:
    """A bottom, a top and a round tick between, at least two rows apart."""
    least = (high - low or abs(high) or 1.0) / max(rows / 2, 1)
    power = 10.0 ** math.floor(math.log10(least))
    tick = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
    bottom = math.floor(low / tick) * tick
    return bottom, max(math.ceil(high / tick) * tick, bottom + tick), tick


def written(share: bool) -> Callable[[float], str]:
    """How the watched number is written."""
    return percent if share else "{:.4g}".format


def figure(run: Watched, name: str, head: str) -> Figure:
    """The whole run: the estimate in its band, what was published, when the alarm was on; thresholds, and any truth."""
    with needs("analytics"):
        from matplotlib.figure import Figure
    scale, moments = 100.0 if run.share else 1.0, run.moments
    x: Any = np.array([moment.step for moment in moments])
    if run.times is not None:
        x = np.array([round(run.times.begins(step)) for step in x], dtype="datetime64[s]")
    numbers = np.array([(moment.value, moment.low, moment.high, moment.truth) for moment in moments])
    value, low, high, truth = scale * numbers.T
    fresh, on = (np.array([getattr(moment, field) for moment in moments]) for field in ("published", "alarm"))
    chart = Figure(figsize=(10, 5), layout="constrained")
    ax = chart.subplots()
    ax.fill_between(x, low, high, step="mid", color="#4c78a8", alpha=0.25, linewidth=0, label="95% interval")
    behind = ax.fill_between(x, 0, 1, where=on, step="mid", transform=ax.get_xaxis_transform(), label="alarm on")
    behind.set(color="#c8443c", alpha=0.15, linewidth=0)
    for bound, style, words in zip(run.thresholds, ("--", ":"), ("alarm goes on above", "and off below"), strict=False):
        if style == "--" or bound != run.thresholds[0]:
            ax.axhline(scale * bound, color="#f58518", linestyle=style, linewidth=1.2, label=words)
    if not np.isnan(truth).all():
        ax.plot(x, truth, color="#888888", linewidth=1.2, label="truth (simulated)")
    ax.step(x, value, where="mid", color="#26547c", linewidth=1.5, label="estimate")
    ax.plot(x[fresh], value[fresh], ".", color="#26547c", markersize=6, label="published")
    ax.set_xlabel("step" if run.times is None else "time (UTC)")
    ax.set_ylabel("percent of devices" if run.share else "mean")
    ax.set_title(f"{shorten(name, 50)}: {head}".replace("$", r"\$"))  # a dollar would begin a formula
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.01)
    chart.legend(loc="outside lower center", ncols=7, frameon=False, fontsize="small")
    return chart


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
