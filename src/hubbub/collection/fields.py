"""Fields: what a program records, and the code that a question reads.

Whatever happens, a field has a code: a device that recorded nothing answers too, else its silence would tell.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.core.keyvalue import KeyValue

__all__ = ["NONE", "Code", "check_field", "code_of", "labels_of", "missing_code", "symbols"]

NONE = "(none)"
"""The last symbol of a categorical or ordinal field: nothing was recorded."""

MOST_LABELS = 1 << 12

Code: TypeAlias = int | float | str | tuple[int, ...] | tuple[tuple[int, float], ...]
"""An integer (categorical, ordinal), a number (numeric), a text (strings), sorted integers (sets), pairs (keyvalue)."""


def check_field(domain: Domain) -> None:
    """Refuse a domain that leaves no room for "(none)".

    Example:
        >>> check_field(Categorical(["yes", "(none)"]))
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: names: got '(none)'; allowed: names other than (none), which is added
    """
    if not isinstance(domain, Categorical | Ordinal | Numeric | Strings | Sets | KeyValue):
        raise InvalidValue("kind", domain, "categorical, ordinal, numeric, strings, sets or keyvalue")
    if isinstance(domain, Categorical) and NONE in domain.names:
        raise InvalidValue("names", NONE, f"names other than {NONE}, which is added")
    if isinstance(domain, Categorical | Ordinal):
        symbols(domain)


def symbols(domain: Domain) -> Ordinal:
    """The codes of a categorical or ordinal field: one more than it has values.

    Example:
        >>> symbols(Categorical(["yes", "no"]))
        Ordinal(size=3)
    """
    assert domain.size is not None
    return Ordinal(domain.size + 1)


def code_of(domain: Domain, value: Any) -> Code:
    """The code of a recorded value. A value that the field does not have is refused; a number is clipped later.

    Example:
        >>> code_of(Categorical(["yes", "no"]), "no"), code_of(Numeric(0, 9, cells=3), 12)
        (1, 12.0)
        >>> code_of(Sets(Ordinal(9), most=3), {7, 2})
        (2, 7)
    """
    if isinstance(domain, Numeric):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidValue("value", value, "a finite number")
        return float(value)
    if isinstance(domain, Sets):
        return tuple(int(code) for code in domain.encode([value])[0] if code >= 0)
    if isinstance(domain, KeyValue):
        return domain.pairs(value)
    if isinstance(domain, Strings):
        domain.encode([value])
        return str(value)
    if isinstance(value, bool):
        raise InvalidValue("value", value, "one of the field's values")
    return int(domain.encode([value])[0])


def missing_code(domain: Domain) -> Code:
    """The code of a field that nothing was recorded for: "(none)", the lower end, the empty text, set or mapping.

    Example:
        >>> missing_code(Categorical(["yes", "no"])), missing_code(Numeric(5, 9, cells=3)), missing_code(Strings(9))
        (2, 5.0, '')
    """
    if isinstance(domain, Numeric):
        return domain.low
    if isinstance(domain, Strings):
        return ""
    if isinstance(domain, Sets | KeyValue):
        return ()
    assert domain.size is not None
    return domain.size


def labels_of(domain: Domain) -> tuple[str, ...] | None:
    """A name for each symbol of a field, "(none)" last; None where there are too many or too few to name.

    Example:
        >>> labels_of(Categorical(["yes", "no"])), labels_of(Ordinal(2))
        (('yes', 'no', '(none)'), ('0', '1', '(none)'))
    """
    if isinstance(domain, Categorical):
        return (*domain.names, NONE)
    if isinstance(domain, Ordinal) and domain.size <= MOST_LABELS:
        return (*map(str, range(domain.size)), NONE)
    return domain.labels if isinstance(domain, Numeric | KeyValue) else None
