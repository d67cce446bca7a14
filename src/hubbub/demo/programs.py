"""The programs of a demonstration, each a process of its own.

Every program holds one end of a pipe as its standard input, and stops when that ends. So closing the pipe stops it, and
no program outlives the process that started it, however that process ends.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from hubbub.core.errors import HubbubError


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


_PATIENCE = 30.0


class ProgramStopped(HubbubError):
    """A program of the demonstration ended by itself."""


class Programs:
    """Programs that run while a `with` block lasts, with a log each in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[tuple[str, subprocess.Popen[str], Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all programs, those that were started last first, and those of one name at the same time."""
        for stopped in dict.fromkeys(name for name, _, _ in reversed(self._running)):
            processes = [process for name, process, _ in self._running if name == stopped]
            for process in processes:
                assert process.stdin is not None
                process.stdin.close()
            for process in processes:
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    @property
    def ids(self) -> list[int]:
        """The ids of the processes, in the order in which they were started."""
        return [process.pid for _, process, _ in self._running]

    def start(self, name: str, command: list[str], ready: str = "", given: str = "") -> dict[str, object]:
        """Start a module, wait until a line of its log says that it is ready, and return that line, read as JSON.

        Parameters
        ----------
        name
            What the program is called in errors and in the name of its log; several may have the same name.
        command
            The module and its arguments.
        ready
            A key of that line; if empty, nothing is waited for.
        given
            What is written to its standard input.
        """
        log = self._folder / f"{name}-{len(self._running)}.log"
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # a Ctrl-C is for this process, which then stops the others in order
            )
        self._running.append((name, process, log))
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.flush()
        while ready:
            self.check()
            for line in log.read_text(encoding="utf-8").splitlines():
                if f'"{ready}"' in line:
                    answer: dict[str, object] = json.loads(line)
                    return answer
            time.sleep(0.05)
        return {}

    def check(self) -> None:
        """Raise `ProgramStopped` if one of the programs has ended."""
        for name, process, log in self._running:
            if process.poll() is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise ProgramStopped(f"the {name} ended with {process.returncode}: {lines[-1] if lines else 'no word'}")
