"""Options that several commands take, and names in any case with a suggestion where one is misspelt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import typer

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.core.domain import Domain as ValueDomain
    from hubbub.mechanisms.base import ReportFormat


ADAPTIVE = "adaptive"


def named(field: str, given: str, known: Iterable[str]) -> str:
    """The known name that was given, in any case; else an error that suggests the closest."""
    names = {name.lower(): name for name in known}
    spelt = names.get(given.lower())
    if spelt is not None:
        return spelt
    close = get_close_matches(given.lower(), names, n=1, cutoff=0.4)
    hint = f" (did you mean {names[close[0]]}?)" if close else ""
    raise InvalidValue(field, given, f"one of {', '.join(names.values())}{hint}")


_RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)(?:/(\d+))?")


def range_domain(field: str, name: str, values: str) -> ValueDomain:
    """The domain of a column's values, written as 0..99 (integers) or 0..50000/100 (numbers in 100 cells)."""
    from hubbub.core.domain import Numeric, Ordinal

    match = _RANGE.fullmatch(values)
    try:
        if match is None:
            raise ValueError
        low, high = float(match[1]), float(match[2])
        if match[3] is not None:
            return Numeric(low, high, cells=int(match[3]))
        if low != 0 or not high.is_integer():
            raise ValueError
        return Ordinal(int(high) + 1)
    except ValueError as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(
            field, f"{name}={values}", "integers as 0..99, or numbers in cells as 0..50000/100"
        ) from None


def mechanism_of(
    name: str,
    *,
    epsilon: float,
    domain: int | None,
    default: int,
    given: Mapping[str, object] | None = None,
    known: Iterable[str] = (),
) -> ReportFormat:
    """The mechanism of a name, or the best one for "adaptive".

    Refuses a mechanism that needs more fields than were given: none is filled in with a guess, except for the size of
    the domain, which has a default.

    `domain`: the size of the domain, where one was asked for. `default`: the size where none was, and the mechanism
    needs one. `known`: the names of mechanisms, in addition to those that make every report afresh.
    """
    from hubbub.core.domain import as_domain
    from hubbub.mechanisms import MECHANISMS, randomizers
    from hubbub.mechanisms.frequency.adaptive import adaptive
    from hubbub.privacy.enumeration import required_fields
    from hubbub.questions.keys import NOTHING

    name = named("mechanism", name, dict.fromkeys([*randomizers(), *known, *MECHANISMS.broken(), ADAPTIVE]))
    values = dict(given or {})
    if name == ADAPTIVE:
        if values:
            raise InvalidValue(*values.popitem(), "nothing: adaptive chooses the fields itself")
        return adaptive(epsilon=epsilon, domain=default if domain is None else domain)
    kind: type[Any] = MECHANISMS[name]
    own = [field.name for field in fields(kind) if field.name != "epsilon"]
    for field in values:
        named(f"--{field}", field, own)
    if domain is not None:
        if "domain" not in own:
            raise InvalidValue("domain", domain, f"nothing: {name} has no list of values")
        values["domain"] = domain
    for field in required_fields(kind):
        if field == "domain" and as_domain("domain", next(kind.examples()).domain).size is not None:
            values.setdefault("domain", default)
        if field not in values:
            raise InvalidValue(field, NOTHING, f"--{field} VALUE: {name} needs it")
    mechanism: ReportFormat = kind(epsilon=epsilon, **values)
    return mechanism


def fields_of(words: Iterable[str]) -> dict[str, object]:
    """The fields of a mechanism from `--name VALUE` or `--name=VALUE`: a value is JSON, or else text."""
    values: dict[str, object] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        value = value if equals else next(rest, "")
        if not option.startswith("--") or not value or value.startswith("--") or name in values:
            raise InvalidValue(word, value or "nothing", "--name VALUE for a field of the mechanism, each once")
        try:
            values[name] = json.loads(value)
        except (ValueError, RecursionError):
            values[name] = value
    return values


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
Domain = Annotated[int, typer.Option("--domain", "-d", help="How many values there are.", show_default=False)]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="What one report may spend.")]
Forged = Annotated[
    float | None, typer.Option("--forged", help="The part of reports that may be forged.", show_default="0.01")
]
N = Annotated[int, typer.Option("--n", "-n", help="How many people report.", show_default=False)]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a plot to this file (PNG, SVG or PDF).")]
MECHANISM_FIELDS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""The settings of a command that takes every field of a mechanism as an option: see `fields_of`."""
FreshSeed = Annotated[int | None, typer.Option("--seed", help="For a repeatable result.", show_default="drawn anew")]
Truth = Annotated[bool, typer.Option("--truth", help="Show the truth too: whoever has the file has it.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")]
CollectionName = Annotated[
    str | None, typer.Option("--collection", help="Of a collector: which collection.", show_default="the only one")
]
QuestionName = Annotated[
    str | None, typer.Option("--question", help="Of a collector: which question.", show_default="the only one")
]
Token = Annotated[
    Path | None, typer.Option("--token", help="A file with the collector's token.", show_default="HUBBUB_TOKEN")
]
StoreUrl = Annotated[
    str,
    typer.Option("--store", envvar="HUBBUB_STORE", help="sqlite:///path or postgresql://...", callback=refuse_password),
]
ReportsFolder = Annotated[
    Path | None,
    typer.Option(
        "--reports", help="Where single reports are, if a question keeps them.", show_default="next to the store"
    ),
]
