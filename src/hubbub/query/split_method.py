"""Sums for SC tables, where people report on each column separately: scores are multiplied per person, then summed."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from hubbub.core.reports import Bools, Floats, Ints
from hubbub.planning.range_bounds import bound_name, boxes_bound
from hubbub.protocols.ranges.dimension import Scored
from hubbub.protocols.ranges.split import CHUNK, SC, SplitReports, SplitTable
from hubbub.query.boxes import Box, SignedBoxes, scored_box, selected, ways_to_add
from hubbub.query.formula import NO_FACTOR, Formula, PrivateFactor
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import GroupPart, Strata, SumsMethod
from hubbub.query.sums import JointEstimate, Monomial
from hubbub.query.support_counts import report_covariances

MOST_CACHED = 4096
"""How many sums are cached for later queries."""
MOST_SCORED = 64
"""For how many sums people are scored at a time."""
SumsKey = tuple[str, tuple[Monomial, ...], PrivateFactor]
"""The name of a stratum, the weights, and the factor of the part."""


@dataclass(frozen=True, eq=False)
class ScoredSums:
    """Sums of a stratum by scores, the covariance of their noise, and the sums of w w' f f' over its people.

    f is what private columns multiply a weight w with. `scored` is False where a sum is known. `step` is that of
    `PartSums`.
    """

    value: Floats
    noise: Floats
    products: Floats
    scored: Bools
    step: Floats


class SplitMethod(SumsMethod[ScoredSums]):
    """Estimates a sum as the weighted sum of scores.

    A person's score s is an unbiased estimate of what private columns multiply their weight with: of 1 if a formula
    holds for them, else 0, perhaps times numbers. The covariance of two scores is estimated without bias by s s' less
    the score of the product (`SplitTable`). If only some people report by SC, a random group stands for all: its sums
    are scaled up, and what the choice of the group adds is that of a sample without replacement.

    Parameters
    ----------
    table, mechanism
        Whose reports are asked, and how they were made.
    """

    def __init__(self, table: PrivateTable, mechanism: SC) -> None:
        self._table = table
        self._mechanism = mechanism
        self._sizes = [dimension.size for dimension in mechanism.dimensions]
        self._cache: OrderedDict[SumsKey, ScoredSums] = OrderedDict()
        self._ways: dict[Formula, SignedBoxes] = {}
        self._passes = 0
        people = max(table.level_sizes().values(), default=0)
        # how many people one person stands for; 0: nobody reports by SC
        self._scale = table.n / people if people else float(table.n == 0)

    @property
    def passes(self) -> int:
        return self._passes

    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> list[ScoredSums]:
        keys = [(strata.strata[place].name, strata.weights, factor) for place, factor in parts]
        missing = {key: part for key, part in zip(keys, parts, strict=True) if key not in self._cache}
        if missing:
            self._cache.update(self._pass(strata, missing))
        sums = [self._cache[key] for key in keys]
        while len(self._cache) > MOST_CACHED:
            self._cache.popitem(last=False)
        return sums

    def _pass(self, strata: Strata, missing: Mapping[SumsKey, GroupPart]) -> dict[SumsKey, ScoredSums]:
        weights = strata.weights
        size = len(weights)
        pairs = [a * b for a in weights for b in weights]
        sums = {key: self._empty(strata, part) for key, part in missing.items()}
        scored: dict[int, dict[SumsKey, tuple[list[PrivateFactor], list[PrivateFactor]]]] = {}
        for key, part in missing.items():
            if self._scale and sums[key].scored.any():
                scored.setdefault(part[0], {})[key] = strata.factors(part, weights), strata.pair_factors(part, pairs)
        self._passes += bool(scored)
        for rows, block in strata.blocks(weights) if scored else ():
            numbers = np.array([block.weights[weight.public] for weight in weights]).reshape(size, -1)
            reporting = self._reporting(rows, block.rows)
            for place, keys in scored.items():
                spots = np.flatnonzero(reporting & (block.strata == place))
                for start in range(0, spots.size, CHUNK):
                    some = spots[start : start + CHUNK]
                    table, own = self._people(rows, block.rows[some]), numbers[:, some]
                    for first in range(0, len(keys), MOST_SCORED):
                        together = list(keys.items())[first : first + MOST_SCORED]
                        needed = {factor for _, both in together for factor in chain(*both)} - {NO_FACTOR}
                        scores = self._scores(table, needed)
                        for key, (factors, of_pairs) in together:
                            self._add(sums[key], own, factors, of_pairs, scores)
        return sums

    def _empty(self, strata: Strata, part: GroupPart) -> ScoredSums:
        """The sums of a part before any report is read: what no private column decides is known."""
        size, factors = len(strata.weights), strata.factors(part, strata.weights)
        scored = np.array([factor != NO_FACTOR for factor in factors])
        totals = np.array([strata.strata[part[0]].totals[weight.public] for weight in strata.weights])
        nothing = np.zeros((size, size))
        noise = nothing if self._scale else np.where(np.outer(scored, scored), np.nan, 0.0)  # nobody reports by SC
        # a report that is not of the own value moves a sum by the people that it stands for, or their largest scores
        step = self._scale**2 * _largest_step(factors)
        return ScoredSums(np.where(scored, 0.0, totals), noise.copy(), nothing, scored, step)

    def _add(
        self,
        sums: ScoredSums,
        own: Floats,
        factors: Sequence[PrivateFactor],
        of_pairs: Sequence[PrivateFactor],
        scores: Mapping[PrivateFactor, Floats],
    ) -> None:
        """Add some people, given the public part of their weights (a row each) and the scores of each factor."""
        chosen: list[int] = np.flatnonzero(sums.scored).tolist()
        weighed = {place: own[place] * scores[factors[place]] for place in chosen}
        for left in chosen:
            sums.value[left] += self._scale * weighed[left].sum()
            for right in chosen:
                inside = float((own[left] * own[right]) @ scores[of_pairs[left * len(factors) + right]])
                sums.noise[left, right] += self._scale**2 * (float(weighed[left] @ weighed[right]) - inside)
                sums.products[left, right] += self._scale * inside

    def _reporting(self, rows: range, chosen: Ints) -> Bools:
        """Whether each of some people of a block reports by SC."""
        group = self._table.reports(self._mechanism.levels[0], rows)
        return np.isin(chosen, [] if group is None else group.rows)

    def _people(self, rows: range, chosen: Ints) -> SplitTable:
        """The reports of some people of a block."""
        levels = {}
        for level in self._mechanism.levels:
            group = self._table.reports(level, rows)
            assert group is not None
            levels[level] = group.reports[np.searchsorted(group.rows, chosen)]
        return SplitTable(self._mechanism, SplitReports(len(chosen), levels))

    def _scores(self, table: SplitTable, factors: Iterable[PrivateFactor]) -> dict[PrivateFactor, Floats]:
        """The score of each person for each factor. A range of a column that several factors have is scored once."""
        boxes = {
            factor: [(sign, scored_box(box, factor.scores, self._sizes)) for sign, box in self._boxes(factor.formula)]
            for factor in factors
        }
        ranges: list[dict[object, Scored]] = [{} for _ in self._sizes]
        for _, box in chain(*boxes.values()):
            for own, part in zip(ranges, box, strict=True):
                own[_name_of(part)] = part
        scored: list[dict[object, Floats]] = []
        for column, own in enumerate(ranges):
            check_time()
            covers = [self._mechanism.dimensions[column].decompose(part) for part in own.values()]
            rows = table.column_scores(column, covers, slice(0, table.reports.n)) if covers else ()
            scored.append(dict(zip(own, rows, strict=True)))
        return {
            factor: np.sum(
                [
                    sign * np.prod([own[_name_of(part)] for own, part in zip(scored, box, strict=True)], axis=0)
                    for sign, box in own_boxes
                ]
                or [np.zeros(table.reports.n)],
                axis=0,
            )
            for factor, own_boxes in boxes.items()
        }

    def _boxes(self, formula: Formula) -> SignedBoxes:
        if formula not in self._ways:
            if len(self._ways) >= MOST_CACHED:
                self._ways.clear()
            self._ways[formula] = min((boxes for _, boxes in ways_to_add(formula, self._sizes)), key=len)
        return self._ways[formula]

    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> list[ScoredSums]:
        predicted = []
        for part in parts:
            factors = strata.factors(part, strata.weights)
            totals = np.array([strata.strata[part[0]].totals[weight.public] for weight in strata.weights])
            means = np.array([self._mean(factor) for factor in factors])
            moments = np.array([[self._moments(left, right) for right in factors] for left in factors])
            products = strata.products_of(strata.weights, 2)[part[0]]
            known = self._empty(strata, part)
            noise = known.noise + self._scale * products * moments[..., 0]
            inside, nothing = products * moments[..., 1], np.zeros_like(products)
            predicted.append(ScoredSums(means * totals, noise, inside, known.scored, nothing))
        return predicted

    def _mean(self, factor: PrivateFactor) -> float:
        """The mean of a factor over people who are spread evenly."""
        boxes = ((sign, self._numbers(box, factor)) for sign, box in self._boxes(factor.formula))
        return float(sum(sign * np.prod([numbers.mean() for numbers in box]) for sign, box in boxes))

    def _numbers(self, box: Box, factor: PrivateFactor) -> list[Floats]:
        scored = scored_box(box, factor.scores, self._sizes)
        return [d.numbers(part) for d, part in zip(self._mechanism.dimensions, scored, strict=True)]

    def _moments(self, left: PrivateFactor, right: PrivateFactor) -> tuple[float, float]:
        """The covariance of the noise of two scores, and the mean product of the factors, of people spread evenly."""
        if NO_FACTOR in (left, right):
            return 0.0, 0.0
        total = inside = 0.0
        for sign, one in self._boxes(left.formula):
            for other_sign, other in self._boxes(right.formula):
                check_time()
                parts = [scored_box(box, f.scores, self._sizes) for box, f in ((one, left), (other, right))]
                noisy = exact = 1.0
                for column, (a, b) in enumerate(zip(*parts, strict=True)):
                    mean, noise = self._column_moment(column, a, b)
                    noisy, exact = noisy * (mean + noise), exact * mean
                total += sign * other_sign * (noisy - exact)
                inside += sign * other_sign * exact
        return total, inside

    def _column_moment(self, column: int, left: Scored, right: Scored) -> tuple[float, float]:
        """The mean product of the numbers of a column, and the covariance of its scores."""
        dimension = self._mechanism.dimensions[column]
        mean = float(np.mean(dimension.numbers(left) * dimension.numbers(right)))
        noise = 0.0
        for depth, covers in enumerate(zip(dimension.decompose(left), dimension.decompose(right), strict=True)):
            if depth:
                weights = np.zeros((2, dimension.nodes(depth)))
                for row, (nodes, own) in zip(weights, covers, strict=True):
                    row[nodes] = own
                constant, slope, curve = report_covariances(self._mechanism.oracle((column, depth)), weights)
                products = float(weights[0] @ weights[1])
                totals = float(np.prod(weights.sum(axis=1)))
                noise += float(constant[0, 1]) + (2 * slope * totals + curve * products) / weights.shape[1]
        return mean, noise

    def joint(self, parts: Sequence[tuple[ScoredSums, Floats]]) -> JointEstimate:
        value = np.sum([matrix @ part.value for part, matrix in parts], axis=0)
        noise = np.sum([matrix @ part.noise @ matrix.T for part, matrix in parts], axis=0)
        n = self._table.n
        if self._scale <= 1 or n < 2 or not any(part.scored.any() for part, _ in parts):
            return JointEstimate(value, (noise,))
        own = np.sum([matrix @ np.where(part.scored, part.value, 0.0) for part, matrix in parts], axis=0)
        spread = np.sum([matrix @ part.products @ matrix.T for part, matrix in parts], axis=0)
        return JointEstimate(value, (noise, (self._scale - 1) * (spread - np.outer(own, own) / n) * n / (n - 1)))

    def bound(self, strata: Strata, part: GroupPart) -> tuple[str, float] | None:
        if part[1].scores:
            return None
        boxes = selected(self._boxes(part[1].formula), self._sizes)
        bound = boxes_bound(self._mechanism, boxes, asked=1 / self._scale) if self._scale else np.inf
        return bound_name(self._mechanism), bound

    def describe(self, strata: Strata, part: GroupPart) -> list[str]:
        if part[1] == NO_FACTOR:
            return ["known exactly: no private column decides"]
        boxes = self._boxes(part[1].formula)
        return [f"scores of every person, multiplied over columns, {len(boxes)} box{'es' if len(boxes) > 1 else ''}"]


def _name_of(part: Scored) -> object:
    """What two ranges of a column have in common if they are the same."""
    return part.tobytes() if isinstance(part, np.ndarray) else part


def _largest_step(factors: Sequence[PrivateFactor]) -> Floats:
    moved = np.zeros(len(factors))
    for place, factor in enumerate(factors):
        if factor != NO_FACTOR:
            moved[place] = np.prod([np.abs(score.values).max() for score in factor.scores])
    return np.outer(moved, moved)
