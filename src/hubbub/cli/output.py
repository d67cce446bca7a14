"""Where and how things are written: answers on stdout, others on stderr; tables, bars, estimates next to the truth."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from hubbub.core.errors import InvalidValue, needs
from hubbub.core.spec import canonical

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from hubbub.core.estimate import Estimate
    from hubbub.core.reports import Floats
    from hubbub.mechanisms.base import ReportFormat

_PLOTS = (".png", ".svg", ".pdf")
_WIDEST = 110


def page() -> Console:
    """The console that answers are printed on, no wider than is read with ease."""
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    return console


def say(line: str) -> None:
    """A message in addition to the answer."""
    typer.echo(line, err=True)


def emit(answer: Any) -> None:
    """The answer as JSON: ASCII, so that no terminal or pipe can spoil it; NaN and infinity are null."""
    typer.echo(json.dumps(_finite(answer), indent=2, allow_nan=False))


def spec_text(mechanism: ReportFormat) -> str:
    """A line with the spec of the mechanism that an answer is about."""
    return f"The spec: {canonical(mechanism.spec())}"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.2f}%"


def shorten(name: str, most: int) -> str:
    """A name cut to a number of characters, all of them printable."""
    plain = "".join(letter if letter.isprintable() else " " for letter in name)
    return plain if len(plain) <= most else plain[: most - 3] + "..."


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """A bar on stderr, where that is a terminal; yields what to call with (done, total) and, if it helps, a label."""
    if not sys.stderr.isatty():
        yield lambda done, total, label="": None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def follow(done: int, total: int, step: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{label}: {step}" if step else label)

        yield follow


def check_plot(path: Path | None) -> None:
    """Refuse a plot that could not be saved, before the work is done."""
    if path is None:
        return
    if path.suffix.lower() not in _PLOTS:
        raise InvalidValue("plot", str(path), f"a file name that ends in {', '.join(_PLOTS)}")
    if not path.absolute().parent.is_dir():
        raise InvalidValue("plot", str(path), "a file in a folder that exists")


def save_plot(figure: Figure | SubFigure | None, path: Path) -> None:
    """Save a plot and say where it is."""
    assert figure is not None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is drawn as a box
        figure.savefig(path, dpi=150)  # type: ignore[union-attr]
    say(f"plot: {path}")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(value: float, most: float, width: int, *, mark: float | None = None) -> str:
    """A bar as long as value is of most, in at most `width` cells; a value below 0 has none.

    A diamond stands in the cell that `mark` reaches.
    """
    if most <= 0:
        return ""
    eighths = round(8 * width * min(max(value / most, 0.0), 1.0))
    cells = ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
    if mark is None:
        return cells
    place = min(max(int(width * mark / most), 0), width - 1)
    padded = cells.ljust(place + 1)
    return padded[:place] + "◆" + padded[place + 1 :]


def painted(value: float, most: float, width: int, *, mark: float) -> str:
    """The bar in rich's markup, the diamond in another colour."""
    return f"[blue]{bar(value, most, width, mark=mark).replace('◆', '[yellow]◆[/]')}[/]"


class PlainTable(Table):
    """A table without lines, whose heading may be wider than the table: rich would wrap it at the table's width.

    `heading`: what is printed above the table, in rich's markup; nothing if empty.
    """

    def __init__(self, heading: str, *, show_header: bool) -> None:
        super().__init__(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=show_header)
        self.heading = heading

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.heading:
            yield Text.from_markup(self.heading, style="bold")
        yield from super().__rich_console__(console, options)


def plain_table(*headings: str, left: Collection[str] = (), title: str = "") -> PlainTable:
    """A table whose first column and those in `left` are words; the others are numbers."""
    table = PlainTable(title, show_header=any(headings))
    for place, heading in enumerate(headings):
        words = place == 0 or heading in left
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    return table


PICKED = "bold green"
"""The style of the row that is the answer."""


def print_table(
    title: str, headings: Sequence[str], rows: Iterable[tuple[str | None, Sequence[str]]], text: str
) -> None:
    """Print one row per choice, each with its style or "picked", and a text below."""
    table = plain_table(*headings, left=[""], title=title)
    for style, cells in rows:
        table.add_row(*cells, style=PICKED if style == "picked" else style)
    page().print(table)
    page().print(f"\n{text}", markup=False)


