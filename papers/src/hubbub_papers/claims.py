"""Claims: statements of a paper's text, checked against our numbers and the standard errors of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.result import Cell

VERDICTS = ("holds", "does not hold here", "too close to call")
FEWEST_RUNS = 3
"""With fewer runs no standard error is stated."""
Key = TypeVar("Key")


@dataclass(frozen=True)
class Claim:
    """A statement that holds where our number lies between two bounds.

    Parameters
    ----------
    statement
        What is claimed, as far as possible in the paper's words.
    ours
        The number computed or measured here.
    paper
        The number or the words that the paper prints, or None. Never a number of our own theory, nor the value that a
        ratio ideally has.
    above, below
        The bounds: those of the statement, or, where the paper gives a number, those within which we call it equal.
    note
        Remarks, as in `Cell`.
    """

    statement: str
    ours: float
    paper: float | str | None = None
    above: float = -math.inf
    below: float = math.inf
    note: str = ""

    def cell(self, error: float = 0.0) -> Cell:
        """The verdict as a cell: too close to call if our number is within two standard errors of a bound."""
        margin = min(self.ours - self.above, self.below - self.ours)
        verdict = VERDICTS[2 if abs(margin) < 2 * error else 0 if margin > 0 else 1]
        ends = (("above", self.above), ("below", self.below))
        bounds = ", ".join(f"{word} {bound:g}" for word, bound in ends if math.isfinite(bound))
        remarks = [f"{verdict} ({bounds})"]
        if error:
            remarks.append(f"standard error {error:.2g}")
        if self.note:
            remarks.append(self.note)
        return Cell(self.statement, "claim", self.paper, float(self.ours), "; ".join(remarks))


def judged(
    claims_of: Callable[[Mapping[Key, NDArray[Any]]], Sequence[Claim]], runs: Mapping[Key, NDArray[Any]]
) -> list[Cell]:
    """The verdicts on claims about measured numbers, with jackknife standard errors.

    For the jackknife `claims_of` is called once for each run, with all runs but that one. With fewer than three runs
    no standard errors are stated.

    Parameters
    ----------
    claims_of
        Makes the claims from the runs: always the same claims, in the same order.
    runs
        Measurements by setting, each with one row a run.
    """
    claims = claims_of(runs)
    number = fewest_runs(runs)
    if number < FEWEST_RUNS:
        return [claim.cell() for claim in claims]
    without = np.array(
        [
            [claim.ours for claim in claims_of({key: np.delete(rows, run, axis=0) for key, rows in runs.items()})]
            for run in range(number)
        ]
    )
    errors = np.sqrt((number - 1) * without.var(axis=0))
    return [claim.cell(float(error)) for claim, error in zip(claims, errors, strict=True)]


def fewest_runs(runs: Mapping[Key, NDArray[Any]]) -> int:
    """The number of runs of the setting that has the fewest."""
    return min(len(rows) for rows in runs.values())


def means(runs: Mapping[Key, NDArray[Any]]) -> dict[Key, float]:
    """The mean score of each setting.

    Example:
        >>> means({"a": np.array([1.0, 2.0, 3.0])})
        {'a': 2.0}
    """
    return {key: float(scores.mean()) for key, scores in runs.items()}


def ratio(above: float, below: float) -> float:
    """The quotient of two numbers; NaN if the divisor is 0, which happens in populations scaled down to a few people.

    Example:
        >>> ratio(1.0, 4.0), ratio(1.0, 0.0)
        (0.25, nan)
    """
    return float(above) / float(below) if below else math.nan
