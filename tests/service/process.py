"""A collector in a process of its own, and requests to it over a socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class Process:
    """A process that prints its port on its first line of output."""

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
        )
        self.log: list[str] = []
        self._reading = threading.Thread(target=self._read_log, daemon=True)
        self._reading.start()
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first.strip().isdigit(), (first, self.close(), self.log)
        self.port = int(first)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):
            for line in self.process.stderr:
                self.log.append(line)

    def connect(self, timeout: float = 30) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path: str, **headers: str) -> Any:
        connection = self.connect()
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            return json.loads(answer.read())
        finally:
            connection.close()

    def close(self) -> int:
        """Wait for the end, and let go of the pipes."""
        code = self.process.wait(60)
        self._reading.join(60)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code

    def kill(self) -> int:
        self.process.kill()
        return self.close()

    def stop(self) -> int:
        self.process.terminate()
        return self.close()


def exact_process(store: str, folder: Path, plant: str = "") -> Process:
    return Process([str(HERE / "serve_exact.py"), store, str(folder / "keys"), plant], folder)
