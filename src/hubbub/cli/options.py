"""Options that several commands take, and names in any case with a suggestion where one is misspelt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import typer

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.mechanisms.base import Mechanism


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


def mechanism_of(
    name: str, *, epsilon: float, domain: int | None, default: int, given: Mapping[str, Any] | None = None
) -> Mechanism:
    """The mechanism of a name, or the best one for "adaptive".

    Refuses a mechanism that needs more fields than were given: none is filled in with a guess, except for the size of
    the domain, which has a default.

    Parameters
    ----------
    name, epsilon
        As asked.
    domain
        The size of the domain, where one was asked for.
    default
        The size where none was, and the mechanism needs one.
    given
        Other fields of the mechanism: those of `--set`.
    """
    from hubbub.core.domain import as_domain
    from hubbub.mechanisms import MECHANISMS, randomizers
    from hubbub.mechanisms.frequency.adaptive import adaptive
    from hubbub.privacy.enumeration import required_fields
    from hubbub.questions.keys import NOTHING

    name = named("mechanism", name, [*randomizers(), *MECHANISMS.broken(), ADAPTIVE])
    values = dict(given or {})
    if domain is not None and "domain" in values:
        raise InvalidValue("domain", values["domain"], "--domain, or --set domain=VALUE, not both")
    if name == ADAPTIVE:
        if values:
            raise InvalidValue("set", sorted(values), "nothing: adaptive chooses the fields itself")
        return adaptive(epsilon=epsilon, domain=default if domain is None else domain)
    kind: type[Any] = MECHANISMS[name]
    known = [field.name for field in fields(kind) if field.name != "epsilon"]
    for field in values:
        named("set", field, known)
    if domain is not None:
        if "domain" not in known:
            raise InvalidValue("domain", domain, f"nothing: {name} has no list of values")
        values["domain"] = domain
    for field in required_fields(kind):
        if field == "domain" and as_domain("domain", next(kind.examples()).domain).size is not None:
            values.setdefault("domain", default)
        if field not in values:
            by = "--domain SIZE, or " if field == "domain" else ""
            raise InvalidValue(field, NOTHING, f"{by}--set {field}=VALUE: {name} needs it")
    mechanism: Mechanism = kind(epsilon=epsilon, **values)
    return mechanism


def fields_of(texts: Iterable[str]) -> dict[str, Any]:
    """The fields of `--set NAME=VALUE`: a value is JSON, or else text."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in values:
            raise InvalidValue("set", text, "NAME=VALUE, each name once")
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
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="What one report may spend.")]
Forged = Annotated[
    float | None, typer.Option("--forged", help="The part of reports that may be forged.", show_default="0.01")
]
N = Annotated[int, typer.Option("--n", "-n", help="How many people report.", show_default=False)]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a plot to this file (PNG, SVG or PDF).")]
MechanismFields = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A field of the mechanism, such as dimension=128; repeatable."),
]
FreshSeed = Annotated[int | None, typer.Option("--seed", help="For a repeatable result.", show_default="drawn anew")]
Truth = Annotated[bool, typer.Option("--truth", help="Show the truth too: whoever has the file has it.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")]
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
