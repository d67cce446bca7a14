"""The error of a query that cannot be answered: where, why, and what could be asked instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from hubbub.core.errors import HubbubError


class QueryError(HubbubError, ValueError):
    """A query that is not answered, with the place of the fault in its text.

    `line`, `column`: where, both counted from 1; None where the query as a whole is meant.
    """

    def __init__(
        self, problem: str, instead: str = "", *, line: int | None = None, column: int | None = None, start: int = -1
    ) -> None:
        self.problem = problem
        self.instead = instead
        self.line = line
        self.column = column
        self.start = start
        """The offset of the fault in the text; -1 if unknown. `located` makes a line and a column of it."""
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(f"{place}{problem}{f'; {instead}' if instead else ''}")

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.problem, self.instead, self.line, self.column)

    def located(self, text: str) -> QueryError:
        """The same error with line and column in a query's text."""
        if self.line is not None or not 0 <= self.start <= len(text):
            return self
        before = text[: self.start]
        column = self.start - (before.rfind("\n") + 1) + 1
        return QueryError(self.problem, self.instead, line=before.count("\n") + 1, column=column, start=self.start)


def _again(problem: str, instead: str, line: int | None, column: int | None) -> QueryError:
    return QueryError(problem, instead, line=line, column=column)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest of some names as a question, or all of them."""
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean {folded[near[0]]}?"
    return f"there are {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}" if names else ""
