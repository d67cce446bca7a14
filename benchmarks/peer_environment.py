"""The other libraries' environment: made once, in build/, by pip from pinned versions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from measure import BUILD, HERE, Failure, in_process
from numpy.typing import NDArray

PINS = HERE / "peers.txt"


def population(n: int, d: int) -> NDArray[np.int64]:
    """What everyone holds: every other person value 0, the rest spread over the domain."""
    person = np.arange(n)
    return np.where(person % 2, person // 2 % d, 0)


def best_peer(job: str, n: int, d: int) -> tuple[str, float, float | None]:
    """The fastest library on a job of peers.py: its name, CPU seconds, and what it found of value 0."""
    measured = in_process("peers.py", job, n, d, python=_python())
    name = min(measured, key=lambda peer: measured[peer]["cpu"])
    return name, measured[name]["cpu"], measured[name].get("held")


def _python() -> Path:
    folder = BUILD / "peers-venv"
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == PINS.read_text():
        return python
    print("installing the libraries to compare with ...", file=sys.stderr)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "-r", str(PINS)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            raise Failure("The libraries to compare with could not be installed; pip's own words are above.")
    stamp.write_text(PINS.read_text())
    return python
