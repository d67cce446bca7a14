"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

import typer

from hubbub.core.errors import InvalidValue

__all__ = ["AsJson", "Epsilon", "FreshSeed", "MechanismFields", "Plot", "ReportsFolder", "Seed", "StoreUrl", "Truth"]


def refuse_password(context: typer.Context, parameter: typer.CallbackParam, url: str) -> str:
    """The URL of a store. Refuses a password on the command line, which every user of the machine can read."""
    parts = urlsplit(url)
    secret = parts.password or any(name in ("password", "sslpassword") for name, _ in parse_qsl(parts.query))
    source = context.get_parameter_source(parameter.name or "")
    if secret and source is not None and source.name == "COMMANDLINE":
        allowed = "no password on the command line, where others see it: set HUBBUB_STORE, or use PGPASSFILE"
        raise InvalidValue("store", f"{parts.scheme}://...", allowed)
    return url


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="What one report may spend.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a plot to this file (PNG, SVG or PDF).")]
MechanismFields = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A field of the mechanism, such as dimension=128; repeatable."),
]
FreshSeed = Annotated[int | None, typer.Option("--seed", help="For a repeatable result.", show_default="drawn anew")]
Truth = Annotated[bool, typer.Option("--truth", help="Show the truth beside: whoever has the file has it.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")]
StoreUrl = Annotated[
    str,
    typer.Option("--store", envvar="HUBBUB_STORE", help="sqlite:///path or postgresql://...", callback=refuse_password),
]
ReportsFolder = Annotated[
    Path | None,
    typer.Option(
        "--reports", help="Where single reports are, if a question keeps them.", show_default="beside the store"
    ),
]