def found_rows(
    names: Iterable[str], estimate: Estimate, truth: Sequence[float] | Floats | None, *, possible: bool = True
) -> list[dict[str, Any]]:
    """One row per value: its estimate and interval, and its true share where that is known.

    The numbers are cut to what is possible, or else the unbiased ones.
    """
    value, low, high = estimate.possible() if possible else (estimate.value, *estimate.interval(0.95))
    numbers: dict[str, Any] = {"estimate": value, "low": low, "high": high}
    if truth is not None:
        numbers["truth"] = truth
    return [
        {"value": name, **{key: float(column[place]) for key, column in numbers.items()}}
        for place, name in enumerate(names)
    ]


def found_table(rows: Sequence[Mapping[str, Any]], heading: str, title: str, *, shares: bool = True) -> PlainTable:
    """Values that were found, with shares or other quantities: those that may be 0 are dim."""
    number = percent if shares else "{:.6g}".format
    known = ["truth"] if rows and "truth" in rows[0] else []
    forged = ["with forged reports"] if rows and "forged_low" in rows[0] else []
    table = plain_table(heading, *known, "estimate", "95% interval", *forged, title=f"{escape(title)}\n")
    for row in rows:
        numbers = [number(row[key]) for key in (*known, "estimate")]
        style = "dim" if row["low"] <= 0 and (shares or row["high"] >= 0) else None
        interval = f"{number(row['low'])} to {number(row['high'])}"
        wider = [f"{number(row['forged_low'])} to {number(row['forged_high'])}"] if forged else []
        table.add_row(escape(shorten(row["value"], 40)), *numbers, interval, *wider, style=style)
    return table


_LONGEST = 40
_BLUE, _PALE, _INK, _ORANGE, _GREY = "#4c78a8", "#c3cedb", "#26303a", "#f58518", "#888888"


class ShareRow(NamedTuple):
    """One value: its share in truth, as estimated, its 95% interval, and whether it is more than chance."""

    value: str
    truth: float
    estimate: float
    low: float
    high: float
    significant: bool


def rows(estimate: Estimate, truth: Floats, threshold: float, most: int | None = None) -> list[ShareRow]:
    """The largest estimates, largest first."""
    low, high = estimate.interval(0.95)
    names = estimate.names()
    return [
        ShareRow(
            names[i],
            float(truth[i]),
            float(estimate.value[i]),
            float(low[i]),
            float(high[i]),
            bool(estimate.value[i] > threshold),
        )
        for i in estimate.top(len(estimate) if most is None else most)
    ]


def figure(shown: list[ShareRow], names: list[str], threshold: float, title: str) -> Figure:
    """Bars with their intervals against the truth, and the line that chance alone may reach."""
    import numpy as np

    with needs("analytics"):
        from matplotlib.figure import Figure
    places = np.arange(len(shown))[::-1]
    value, low, high, truth = (100 * np.array([[row.estimate, row.low, row.high, row.truth] for row in shown])).T
    significant = np.array([row.significant for row in shown])
    chart = Figure(figsize=(8, 1.6 + 0.3 * len(shown)), layout="constrained")
    ax = chart.subplots()
    for label, color, which in (("estimate", _BLUE, significant), ("may be chance", _PALE, ~significant)):
        if which.any():
            ax.barh(places[which], value[which], height=0.62, color=color, label=label)
    ax.hlines(places, low, high, color=_INK, linewidth=1.4, label="95% interval")
    ax.scatter(truth, places, marker="D", s=30, color=_ORANGE, edgecolor="white", zorder=3, label="truth")
    ax.axvline(100 * threshold, color=_GREY, linestyle=":", label="what chance may reach")
    ax.axvline(0, color=_INK, linewidth=0.8)
    ax.set_yticks(places, [_label(name) for name in names])
    ax.set_xlabel("percent of people")
    ax.set_title(title)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)
    chart.legend(loc="outside lower center", ncols=5, frameon=False, fontsize="small")  # where no bar is
    return chart


def _label(name: str) -> str:
    """A tick's text: of bearable length, and not read as a formula."""
    short = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
    return short.replace("$", r"\$")
