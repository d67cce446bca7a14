"""`hubbub watch`: a live stream, its interval, and an alarm: of simulated devices, or of a collector."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hubbub.cli.options import AsJson, CollectionName, FreshSeed, Plot, QuestionName, Token, named
from hubbub.cli.output import check_plot, say
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.random.source import Random
    from hubbub.watch.moment import Moment
    from hubbub.watch.watch import Watch, WatchScene

_SPEED = 10.0  # steps per second in the live view
_STEPS = 200  # of the demo


_Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE|URL]",
        help="A CSV, TSV, JSON lines or Parquet file, each row a device's value; or a collector's address.",
        show_default=False,
    ),
]
_Demo = Annotated[bool, typer.Option("--demo", help="200,000 invented devices, with a surge.")]
_Method = Annotated[str, typer.Option("--method", "-m", help="How a window is divided, such as LPU.")]
_Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="What a device may spend in any w consecutive steps.")]
_W = Annotated[int, typer.Option("--w", "-w", help="The window, in steps.")]
_Option = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="Of the method, such as beta=0.3.", show_default=False),
]
_Steps = Annotated[
    int | None, typer.Option("--steps", help="How many steps to watch.", show_default=f"all; the demo {_STEPS}")
]
_Speed = Annotated[
    float | None, typer.Option("--speed", help="Steps per second.", show_default=f"live {_SPEED:g}, else no limit")
]
_Above = Annotated[
    float | None,
    typer.Option(
        "--above",
        help="The alarm goes on once the number is surely above this.",
        show_default="demo 0.11, file 3/4 of the way up",
    ),
]
_Below = Annotated[
    float | None,
    typer.Option(
        "--below",
        help="The alarm goes off once the number is surely below this.",
        show_default="demo 0.1, file as --above",
    ),
]
_Every = Annotated[
    str | None,
    typer.Option("--every", metavar="1h", help="Rows have times; a step is this long.", show_default=False),
]
_Step = Annotated[
    str | None,
    typer.Option("--step", help="The column of the step.", show_default="step; with --every the one of times"),
]
_Device = Annotated[str, typer.Option("--device", help="The column of the device.")]
_Value = Annotated[str, typer.Option("--value", help="The column of the value.")]
_Watched = Annotated[str | None, typer.Option("--watch", help="The value to watch.", show_default="the most frequent")]
_Mean = Annotated[
    str | None, typer.Option("--mean", metavar="LOW,HIGH", help="Watch the mean of numbers in this range.")
]


def watch(
    source: _Source = None,
    demo: _Demo = False,
    method: _Method = "LPU",
    epsilon: _Epsilon = 1.0,
    w: _W = 20,
    option: _Option = None,
    steps: _Steps = None,
    speed: _Speed = None,
    above: _Above = None,
    below: _Below = None,
    every: _Every = None,
    step: _Step = None,
    device: _Device = "device",
    value: _Value = "value",
    watched: _Watched = None,
    mean: _Mean = None,
    collection: CollectionName = None,
    question: QuestionName = None,
    token: Token = None,
    plot: Plot = None,
    seed: FreshSeed = None,
    as_json: AsJson = False,
) -> None:
    """Watch a stream of private reports, with an alarm.

    On a terminal it is a live chart; elsewhere, or with --json, one line of JSON for each release.

    With a file, a device without a row in a step counts as "none", and the truth is shown with the estimates, because
    these devices are simulated. With a collector, releases are shown as they come; while it cannot be reached, it is
    asked again.
    """
    from hubbub.cli.watch_remote import WatchView, follow, is_address, show_moments

    check_plot(plot)
    live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not as_json
    if source is not None and is_address(source) and not demo:
        simulated = {"every": every, "step": step, "mean": mean, "above": above, "below": below, "speed": speed}
        _refuse_given({**simulated, "option": option or None, "seed": seed}, "with a collector")
        names = {"collection": collection, "question": question, "watched": watched}
        return follow(source, **names, token=token, steps=steps, live=live, plot=plot)
    _refuse_given({"collection": collection, "question": question, "token": token}, "without a collector's address")

    from hubbub.cli.watch_view import frame, summary, title
    from hubbub.protocols.window import METHODS
    from hubbub.random.source import Random
    from hubbub.watch.watch import Watch

    method = named("method", method, METHODS)
    if speed is not None and not (math.isfinite(speed) and speed > 0):
        raise InvalidValue("speed", speed, "a finite number of steps per second, above 0")
    rng = Random(seed=seed)
    columns = _Columns(step, device, value, every)
    scene = _scene(source, demo, steps, columns, watched, mean, rng.child("stream"))
    run = Watch(
        scene,
        method=method,
        epsilon=epsilon,
        w=w,
        steps=steps,
        above=above,
        below=below,
        rng=rng.child("devices"),
        options=_options(option or []),
    )
    for note in scene.notes:
        say(note)
    view = WatchView(partial(frame, run), lambda: summary(run), scene.name, title(run))
    return show_moments(run, _paced(run, _SPEED if live and speed is None else speed), view, live=live, plot=plot)


def _options(given: list[str]) -> dict[str, bool | int | float]:
    """The options of a method by name, from texts such as "beta=0.3"."""
    from hubbub.protocols.window import OPTIONS

    options: dict[str, bool | int | float] = {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in OPTIONS:
            raise InvalidValue("option", text, f"NAME=VALUE, where NAME is one of {', '.join(OPTIONS)}")
        words: dict[str, bool | int | float] = {"true": True, "false": False}
        try:
            options[name] = words[value] if value in words else (int(value) if value.isdecimal() else float(value))
        except ValueError:
            raise InvalidValue(name, value, OPTIONS[name].meaning) from None
    return options


class _Columns(NamedTuple):
    """Where a file has steps, devices and values, and how long a step is, if the first are times."""

    step: str | None
    device: str
    value: str
    every: str | None


def _scene(
    file: str | None,
    demo: bool,
    steps: int | None,
    columns: _Columns,
    watched: str | None,
    mean: str | None,
    rng: Random,
) -> WatchScene:
    from hubbub.collection.time import seconds_of
    from hubbub.questions.keys import NOTHING
    from hubbub.watch.stream_file import file_scene
    from hubbub.watch.watch import demo_scene

    if demo == (file is not None):
        given = NOTHING if file is None else file
        raise InvalidValue("file", given, "one of: a file, a collector's address, or --demo")
    if file is not None:
        every = None if columns.every is None else seconds_of("every", columns.every)
        return file_scene(
            Path(file),
            rng,
            step=columns.step,
            device=columns.device,
            value=columns.value,
            watch=watched,
            mean=None if mean is None else _range(mean),
            every=every,
        )
    _refuse_given({"watch": watched, "mean": mean, "every": columns.every}, "with --demo")
    return demo_scene(rng, steps=_STEPS if steps is None else steps)


def _refuse_given(options: dict[str, object], where: str) -> None:
    for field, given in options.items():
        if given is not None:
            raise InvalidValue(field, str(given), f"nothing {where}")


def _range(mean: str) -> tuple[float, float]:
    try:
        low, high = map(float, mean.split(","))
    except ValueError:
        raise InvalidValue("mean", mean, "two numbers, such as 0,100") from None
    return low, high


def _paced(run: Watch, speed: float | None) -> Iterator[Moment]:
    """The moments, no faster than a given number per second."""
    due = time.monotonic()
    for moment in run:
        yield moment
        if speed is not None:
            due = max(due + 1 / speed, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
