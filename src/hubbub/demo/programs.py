"""Programs of a demonstration, each a process of its own that stops when its standard input ends.

None outlives the process that started it, however that ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from hubbub.core.errors import HubbubError

_PATIENCE = 30.0


class PartStopped(HubbubError):
    """A program of the demonstration ended by itself."""


class Programs:
    """Programs that run while a `with` block lasts, with a log each in a folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Programs(Path(folder)) as programs:
        ...     programs.ids
        []
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[tuple[str, subprocess.Popen[str], Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them, the last first."""
        for process in (process for _name, process, _log in reversed(self._running)):
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @property
    def ids(self) -> list[int]:
        """The ids of the processes, in the order in which they were started."""
        return [process.pid for _, process, _ in self._running]

    def start(self, name: str, command: list[str], ready: str = "", given: str = "") -> dict[str, Any]:
        """Start a module, and wait for the line of its log that says it is ready; what that says.

        Parameters
        ----------
        name
            What it is called when it ends by itself.
        command
            The module and its arguments.
        ready
            The word by which that line is known; without one it is not waited for.
        given
            What it is told on its standard input.
        """
        log = self._folder / f"{name}.log"
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
                    told: dict[str, Any] = json.loads(line)
                    return told
            time.sleep(0.05)
        return {}

    def check(self) -> None:
        """Raise `PartStopped` if one of them has ended."""
        for name, process, log in self._running:
            if process.poll() is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise PartStopped(f"the {name} ended with {process.returncode}: {lines[-1] if lines else 'no word'}")
