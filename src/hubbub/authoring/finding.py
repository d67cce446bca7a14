"""What a check says: how bad, where in the file, and in words."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Finding", "Level"]

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
