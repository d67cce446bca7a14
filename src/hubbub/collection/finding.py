"""What a check says: how bad, where in the collection, and in words."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hubbub.core.errors import HubbubError

Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One thing that a check found.

    "error": refused. "warning": allowed, and worth a second thought. "note": good to know.

    Example:
        >>> str(Finding("error", "questions.popular.epsilon", "too large"))
        'error: questions.popular.epsilon: too large'
    """

    level: Level
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.text}"


class UnsafeCollection(HubbubError):
    """A collection that is refused, with everything that is wrong with it."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("; ".join(f"{finding.where}: {finding.text}" for finding in findings))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)
