"""A release as the pages show it: numbers, how sure they are, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

__all__ = ["Answer", "Standing", "Value"]

Standing = Literal["clear", "zero", "unknown"]


class Value(NamedTuple):
    """One number of a release: the position and name of what it counts, the estimate and the ends of its interval."""

    code: int
    label: str
    value: float | None
    low: float | None
    high: float | None

    @property
    def reach(self) -> float | None:
        """How far off it may be, either way."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def standing(self) -> Standing:
        """Whether a share can be told from zero: its whole interval must be above.

        Example:
            >>> Value(0, "a", 0.5, 0.1, 0.9).standing, Value(0, "a", 0.5, 0.0, 1.0).standing
            ('clear', 'zero')
            >>> Value(0, "a", 0.5, None, None).standing
            'unknown'
        """
        if self.value is None or self.low is None:
            return "unknown"
        return "clear" if self.low > 0 else "zero"


@dataclass(frozen=True)
class Answer:
    """A release. Where it is withheld, it has no values.

    Parameters
    ----------
    question, step, time
        What was asked, which step it describes, and when it was made.
    n, population
        How many reports it rests on, and of how many devices that are thought to be there.
    kind, bias, level
        "share" or "quantity"; see `hubbub.Estimate`; how often intervals hold the truth.
    published, spent
        Whether it has reports of its own, or an earlier release stands in; the part of a window's budget it took.
    values
        In the order of their codes.
    withheld
        Why nobody may see it.

    Example:
        >>> answer = Answer.of({"question": "q", "step": 7, "time": 0.0, "n": 100, "bias": "none", "kind": "share",
        ...     "labels": ["a", "b"], "value": [0.9, 0.1], "low": [0.8, -0.1], "high": [1.0, 0.3], "level": 0.95,
        ...     "published": True, "spent": 1.0, "population": 100.0, "withheld": None})
        >>> [(value.label, value.standing) for value in answer.ranked()]
        [('a', 'clear'), ('b', 'zero')]
    """

    question: str
    step: int
    time: float
    n: int
    population: float | None
    kind: str
    bias: str
    level: float
    published: bool
    spent: float | None
    values: tuple[Value, ...]
    withheld: str | None = None

    @staticmethod
    def of(shown: Mapping[str, Any]) -> Answer:
        """From the JSON that the query routes answer with."""
        columns = [shown[name] for name in ("labels", "value", "low", "high")]
        rows = () if shown["withheld"] is not None else zip(*columns, strict=True)
        plain = {name: shown[name] for name in _PLAIN}
        return Answer(**plain, values=tuple(Value(code, *row) for code, row in enumerate(rows)))

    def ranked(self) -> list[Value]:
        """Largest first; those that cannot be told from zero after those that can."""
        return sorted(self.values, key=lambda one: (one.standing != "clear", -(one.value or 0.0), one.code))


_PLAIN = (
    "question",
    "step",
    "time",
    "n",
    "population",
    "kind",
    "bias",
    "level",
    "published",
    "spent",
    "withheld",
)
