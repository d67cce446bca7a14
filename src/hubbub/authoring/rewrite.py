"""Collection files of older formats: refused, with the text that they would have today.

A file is never read as another than its author wrote: what changed in the format may have to be decided, and the file
is in somebody's repository. So the error holds the rewritten text, to be looked at and kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import Versions

Rewrite: TypeAlias = Callable[[str], str]
"""Makes the text of a file of one format one of the next, comments and all; its `format` is changed for it."""
_TABLE = re.compile(r"^\s*\[", re.MULTILINE)
_FORMAT = re.compile(r"^format[ \t]*=.*$", re.MULTILINE)


class OutdatedFile(InvalidValue):
    """A collection file of an older format; `rewritten` is what it would be today."""

    def __init__(self, name: str, version: int, present: int, rewritten: str) -> None:
        self.name, self.version, self.present, self.rewritten = name, version, present, rewritten
        allowed = f"format {present}. This is the file in it; look it over, and keep it in the place of the old:"
        super().__init__(name, f"format {version}", f"{allowed}\n\n{rewritten}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.name, self.version, self.present, self.rewritten)


@dataclass(frozen=True)
class TomlFormat(Versions[Rewrite]):
    """The formats of collection files; a file without a number is of the first."""

    def refuse_outdated(self, text: str, version: object, name: str) -> None:
        """Refuse the text of a file of another format than the present one."""
        steps = self.since(version)
        for step in steps:
            text = step(text)
        if steps:
            raise OutdatedFile(name, self.check(version), self.version, _numbered(text, self.version))


TOML = TomlFormat("format", 1)
"""The files of today."""


def _numbered(text: str, version: int) -> str:
    """The text with the number of its format, in the place of the one it had or in the first line."""
    table = _TABLE.search(text)
    head = text if table is None else text[: table.start()]
    if _FORMAT.search(head):
        return _FORMAT.sub(f"format = {version}", head, count=1) + text[len(head) :]
    return f"format = {version}\n{text.lstrip()}"
