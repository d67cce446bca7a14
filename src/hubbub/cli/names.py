"""Names on the command line: in any case, and with a suggestion where one is misspelt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.mechanisms.base import Mechanism

ADAPTIVE = "adaptive"


def named(field: str, given: str, known: Iterable[str]) -> str:
    """The known name that was given, in any case; else an error that suggests the closest.

    Example:
        >>> named("mechanism", "olh", ["GRR", "OLH"])
        'OLH'
        >>> named("mechanism", "ohl", ["GRR", "OLH"])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: mechanism: got 'ohl'; allowed: one of GRR, OLH (did you mean OLH?)
    """
    names = {name.lower(): name for name in known}
    spelt = names.get(given.lower())
    if spelt is not None:
        return spelt
    close = get_close_matches(given.lower(), names, n=1, cutoff=0.4)
    hint = f" (did you mean {names[close[0]]}?)" if close else ""
    raise InvalidValue(field, given, f"one of {', '.join(names.values())}{hint}")


def mechanism_of(name: str, *, epsilon: float, domain: int | None, default: int) -> Mechanism:
    """The mechanism of a name, or the best one for "adaptive". Other fields that it needs come from its first example.

    Parameters
    ----------
    name, epsilon
        As asked.
    domain
        The size of the domain, where one was asked for.
    default
        The size where none was, and the mechanism needs one.

    Example:
        >>> mechanism_of("adaptive", epsilon=1.0, domain=None, default=4).spec()["mechanism"]
        'GRR'
    """
    from hubbub.core.domain import Strings, as_domain
    from hubbub.mechanisms import randomizers
    from hubbub.mechanisms.frequency.adaptive import adaptive

    name = named("mechanism", name, [*randomizers(), ADAPTIVE])
    size = default if domain is None else domain
    if name == ADAPTIVE:
        return adaptive(epsilon=epsilon, domain=size)
    kind: type[Any] = randomizers()[name]
    required = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    values = {field: getattr(next(kind.examples()), field) for field in required if field != "epsilon"}
    if domain is not None and not any(field.name == "domain" for field in fields(kind)):
        raise InvalidValue("domain", domain, f"nothing: {name} has no list of values")
    if domain is not None or as_domain("domain", values.get("domain", Strings(1))).size is not None:
        values["domain"] = size
    mechanism: Mechanism = kind(epsilon=epsilon, **values)
    return mechanism
