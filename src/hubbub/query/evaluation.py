"""Makes the aggregates of a group from the sums that were measured for its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hubbub.query.errors import Tree
from hubbub.query.groups import PeopleGroup
from hubbub.query.measures import MeasureProfile
from hubbub.query.outputs import AnswerInterval, Output, Profiles
from hubbub.query.quantiles import QuantileOutput
from hubbub.query.sandbox import check_time
from hubbub.query.strata import MOST_WEIGHTS, Strata, SumsMethod
from hubbub.query.sums import Floats, JointEstimate, Monomial

__all__ = ["AnyOutput", "MeasureProfile", "bundles_of", "interval_of", "output_of"]

AnyOutput = Output | QuantileOutput


def interval_of(
    method: SumsMethod, output: Output, strata: Strata, group: PeopleGroup, parts: Sequence[object], level: float
) -> AnswerInterval:
    """An aggregate of a group, with its interval, from the measured or predicted sums of its parts."""
    check_time()
    size = len(strata.weights)
    nothing = JointEstimate(np.zeros(size), (np.zeros((size, size)),))
    joint = method.joint([(part, np.eye(size)) for part in parts]) if parts else nothing
    joint = replace(joint, one_report=_one_report(method, output, strata, group, parts))
    totals: dict[Monomial, float] = {}
    for place in {place for place, _ in group.parts}:
        for weight in strata.weights:
            totals[weight] = totals.get(weight, 0.0) + strata.strata[place].totals[weight]
    return output.interval(joint, strata.weights, totals, level)


def _one_report(
    method: SumsMethod, output: Output, strata: Strata, group: PeopleGroup, parts: Sequence[object]
) -> Floats:
    """The products of what one report adds to the sums, of a person drawn by their part in the sums' variance.

    A few people may have most of the weight. If none of their reports is among those that an estimate is made of,
    neither the estimate nor its variance shows them; their weights are public. For a single weight w the mean of w^2,
    drawn so, is that of w^4 over that of w^2; for several w it is that of w w' (w' M^-1 w), M being the mean of w w'.
    """
    places = [strata.weights.index(weight) for weight in output.weights]
    own = [place for place, _ in group.parts]
    products = strata.products_of(output.weights, 2)[own]
    people = max(sum(strata.strata[place].n for place in own), 1)
    fourth = strata.products_of(output.weights, 4)[own] if len(strata.weights) <= MOST_WEIGHTS else np.full(1, np.inf)
    if np.isfinite(fourth).all():  # else the mean of w w' for everybody
        mean = products.sum(axis=0) / people
        scale = np.sqrt(np.maximum(np.diag(mean), 1e-300))
        inverse = np.linalg.pinv(mean / scale / scale[:, None], hermitian=True) / scale / scale[:, None]
        products = np.einsum("pabcd,cd->pab", fourth, inverse)
    squares = np.array([method.step(part) ** 2 for part in parts])
    whole = np.zeros((len(strata.weights),) * 2)
    whole[np.ix_(places, places)] = np.einsum("p,pab->ab", squares, products) / people
    return whole


def output_of(tree: Tree, profiles: Profiles) -> AnyOutput:
    """The aggregate that computes an expression."""
    from sqlglot import exp

    if isinstance(tree, exp.PercentileDisc):
        return QuantileOutput(tree, profiles)
    return Output(tree, profiles)


def bundles_of(outputs: Sequence[AnyOutput]) -> list[tuple[Monomial, ...]]:
    """Bundles of weights that are counted together: those of one measure, and counts with those of any measure."""
    bundles: dict[frozenset[str], dict[Monomial, None]] = {}
    counts: dict[Monomial, None] = {}
    for output in outputs:
        if isinstance(output, QuantileOutput):
            continue
        bases = frozenset(weight.base for weight in output.weights if weight.base)
        into = bundles.setdefault(bases, {}) if bases else counts
        into.update(dict.fromkeys(output.weights))
    if counts or not bundles:
        first = next(iter(bundles), frozenset[str]())
        bundles.setdefault(first, {}).update(counts)
    return [tuple(sorted(weights)) for weights in bundles.values()]
