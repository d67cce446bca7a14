"""The keys of a question: the fields of its class, the same in TOML and in JSON; what is left out has its default."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json

LONGEST = 200
_WORDS = {bool: "true or false", str: "text", int: "a whole number", float: "a number", tuple: "a list of texts"}


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()
"""What an error shows where a key is not there."""


_KINDS: dict[type[Any], dict[str, tuple[type, bool]]] = {}


def _kinds_of(cls: type[Any]) -> dict[str, tuple[type, bool]]:
    """For each key, the type of its value and whether it may be None. Remembered, because reading hints is slow."""
    if cls not in _KINDS:
        _KINDS[cls] = {name: _kind_of(hint) for name, hint in get_type_hints(cls).items()}
    return _KINDS[cls]


def _kind_of(hint: Any) -> tuple[type, bool]:
    options = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    hint = next(option for option in options if option is not NoneType)
    origin = get_origin(hint)
    return str if origin is Literal else origin or hint, NoneType in options


def _keys(question: Any) -> list[Field[Any]]:
    return [part for part in fields(question) if part.init]


def check_keys(question: Any) -> None:
    """Refuse values of the wrong kind; a whole number is a number too, and a list becomes a tuple."""
    kinds = _kinds_of(type(question))
    for part in _keys(question):
        value = getattr(question, part.name)
        kind, optional = kinds[part.name]
        if value is None and optional:
            continue
        object.__setattr__(question, part.name, _checked(part.name, value, kind))


def _checked(name: str, value: Any, kind: type) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
        raise InvalidValue(name, value, _WORDS[kind])
    if isinstance(value, str) and (len(value) > LONGEST or not value.isprintable()):
        raise InvalidValue(name, value, f"a line of text of at most {LONGEST} characters")
    return value


def check_epsilon(name: str, value: float) -> None:
    """Refuse what is no epsilon."""
    if not math.isfinite(value) or not value > 0:
        raise InvalidValue(name, value, "a finite number above 0")


def keys_spec(question: Any) -> dict[str, Json]:
    """The keys as JSON, without those whose value is the default."""
    values = {part.name: getattr(question, part.name) for part in _keys(question)}
    defaults = {part.name: part.default for part in _keys(question)}
    chosen = {name: value for name, value in values.items() if value != defaults[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}


def read_keys(cls: type[Any], given: Mapping[str, Any]) -> Any:
    """Make a question from its keys. Refuses a missing key that has no default, and a key that the class does not
    have.
    """
    known: dict[str, Field[Any]] = {part.name: part for part in _keys(cls)}
    unknown = [name for name in given if name not in known]
    for name, part in known.items():
        if name not in given and part.default is MISSING and part.default_factory is MISSING:
            close = get_close_matches(name, unknown, n=1)
            hint = f" (is {close[0]} meant for it?)" if close else ""
            raise InvalidValue(name, NOTHING, _WORDS[_kinds_of(cls)[name][0]] + hint)
    for name in unknown:
        close = get_close_matches(name, known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise InvalidValue(name, given[name], f"nothing: questions of kind {cls.kind} have no such key{hint}")
    return cls(**given)
