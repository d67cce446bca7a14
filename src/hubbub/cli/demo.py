"""`hubbub demo`: the whole system at work, with simulated devices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import AsJson, Seed
from hubbub.core.errors import InvalidValue, needs

HEADLESS_SECONDS = 20.0


def demo(
    devices: Annotated[
        int | None,
        typer.Option(
            "--devices",
            help="How many devices answer each of the five collections.",
            show_default="8000; 600 with --trust shuffle",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="How long it runs.", min=1.0, show_default="until Ctrl-C"),
    ] = None,
    headless: Annotated[
        bool,
        typer.Option(
            "--headless", help="Print only the result, after --seconds or once the blizzard's alarm is raised."
        ),
    ] = False,
    step: Annotated[
        str | None,
        typer.Option("--step", help="How often devices answer.", show_default="4s; 8s with --trust shuffle"),
    ] = None,
    trust: Annotated[
        str,
        typer.Option("--trust", help="local: everyone reports to the collector. shuffle: one step, by two shufflers."),
    ] = "local",
    workers: Annotated[int, typer.Option("--workers", help="In how many processes the devices of each are.")] = 2,
    port: Annotated[int, typer.Option("--port", help="The page's port; 0 takes a free one.", min=0, max=65535)] = 0,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Keep the store here.", show_default="a temporary one")
    ] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="No server: one collection by each mechanism, with the truth, and a plot.")
    ] = False,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="With --once: how many people.", show_default="everyone, 156,941")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", "-e", help="With --once: what one report may spend.", show_default="1.0"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="With --once: the folder for the plot and the numbers.", show_default="build/demo"),
    ] = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Watch the whole system: a collector, its page, and thousands of devices that answer. Ctrl-C stops them all.

    Where there is no terminal, it is headless: it prints the result and ends by itself.
    """
    if once:
        from hubbub.cli.demo_once import demo_once

        return demo_once(n, 1.0 if epsilon is None else epsilon, seed, out or Path("build/demo"), as_json)
    for name, given in (("--n", n), ("--epsilon", epsilon), ("--out", out)):
        if given is not None:
            raise InvalidValue(name, str(given), "nothing, unless --once is given too")
    with needs("demo"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    if trust not in ("local", "shuffle"):
        raise InvalidValue("--trust", trust, "local or shuffle")
    if trust == "shuffle":
        from hubbub.cli.demo_shuffled import run_shuffled
        from hubbub.cli.output import say
        from hubbub.collection.time import seconds_of
        from hubbub.demo.shuffled import ShuffledDemo

        sizes = {"devices": 600 if devices is None else devices, "step_seconds": seconds_of("step", step or "8s")}
        return run_shuffled(ShuffledDemo(**sizes, seed=seed, say=None if as_json else say), as_json=as_json)
    from hubbub.cli.demo_live import run
    from hubbub.cli.output import say
    from hubbub.collection.time import seconds_of
    from hubbub.demo.live import Live

    quiet = headless or as_json or not (sys.stdin.isatty() and sys.stdout.isatty())
    live = Live(
        devices=8000 if devices is None else devices,
        step_seconds=seconds_of("step", step or "4s"),
        workers=workers,
        seed=seed,
        folder=folder,
        port=port,
        say=None if as_json else say,
    )
    return run(
        live,
        seconds=HEADLESS_SECONDS if quiet and seconds is None else seconds,
        quiet=quiet,
        until_alarm=quiet and seconds is None,
        browser=browser,
        as_json=as_json,
    )
