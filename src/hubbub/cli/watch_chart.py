"""The live chart of `hubbub watch`, drawn with characters: a band, a column a step, on a scale of round numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from hubbub.cli.output import percent

if TYPE_CHECKING:
    from hubbub.demo.moment import Moment, Watched

GUTTER = 9  # characters right of the chart
# Of the band: (alarm, published). Fresh reports are bright, a stand-in is dark; red while the alarm is on.
# A terminal of 16 colours takes the nearest, and still tells them apart.
BAND = {(0, 1): "#4a90e0", (0, 0): "#1c4a8c", (1, 1): "#c8443c", (1, 0): "#8b1a1a"}
WHITE, YELLOW, FAINT = "bold #ffffff", "#e6c229", "#9aa4ae"
_LEVELS = 3  # of a line within a character: low, middle, high
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LINE, _THRESHOLD, _TRUTH = "▁━▔", "▁╌▔", ".·˙"


def chart(run: Watched, rows: int, columns: int) -> list[Text]:
    """The band, a column a step, with its scale to the right; then which were published, and when."""
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
