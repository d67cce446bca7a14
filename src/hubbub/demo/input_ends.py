"""Stopping when standard input ends: whoever started this process need not live to stop it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def until_input_ends() -> threading.Event:
    """An event that is set when standard input ends."""
    stop = threading.Event()
    _call_when_input_ends(stop.set)
    return stop


def terminate_when_input_ends() -> None:
    """Send this process SIGTERM, its request to stop, when standard input ends."""
    _call_when_input_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))


def _call_when_input_ends(stop: Callable[[], None]) -> None:
    def wait() -> None:
        while os.read(0, 1024):  # not sys.stdin: its lock, held here, would spoil the exit
            pass
        stop()

    threading.Thread(target=wait, daemon=True).start()
