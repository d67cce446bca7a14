"""Errors that name the exact place in a collection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hubbub.core.errors import InvalidValue


@contextmanager
def at(place: str, **renamed: str) -> Iterator[None]:
    """Put the place before the field that an error names; a field may have another name there.

    Example:
        >>> with at("questions.popular", domain="names"):
        ...     raise InvalidValue("domain", ["a"], "two names")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: questions.popular.names: got ['a']; allowed: two names
    """
    try:
        yield
    except InvalidValue as error:
        field = renamed.get(error.field, error.field)
        where = f"{place}.{field}" if field else place
        raise InvalidValue(where, error.value, error.allowed) from None
