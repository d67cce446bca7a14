"""The live demonstration in a terminal, or as a result."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hubbub.cli import demo_live_view as view
from hubbub.cli.output import emit, page, say
from hubbub.collection.time import duration_text
from hubbub.core.errors import HubbubError

if TYPE_CHECKING:
    from hubbub.demo.live import Live, LiveResults

__all__ = ["run"]

_GRACE = 60.0
"""Seconds that a run goes on beyond its end, if it has nothing to show yet: a machine may be busy."""


class NothingYet(HubbubError):
    """There is no result to print."""


def run(
    live: Live, *, seconds: float | None, quiet: bool, browser: bool, as_json: bool, until_alarm: bool = False
) -> None:
    """Start everything, follow it for a number of seconds or until Ctrl-C, stop everything, and print the result.

    With `until_alarm` it goes on until the webhook was told of an alarm, if that is soon.
    """
    with _terminable():
        with live:
            results = _follow(live, seconds, quiet=quiet, silent=as_json, browser=browser, until_alarm=until_alarm)
        if quiet and not results.complete:
            step = live.scenes[0].collection.step_seconds
            raise NothingYet(
                f"nothing was released; steps are {duration_text(step)} long, and this machine may be busy"
            )
        if as_json:
            return emit(view.answer(live, results))
        page().print(view.summary(live, results))
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


def _introduce(live: Live, seconds: float | None) -> None:
    say(f"the page: {live.address}/")
    for scene in live.scenes:
        say(f"{scene.name}: {live.devices:,} devices; {scene.source}")
    say("Ctrl-C stops everything" if seconds is None else f"for {seconds:g} seconds")


def _open(address: str) -> None:
    """Open the page where there is a screen: a browser made of text would take the terminal."""
    import webbrowser

    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)


def _follow(
    live: Live, seconds: float | None, *, quiet: bool, silent: bool, browser: bool, until_alarm: bool
) -> LiveResults:
    """Ask for the results once a second, show them, and return the last; Ctrl-C ends a run that has no end."""
    end = None if seconds is None else time.monotonic() + seconds
    results = live.results()
    try:
        if not silent:
            _introduce(live, seconds)
        if browser:
            _open(live.address)
        with _screen(live, quiet) as show:
            while end is None or time.monotonic() < end:
                time.sleep(1.0 if end is None else max(0.0, min(1.0, end - time.monotonic())))
                results = live.results()
                show(results)
            while end is not None and time.monotonic() < end + _GRACE:
                if results.complete and (results.alarms or not until_alarm):
                    break
                time.sleep(0.5)
                results = live.results()
    except KeyboardInterrupt:
        if end is not None:
            raise
    return results


@contextmanager
def _screen(live: Live, quiet: bool) -> Iterator[Callable[[LiveResults], Any]]:
    """Yields a function that shows results."""
    if quiet:
        yield lambda results: None
        return
    from rich.live import Live as Screen

    with Screen(console=page(), auto_refresh=False, transient=True) as screen:
        yield lambda results: screen.update(view.screen(live, results), refresh=True)
