"""`hubbub watch`: a live stream, its interval, and an alarm."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Plot
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.core.random import Random
    from hubbub.demo.watch import Moment, Watch
    from hubbub.demo.watch_scenes import WatchScene

__all__ = ["watch"]

_SPEED = 10.0  # steps a second in the live view
_STEPS = 200  # of the demo


def watch(
    file: Annotated[
        Path | None,
        typer.Argument(help="A CSV, TSV, JSON lines or Parquet file; a row is a device's value at a step."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="200,000 invented devices, with a surge.")] = False,
    method: Annotated[str, typer.Option("--method", "-m", help="How a window is divided, such as LPU.")] = "LPU",
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
    from hubbub.demo.watch import Watch
    from hubbub.protocols.window import METHODS

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
) -> WatchScene:
    from hubbub.demo.stream_file import file_scene
    from hubbub.demo.watch_scenes import demo_scene

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

    from hubbub.cli.watch_view import frame

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
    from hubbub.cli.watch_view import figure, summary

    if run.moments:
        typer.echo("\n".join(summary(run)), err=not live)
        if plot is not None:
            save_plot(figure(run), plot)
