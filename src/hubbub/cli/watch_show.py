"""How watched moments are shown: live on a terminal, elsewhere as lines of JSON; a summary and a plot at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.demo.moment import Moment, Watched


class FrameDrawing(Protocol):
    """Draws the view after the last moment, in a terminal of a size; without the facts once it is over."""

    def __call__(self, width: int, height: int, *, over: bool = False) -> RenderableType:
        """Draw it."""
        ...


class WatchView(NamedTuple):
    """What is shown of a run: its view, its summary, a title of its figure, and what to say where nothing is drawn."""

    frame: FrameDrawing
    summary: Callable[[], list[str]]
    name: str
    head: str
    news: Callable[[], None] = lambda: None


def show_moments(
    run: Watched, moments: Iterable[Moment | None], view: WatchView, *, live: bool, plot: Path | None
) -> None:
    """Show moments as they come, and what there is to say once they end or somebody has seen enough."""
    try:
        _draw(run, moments, view) if live else _print(moments, view)
    except KeyboardInterrupt:
        _end(run, view, live, plot)
        raise
    _end(run, view, live, plot)


def _print(moments: Iterable[Moment | None], view: WatchView) -> None:
    for moment in moments:
        if moment is None:
            view.news()
        else:
            fields = moment.to_dict().items()
            typer.echo(json.dumps({key: None if value != value else value for key, value in fields}))  # NaN is null


def _draw(run: Watched, moments: Iterable[Moment | None], view: WatchView) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        try:
            for _ in moments:
                if run.moments:
                    live.update(view.frame(console.width, console.height), refresh=True)
        finally:  # a last frame that leaves room for what is said below it
            if run.moments:
                live.update(view.frame(console.width, console.height, over=True), refresh=True)


def _end(run: Watched, view: WatchView, live: bool, plot: Path | None) -> None:
    from hubbub.cli.output import save_plot

    if run.moments:
        typer.echo("\n".join(view.summary()), err=not live)
        if plot is not None:
            from hubbub.cli.watch_figure import figure

            save_plot(figure(run, view.name, view.head), plot)
