"""A file of 3,000 fares, and how `hubbub release` is told to release their means."""

from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import Result

from tests.cli.commands import Hubbub

VALUES = np.random.default_rng(5).gamma(2, 5, 3000).clip(0, 100).round(2)
SETTINGS = ("--epsilon", 4, "--bound", 100, "--holdout", 500, "--range", 4096, "--every", 256)
RELEASE = ("release", "fares.csv", "--column", "fare", *SETTINGS)
KEYWORDS: dict[str, Any] = {"epsilon": 4.0, "bound": 100.0, "holdout": 500, "max_range": 4096}
MEANS = VALUES[500 : 500 + 9 * 256].reshape(9, 256).mean(axis=1)
"""The truth of the nine steps."""


def write(values: np.ndarray) -> None:
    """Write the file into this folder."""
    Path("fares.csv").write_text("id,fare\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))


def lines(values: np.ndarray) -> str:
    return "".join(f"{value}\n" for value in values)


def pipe(hubbub: Hubbub, text: str, *options: object) -> Result:
    """Release what comes through a pipe."""
    return hubbub("release", "-", *SETTINGS, *options, stdin=text)


def piped_steps(result: Result) -> list[list[str]]:
    """The number and the value of each step that a release of a pipe printed."""
    assert result.exit_code == 0, result.stderr
    return [line.split("\t")[:2] for line in result.stdout.splitlines()[1:]]
