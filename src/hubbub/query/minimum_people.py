"""Counts the people whom an answer depends on, for the smallest number that a collector answers about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from hubbub.query.boxes import boxes_of
from hubbub.query.formula import Formula
from hubbub.query.groups import PeopleGroup
from hubbub.query.sandbox import check_time
from hubbub.query.strata import Strata
from hubbub.query.sums import Monomial


def magnitudes(weights: Iterable[Monomial]) -> list[Monomial]:
    """The absolute values of weights, as `fewest_people` needs them."""
    return [Monomial(f"ABS({weight.sql()})") for weight in weights]


def fewest_people(groups: Sequence[PeopleGroup], strata: Sequence[Strata], sizes: Sequence[int]) -> list[float]:
    """For each group, the smallest number of people that a sum over it depends on.

    A sum with weights w depends on (sum |w|)^2 / sum w^2 people: their number if all weights are equal, and about 1 if
    one weight is larger than all others together. Weights are counted over all people for whom the condition can hold,
    and once more over those of them whose reports decide whether it does: what the others add is known. A sum in which
    all weights are 0 does not count.

    Parameters
    ----------
    groups
        The groups of the query.
    strata
        Its strata, once for each bundle of weights, with the `magnitudes` of these weights.
    sizes
        The number of values of each private column.
    """
    whole = [tuple(((0, size - 1),) for size in sizes)]

    @cache
    def known(formula: Formula) -> bool | None:
        """Whether a formula always holds or never does; None if it depends on the private columns."""
        boxes = boxes_of(formula, sizes)
        return boxes == whole if not boxes or boxes == whole else None

    fewest = []
    for group in groups:
        check_time()
        possible = {place: known(formula) for place, formula in group.parts if known(formula) is not False}
        people = float(sum(strata[0].strata[place].n for place in {place for place, _ in group.parts}))
        for places in (list(possible), [place for place, truth in possible.items() if truth is None]):
            for bundle in strata:
                for weight in bundle.weights:
                    total = sum(bundle.strata[place].totals[weight] for place in places)
                    squares = sum(bundle.strata[place].totals[weight * weight] for place in places)
                    people = min(people, total**2 / squares) if squares else people
        fewest.append(people)
    return fewest
