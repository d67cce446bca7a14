"""Where things are written: answers on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure
    from rich.console import Console

    from hubbub.mechanisms.base import Mechanism

_PLOTS = (".png", ".svg", ".pdf")
_WIDEST = 110


def page() -> Console:
    """The console that answers are printed on, no wider than is read with ease."""
    from rich.console import Console

    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    return console


def say(line: str) -> None:
    """A message beside the answer."""
    typer.echo(line, err=True)


def emit(answer: Any) -> None:
    """The answer as JSON: ASCII, so that no terminal or pipe can spoil it; a number that is none is null."""
    typer.echo(json.dumps(_finite(answer), indent=2, allow_nan=False))


def spec_text(mechanism: Mechanism) -> str:
    """A line with the spec of the mechanism that an answer is about."""
    return f"The spec: {canonical(mechanism.spec())}"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.2f}%"


def shorten(name: str, most: int) -> str:
    """A name in at most so many characters, all of them printable."""
    plain = "".join(letter if letter.isprintable() else " " for letter in name)
    return plain if len(plain) <= most else plain[: most - 3] + "..."


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """A bar on stderr, where that is a terminal; yields what to call with (done, total) and, if it helps, a label."""
    if not sys.stderr.isatty():
        yield lambda done, total, label="": None
        return
    from rich.console import Console
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
