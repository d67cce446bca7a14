"""Statements of a paper's text, held against our numbers and the noise in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.reproduce.result import Cell

VERDICTS = ("holds", "does not hold here", "too close to call")
_FEWEST = 3  # runs from which a standard error is worth stating
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
        The number or the words that the paper prints, if it does. Nothing else: what our own theory says, or what a
        ratio would be if all were well, is not the paper's.
    above, below
        The bounds: what the statement says, or where the paper gives a number, what we take for agreement.
    note
        As of a cell.

    Example:
        >>> Claim("variance, OLH to BLH, eps = 4", 0.07, below=1).cell()
        Cell(row='variance, OLH to BLH, eps = 4', column='claim', paper=None, ours=0.07, note='holds (below 1)')
    """

    statement: str
    ours: float
    paper: float | str | None = None
    above: float = -math.inf
    below: float = math.inf
    note: str = ""

    def cell(self, error: float = 0.0) -> Cell:
        """The verdict as a cell. A number within two standard errors of a bound decides nothing.

        Example:
            >>> Claim("MSE, Base-Pos to Base", 0.58, paper=0.5, above=0.4, below=0.6).cell(error=0.03).note
            'too close to call (above 0.4, below 0.6); standard error 0.03'
        """
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
    """The verdicts on claims about measured numbers, with their standard errors.

    The errors are the jackknife's: what `claims_of` makes of all runs but one, for each. With fewer than three runs
    there are none.

    Parameters
    ----------
    claims_of
        From the runs to the claims, always the same ones in the same order.
    runs
        Measurements by setting, each with one row a run.

    Example:
        >>> runs = {"a": np.array([1.0, 2.0, 3.0])}
        >>> judged(lambda runs: [Claim("mean", float(runs["a"].mean()), above=0)], runs)[0].note
        'holds (above 0); standard error 0.58'
    """
    claims = claims_of(runs)
    number = min(len(rows) for rows in runs.values())
    if number < _FEWEST:
        return [claim.cell() for claim in claims]
    without = np.array(
        [
            [claim.ours for claim in claims_of({key: np.delete(rows, run, axis=0) for key, rows in runs.items()})]
            for run in range(number)
        ]
    )
    errors = np.sqrt((number - 1) * without.var(axis=0))
    return [claim.cell(float(error)) for claim, error in zip(claims, errors, strict=True)]


def ratio(above: float, below: float) -> float:
    """A quotient; not a number where the divisor is 0, as may be in a population scaled down to very few.

    Example:
        >>> ratio(1.0, 4.0), ratio(1.0, 0.0)
        (0.25, nan)
    """
    return float(above) / float(below) if below else math.nan
