"""Makes aggregates from sums, by the method of a table whose errors are expected to be the smallest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.core.reports import Floats
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.split import SC
from hubbub.query.grid_method import GridMethod
from hubbub.query.groups import PeopleGroup
from hubbub.query.interval_method import IntervalMethod
from hubbub.query.intervals import AnswerInterval
from hubbub.query.outputs import Output, Profiles
from hubbub.query.quantiles import QuantileOutput
from hubbub.query.sandbox import check_time
from hubbub.query.schema import MethodPart, PrivateTable
from hubbub.query.split_method import SplitMethod
from hubbub.query.strata import MOST_WEIGHTS, PartSums, Strata, Sums, SumsMethod
from hubbub.query.sums import EVERYBODY, JointEstimate, Monomial
from hubbub.query.trees import Tree, exp

AnyOutput = Output | QuantileOutput


def interval_of(
    method: SumsMethod[Sums], output: Output, strata: Strata, group: PeopleGroup, parts: Sequence[Sums], level: float
) -> AnswerInterval:
    """An aggregate of a group, with its interval, from the measured or predicted sums of its parts."""
    check_time()
    size = len(strata.weights)
    nothing = JointEstimate(np.zeros(size), (np.zeros((size, size)),))
    joint = method.joint([(part, np.eye(size)) for part in parts]) if parts else nothing
    joint = replace(joint, one_report=_one_report(output, strata, group, parts))
    totals: dict[Monomial, float] = {}
    for place in {place for place, _ in group.parts}:
        for weight in strata.weights:
            totals[weight] = totals.get(weight, 0.0) + strata.strata[place].totals[weight.public]
    return output.interval(joint, strata.weights, totals, level)


def _one_report(output: Output, strata: Strata, group: PeopleGroup, parts: Sequence[PartSums]) -> Floats:
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
    steps = np.array([part.step[np.ix_(places, places)] for part in parts]).reshape(products.shape)
    whole = np.zeros((len(strata.weights),) * 2)
    whole[np.ix_(places, places)] = (steps * products).sum(axis=0) / people
    return whole


def output_of(tree: Tree, profiles: Profiles) -> AnyOutput:
    """The aggregate that computes an expression."""
    if isinstance(tree, exp.PercentileDisc):
        return QuantileOutput(tree, profiles)
    return Output(tree, profiles)


def bundles_of(outputs: Sequence[AnyOutput]) -> list[tuple[Monomial, ...]]:
    """Bundles of weights that are counted together: those of one measure, and counts with those of any measure."""
    bundles: dict[frozenset[object], dict[Monomial, None]] = {}
    counts: dict[Monomial, None] = {}
    for output in outputs:
        if isinstance(output, QuantileOutput):
            continue
        bases = frozenset((weight.base, weight.private) for weight in output.weights if weight != EVERYBODY)
        into = bundles.setdefault(bases, {}) if bases else counts
        into.update(dict.fromkeys(output.weights))
    if counts or not bundles:
        first = next(iter(bundles), frozenset[object]())
        bundles.setdefault(first, {}).update(counts)
    return [tuple(sorted(weights)) for weights in bundles.values()]


MOST_COMPARED = 64
"""Methods are compared on the first groups of a query, up to this number."""


@dataclass(frozen=True, eq=False)
class MethodRoute:
    """The method that answers a query.

    Parameters
    ----------
    others
        The other methods of the table, each with how many times as large its errors are expected to be: the geometric
        mean over the query's aggregates and groups; infinite where it leaves more numbers unknown.
    """

    name: str
    method: SumsMethod[Any]
    others: tuple[tuple[str, float], ...] = ()

    def words(self) -> str:
        """The choice in words; empty if the table has one method only."""
        if not self.others:
            return ""
        compared = (
            f"{times:.3g} times as large with {name}" if math.isfinite(times) else f"unknown with {name}"
            for name, times in self.others
        )
        return f"answered by {self.name}: expected errors are {', '.join(compared)}"


def method_of(table: PrivateTable, place: int, consistent: bool | None) -> SumsMethod[Any]:
    """How the sums of a query are estimated from the reports of one of a table's methods."""
    part, mechanism = MethodPart(table, place), table.schema.mechanisms[place]
    if isinstance(mechanism, SC):
        return SplitMethod(part, mechanism)
    if isinstance(mechanism, HDG):
        return GridMethod(part, mechanism)
    return IntervalMethod(part, mechanism, consistent=consistent)


def best_route(
    names: Sequence[str],
    methods: Sequence[SumsMethod[Any]],
    outputs: Sequence[tuple[Strata, AnyOutput]],
    groups: Sequence[PeopleGroup],
) -> MethodRoute:
    """The method with the smallest expected errors; the choice reads no report, so that intervals hold.

    Parameters
    ----------
    outputs
        The aggregates of the query, each with the strata that have its weights; quantiles with those of counts.
    """
    if len(methods) == 1:
        return MethodRoute(names[0], methods[0])
    errors = [_expected_error(method, outputs, groups[:MOST_COMPARED]) for method in methods]
    best = min(range(len(methods)), key=errors.__getitem__)
    unknown, log = errors[best]
    others = [
        (name, math.exp(error[1] - log) if error[0] == unknown else math.inf)
        for name, error in zip(names, errors, strict=True)
    ]
    return MethodRoute(names[best], methods[best], (*others[:best], *others[best + 1 :]))


def _expected_error(
    method: SumsMethod[Any], outputs: Sequence[tuple[Strata, AnyOutput]], groups: Sequence[PeopleGroup]
) -> tuple[int, float]:
    """How many numbers are expected to be unknown, and the mean logarithm of the standard errors of the others."""
    logs: list[float] = []
    unknown = 0
    for strata, output in outputs:
        if isinstance(method, GridMethod) and isinstance(output, Output) and not output.bounded:
            unknown += len(groups) + 1  # for certain, and not only expected
            continue
        for group in groups:
            check_time()
            if isinstance(output, Output):
                parts = method.predict(strata, group.parts)
                error = interval_of(method, output, strata, group, parts, 0.95).stderr
            else:
                parts = method.predict(strata, [(place, factor * output.typical) for place, factor in group.parts])
                joint = method.joint([(part, np.eye(1)) for part in parts]) if parts else None
                error = 0.0 if joint is None else math.sqrt(joint.variance(np.ones(1)))
            if not math.isfinite(error):
                unknown += 1
            elif error > 0:  # what is known exactly is so by every method
                logs.append(math.log(error))
    return unknown, sum(logs) / len(logs) if logs else 0.0
