"""A table of a TOML file, which knows where it is: every error names the exact place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.questions.keys import NOTHING

_MISSING: Any = object()
_WORDS = {bool: "true or false", str: "text", int: "a whole number", float: "a number", dict: "a table", list: "a list"}


class TomlTable:
    """Reads keys one by one, and refuses what nobody read."""

    def __init__(self, given: Mapping[str, Any], place: str = "") -> None:
        self._given = given
        self._read: set[str] = set()
        self.place = place

    def at(self, key: str) -> str:
        """The place of a key."""
        return f"{self.place}.{key}" if self.place else key

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """The value of a key, of this kind; a whole number is a number too."""
        self._read.add(key)
        if key not in self._given:
            if default is not _MISSING:
                return default
            close = get_close_matches(key, [name for name in self._given if name not in self._read], n=1)
            hint = f" (is {close[0]} meant for it?)" if close else ""
            raise InvalidValue(self.at(key), NOTHING, _WORDS[kind] + hint)
        value: Any = self._given[key]
        if kind is float and type(value) is int:
            value = float(value)
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
            raise InvalidValue(self.at(key), value, _WORDS[kind])
        return value

    def raw(self, key: str, default: Any) -> Any:
        """The value of a key, of whatever kind."""
        self._read.add(key)
        return self._given.get(key, default)

    def table(self, key: str, *, optional: bool = False) -> TomlTable:
        """The table of a key."""
        return TomlTable(self.take(key, dict, {} if optional else _MISSING), self.at(key))

    def tables(self, key: str) -> Iterator[tuple[str, TomlTable]]:
        """The tables in the table of a key, by name."""
        outer = self.table(key)
        for name in outer._given:
            yield name, outer.table(name)

    def rest(self) -> dict[str, Any]:
        """What was not read yet; read with this."""
        left = {key: value for key, value in self._given.items() if key not in self._read}
        self._read.update(left)
        return left

    def finish(self) -> None:
        """Refuse keys that nobody read."""
        for key, value in self._given.items():
            if key not in self._read:
                close = get_close_matches(key, self._read, n=1)
                hint = f" (did you mean {close[0]}?)" if close else ""
                raise InvalidValue(self.at(key), value, f"nothing: there is no such key here{hint}")
