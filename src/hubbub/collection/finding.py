"""The findings of a check: how severe, where in the collection, and a sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hubbub.core.errors import HubbubError

Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One finding of a check.

    "error": the collection is refused. "warning": it is allowed, but should be reconsidered. "note": information.
    """

    level: Level
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.text}"


class UnsafeCollection(HubbubError):
    """A collection is refused; `findings` are all its errors."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("; ".join(f"{finding.where}: {finding.text}" for finding in findings))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)
