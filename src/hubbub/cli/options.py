"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "Epsilon", "Plot", "Seed"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="What one report may spend.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a plot to this file (PNG, SVG or PDF).")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")]
