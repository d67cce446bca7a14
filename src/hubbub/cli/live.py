"""`hubbub live`: a collector, and thousands of simulated devices that answer it, until it is stopped."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Seed

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.core.estimate import Estimate
    from hubbub.simulate.live import Live, Look

__all__ = ["live"]

_TOP = 10
_HEADLESS_SECONDS = 20.0


def live(
    devices: Annotated[int, typer.Option("--devices", help="How many devices.")] = 2000,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How long.", min=1.0, show_default="until Ctrl-C")
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Print only the result, after --seconds (or 20 of them).")
    ] = False,
    step: Annotated[str, typer.Option("--step", help="How often devices answer.")] = "5s",
    workers: Annotated[int, typer.Option("--workers", help="In how many processes the devices are.")] = 3,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Keep the store here.", show_default="a temporary one")
    ] = None,
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.", min=0, max=65535)] = 0,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Watch a collection live: a real collector, and devices in several processes. Ctrl-C stops them all."""
    from hubbub.cli.output import emit, page
    from hubbub.collection.duration import seconds_of
    from hubbub.core.errors import MissingDependency

    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingDependency(error.name or "starlette", "server") from None
    from hubbub.simulate.live import Live

    quiet = headless or as_json
    lasts = _HEADLESS_SECONDS if quiet and seconds is None else seconds
    running = Live(
        devices=devices,
        step_seconds=seconds_of("step", step),
        workers=workers,
        seed=seed,
        folder=folder,
        port=port,
    )
    with _terminable():
        with running:
            look = _follow(running, lasts, quiet=quiet)
        answer = _answer(running, look)
        if as_json:
            return emit(answer)
        page().print(_table(look))
        page().print(_words(answer))
    return None


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end things as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _introduce(running: Live) -> None:
    from hubbub.cli.output import say

    say(f"{running.devices:,} devices; their emoji: {running.source}")
    if running.has_page:
        say(f"watch them at {running.address}/")
    else:
        say(f"results at {running.address}{running.releases_path} with the header")
        say(f"Authorization: Bearer {running.token}")
    say("Ctrl-C stops everything")


def _follow(running: Live, seconds: float | None, *, quiet: bool) -> Look:
    """Look once a second, show it, and return the last look; Ctrl-C is how a run without an end ends."""
    end = None if seconds is None else time.monotonic() + seconds
    look = running.look()
    try:
        if not quiet:
            _introduce(running)
        with _screen(quiet) as show:
            while end is None or time.monotonic() < end:
                time.sleep(1.0 if end is None else max(0.0, min(1.0, end - time.monotonic())))
                look = running.look()
                show(look)
    except KeyboardInterrupt:
        if end is not None:
            raise
    return look


@contextmanager
def _screen(quiet: bool) -> Iterator[Any]:
    """Yields what to call with each look: a table that changes in a terminal, a line a step elsewhere."""
    if quiet:
        yield lambda look: None
        return
    from hubbub.cli.output import say

    if not sys.stdout.isatty():
        told = [0]

        def tell(look: Look) -> None:
            if look.steps != told[0] and look.popular is not None:
                told[0] = look.steps
                top = look.popular.top(3)
                shares = ", ".join(f"{look.popular.names()[i]} {look.popular.value[i]:.1%}" for i in top)
                say(f"step {look.steps}: {look.accepted:,} accepted, {look.rejected:,} rejected; {shares}")

        yield tell
        return
    from rich.live import Live as Screen

    from hubbub.cli.output import page

    with Screen(console=page(), auto_refresh=False, transient=True) as screen:
        yield lambda look: screen.update(_table(look), refresh=True)


def _table(look: Look) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from hubbub.cli.bars import painted
    from hubbub.cli.output import percent
    from hubbub.cli.tables import plain_table

    why = ", ".join(f"{count:,} {reason}" for reason, count in look.outcomes.items() if reason != "accepted" and count)
    counted = Text(f"{look.accepted:,} reports accepted, {look.rejected:,} rejected{f' ({why})' if why else ''}")
    if look.popular is None:
        return Group(counted, Text("the first step is not over yet", style="dim"))
    table = plain_table("emoji", "estimate", "95% interval", "truth", "", left=["emoji", ""])
    rows = _rows(look.popular, look.popular_truth)
    most = max(max(row["high"], row["truth"]) for row in rows)
    for row in rows:
        ends = f"{percent(row['low'])} to {percent(row['high'])}"
        drawn = painted(row["estimate"], most, 30, mark=row["truth"])
        table.add_row(row["value"], percent(row["estimate"]), ends, percent(row["truth"]), drawn)
    return Group(counted, Text(f"the mean of {look.steps} steps; the diamond is the truth"), table)


def _rows(estimate: Estimate, truth: Any, most: int | None = _TOP) -> list[dict[str, Any]]:
    low, high = estimate.interval(0.95)
    names = estimate.names()
    return [
        {
            "value": names[i],
            "estimate": float(estimate.value[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "truth": float(truth[i]),
        }
        for i in estimate.top(len(names) if most is None else most)
    ]


def _answer(running: Live, look: Look) -> dict[str, Any]:
    from hubbub.simulate.live import covered

    answer: dict[str, Any] = {
        "devices": running.devices,
        "source": running.source,
        "step_seconds": running.collection.step_seconds,
        "steps": look.steps,
        "accepted": look.accepted,
        "rejected": look.rejected,
        "outcomes": dict(look.outcomes),
    }
    for name, estimate, truth in (
        ("popular", look.popular, look.popular_truth),
        ("trend", look.trend, look.trend_truth),
    ):
        if estimate is None:
            answer[name] = None
            continue
        rows = _rows(estimate, truth, None)
        answer[name] = {"values": len(rows), "covered": covered(estimate, truth), "estimates": rows}
    return answer


def _words(answer: dict[str, Any]) -> str:
    lines = []
    for name, what in (("popular", "the mean of all steps"), ("trend", "the stream's latest release")):
        found = answer[name]
        if found is None:
            lines.append(f"{name}: no release yet that rests on at least 20 reports")
        else:
            lines.append(f"{name}: {found['covered']} of {found['values']} intervals of {what} hold the truth")
    return "\n".join(lines)
