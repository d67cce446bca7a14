"""Canonical JSON (RFC 8785) and the id of a spec.

Client and server share one spec; its id is the hash of one spelling of it. Integers of 2^53 or more, which a
browser's numbers cannot hold, are written as decimal strings.
"""

import hashlib
import math
from collections.abc import Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import TypeAlias

from hubbub.core.errors import InvalidValue

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
SAFE = 1 << 53


def canonical(value: Json) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, numbers as ECMAScript writes them."""
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < SAFE else f'"{value}"'
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict | Mapping):  # asking for a dict first is quick
        spelt = {key: _string(key) for key in value}
        keys = sorted(value, key=None if all(map(str.isascii, value)) else _utf_16)
        return "{" + ",".join(f"{spelt[key]}:{canonical(value[key])}" for key in keys) + "}"
    raise InvalidValue("spec", value, "None, booleans, numbers, strings, lists and objects")


def spec_id(spec: Json) -> str:
    """32 hexadecimal digits (128 bits of SHA-256) of the canonical spelling."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()[:32]


def integer(name: str, value: object) -> int:
    """Read an integer back from a spec: a number, or a decimal string where it is large."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 40:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(name, value, "an integer, or a decimal string of one")
    return value


def check_fields(name: str, spec: object, expected: set[str]) -> None:
    """Refuse a spec that is not a JSON object with exactly these keys."""
    if not isinstance(spec, Mapping) or set(spec) != expected:
        raise InvalidValue(name, spec, f"exactly the fields {', '.join(sorted(expected))}")


def _string(value: object) -> str:
    if not isinstance(value, str) or not (value.isascii() or _is_whole(value)):
        raise InvalidValue("spec", value, "strings of whole characters")
    return encode_basestring(value)


def _is_whole(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _utf_16(key: str) -> bytes:
    """What RFC 8785 sorts keys by: for ASCII, the order of the strings themselves."""
    return key.encode("utf-16-be")


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise InvalidValue("spec", value, "finite numbers")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    return "-" * sign + _layout(text.rstrip("0"), point)


def _layout(digits: str, point: int) -> str:
    """ECMAScript's Number::toString for `0.digits` times ten to the `point`."""
    size = len(digits)
    if size <= point <= 21:
        return digits + "0" * (point - size)
    if 0 < point <= 21:
        return digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits if size == 1 else digits[0] + "." + digits[1:]
    return f"{mantissa}e{point - 1:+d}"
