"""Sums for HDG tables, where people report their cell of a grid: from models that are fitted to the reports."""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats, Ints
from hubbub.planning.ranges import grid_error
from hubbub.protocols.ranges.cell_sums import CellSum, LevelCells
from hubbub.protocols.ranges.dimension import RangeQuery, Scored, Selection
from hubbub.protocols.ranges.grids import HDG, Grid, GridModel
from hubbub.protocols.ranges.table import ScaledNumbers
from hubbub.query.boxes import Box, FormulaTerms, boxes_of, disjoint, scored_box
from hubbub.query.codes import as_selection, size_of
from hubbub.query.formula import NO_FACTOR, CodeScore, PrivateFactor
from hubbub.query.interval_method import ChosenCells, IntervalMethod
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import BlockRows, GroupPart, Strata, SumsMethod
from hubbub.query.sums import JointEstimate, Monomial, SumsWithError, independent
from hubbub.query.support_counts import StratumSums, joint_intervals


class GridBound(IntervalMethod):
    """Sums over the cells of one grid: of the most that anybody in a cell can add (`upper`), or of the least.

    Of a formula, a person adds 1 if it holds for them; with scores, their product. For weights that are never negative
    the expected sums are an upper and a lower bound of the sums over the people. They are unbiased sums of cells, so
    that their noise is known as for HIO. Of all grids the one is used whose bound is expected to be closest, if people
    are spread evenly.

    Parameters
    ----------
    table, mechanism
        Whose reports are asked, and how they were made.
    upper
        Which bound.
    """

    def __init__(self, table: PrivateTable, mechanism: HDG, *, upper: bool) -> None:
        grids: Any = mechanism  # a grid is a level: a person reports on one of them
        super().__init__(table, grids)
        self._grids = mechanism
        self._upper = upper

    def bound(self, strata: Strata, part: GroupPart) -> tuple[str, float] | None:
        return None

    def _chosen(self, strata: Strata, part: GroupPart) -> ChosenCells:
        own = strata.factors(part, strata.weights)
        return ChosenCells(own, (), {factor: self._bounding(factor) for factor in own})

    def _bounding(self, factor: PrivateFactor) -> FormulaTerms:
        key = factor, False
        if key not in self._terms:
            if len(self._terms) > 4096:
                self._terms.clear()
            self._terms[key] = FormulaTerms("a grid", (), self._bound(factor), False)
        return self._terms[key]

    def _known_inside(self, chosen: ChosenCells) -> Floats:
        known = [chosen.cells[factor].terms.known for factor in chosen.own]
        return np.asarray(np.outer(known, known).reshape(-1))

    def _inside(
        self,
        chosen: ChosenCells,
        numbers: Mapping[PrivateFactor, Floats],
        amount: Floats,
        first: Floats,
        second: Floats,
    ) -> Floats:
        # a bound has cells of one grid, and perhaps a constant: their product has these of both, and those of each
        crossed = first * np.array([chosen.cells[factor].terms.known for factor in chosen.own])
        return np.asarray(second + crossed + crossed.T)

    def _bound(self, factor: PrivateFactor) -> CellSum:
        if factor == NO_FACTOR:
            return CellSum([], 1.0)
        boxes = disjoint(boxes_of(factor.formula, [dimension.size for dimension in self._grids.dimensions]))
        chosen = [(grid, self._numbers_inside(grid, boxes, factor.scores)) for grid in self._grids.grids]
        grid, numbers = min(chosen, key=lambda choice: self._expected(*choice, scored=bool(factor.scores)))
        known = float(numbers.mean()) if factor.scores else 0.0  # of everybody; the rest has less noise
        places = np.flatnonzero(numbers != known)
        return CellSum([LevelCells(grid, places, numbers[places] - known)] if places.size else [], known)

    def expected(self, factor: PrivateFactor) -> tuple[float, float]:
        """The mean of the bound, if people are spread evenly, and its standard error: of a person."""
        terms = self._bounding(factor).terms
        mean, square = terms.known, 0.0
        for term in terms.terms:
            mean += float(term.weights.sum()) / math.prod(self._grids.shape(term.level))
            square += float(term.weights @ term.weights)
        return mean, math.sqrt(4 * self._grids.unit * square)

    def _expected(self, grid: Grid, numbers: Floats, *, scored: bool) -> float:
        """How far a bound is expected to be off, for each person: what it leaves open, and twice the noise."""
        mean = float(numbers.mean())
        noise = float((numbers - mean * scored) @ (numbers - mean * scored))
        return (mean if self._upper else -mean) + 2 * math.sqrt(4 * self._grids.unit * noise)

    def _numbers_inside(self, grid: Grid, boxes: Sequence[Box], scores: Sequence[CodeScore]) -> Floats:
        """The most, or the least, that a person in each cell of a grid can add."""
        shape = self._grids.shape(grid)
        least, most = np.full(shape, np.inf), np.full(shape, -np.inf)
        covered = np.zeros(shape)  # the part of each cell for which the formula holds
        for box in boxes:
            low, high, part = np.ones(()), np.ones(()), np.ones(())
            outside = 1.0
            for column, runs in enumerate(box):
                mask = _mask(runs, self._grids.dimensions[column].size)
                values = next((score.values for score in scores if score.column == column), np.ones(mask.size))
                starts = self._starts(grid, column)
                ends = [
                    np.minimum.reduceat(np.where(mask > 0, values, np.inf), starts),
                    np.maximum.reduceat(np.where(mask > 0, values, -np.inf), starts),
                ]
                share = np.add.reduceat(mask, starts) / np.diff(np.append(starts, mask.size))
                ends = [np.where(share > 0, end, 0.0) for end in ends]
                if column not in grid:
                    low, high = _extremes(low, high, float(ends[0][0]), float(ends[1][0]))
                    outside *= float(share[0])
                    continue
                low, high = _extremes(low[..., None], high[..., None], *ends)
                part = part[..., None] * share
            touched = part > 0
            least = np.where(touched, np.minimum(least, low), least)
            most = np.where(touched, np.maximum(most, high), most)
            covered += part * outside
        partly = covered < 1 - 1e-9
        bound = (
            np.maximum(most, np.where(partly, 0.0, most))
            if self._upper
            else np.minimum(least, np.where(partly, 0.0, least))
        )
        return np.asarray(bound, dtype=np.float64).reshape(-1)

    def _starts(self, grid: Grid, column: int) -> Ints:
        """The first value of each cell of a grid along a column; a column that it does not have is one cell."""
        size = self._grids.dimensions[column].size
        if column not in grid:
            return np.zeros(1, dtype=np.int64)
        width = self._grids.line_width(column) if len(grid) == 1 else self._grids.plane_width(column)
        return np.arange(0, size, width)


def _extremes(low: Floats, high: Floats, least: Floats | float, most: Floats | float) -> tuple[Floats, Floats]:
    """The ends of the products of two numbers that are between given ends."""
    products = np.array(np.broadcast_arrays(low * least, low * most, high * least, high * most))
    return products.min(axis=0), products.max(axis=0)


def _mask(runs: Sequence[tuple[int, int]], size: int) -> Floats:
    mask = np.zeros(size)
    for low, high in runs:
        mask[low : high + 1] = 1.0
    return mask


MOST_CACHED = 256
"""For how many strata and weights models are cached."""
Key = tuple[str, Monomial, int]
"""The name of a stratum, a weight, and a sign: positive and negative values of a weight have a model each."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The total of a weight, and a model of its distribution; None if the total is 0."""

    total: float
    model: GridModel | None


@dataclass(frozen=True, eq=False)
class GridSums:
    """The sums of a stratum, estimated by models."""

    value: Floats
    bounds: tuple[StratumSums, StratumSums]
    """A lower and an upper bound."""

    @property
    def step(self) -> Floats:
        """The products of what one report of a person of weight 1 typically adds to two bounds."""
        return np.maximum(*(bound.step for bound in self.bounds))


class GridMethod(SumsMethod[GridSums | SumsWithError]):
    """Estimates a sum as the known total times the share that the model puts in the boxes.

    Answers are not unbiased. Their intervals are those of bounds that hold however people are spread (`GridBound`).

    Parameters
    ----------
    table, mechanism
        Whose reports are asked, and how they were made.
    """

    def __init__(self, table: PrivateTable, mechanism: HDG) -> None:
        self._table = table
        self._mechanism = mechanism
        self._sizes = [dimension.size for dimension in mechanism.dimensions]
        self._cache: OrderedDict[Key, FittedModel] = OrderedDict()
        self._passes = 0
        self._bounds = [GridBound(table, mechanism, upper=upper) for upper in (False, True)]

    @property
    def passes(self) -> int:
        return self._passes + sum(bound.passes for bound in self._bounds)

    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> list[GridSums]:
        places = {part[0] for part in parts if set(strata.factors(part, strata.weights)) != {NO_FACTOR}}
        keys = {
            (strata.strata[place].name, weight.public, sign): place
            for place in places
            for weight in strata.weights
            for sign in (1, -1)
        }
        missing = {key: place for key, place in keys.items() if key not in self._cache}
        if missing:
            self._passes += 1
            self._cache.update(self._fitted(strata, missing))
        lower, upper = (bound.measure(strata, parts) for bound in self._bounds)
        sums = [
            self._sums(strata, part, bounds) for part, bounds in zip(parts, zip(lower, upper, strict=True), strict=True)
        ]
        while len(self._cache) > max(MOST_CACHED, len(keys)):
            self._cache.popitem(last=False)
        return sums

    def _sums(self, strata: Strata, part: GroupPart, bounds: tuple[StratumSums, StratumSums]) -> GridSums:
        check_time()
        stratum = strata.strata[part[0]]
        values = np.zeros(len(strata.weights))
        factors = strata.factors(part, strata.weights)
        for column, (weight, factor) in enumerate(zip(strata.weights, factors, strict=True)):
            if factor == NO_FACTOR:
                values[column] = stratum.totals[weight.public]
                continue
            boxes = self._counted_boxes(factor)
            for sign in (1, -1):
                fitted = self._cache[stratum.name, weight.public, sign]
                if fitted.model is not None:
                    shares = (number * fitted.model.share(box) for number, box in boxes)
                    values[column] += sign * fitted.total * sum(shares)
        return GridSums(values, bounds)

    def _counted_boxes(self, factor: PrivateFactor) -> list[tuple[float, tuple[Scored, ...]]]:
        """Boxes with numbers, whose shares add up to the mean of a factor; people in them count as 0 to 1."""
        counted = []
        for box in disjoint(boxes_of(factor.formula, self._sizes)):
            terms: list[tuple[float, tuple[Scored, ...]]] = [(1.0, self._selections(box))]
            for score in factor.scores:
                mask = _mask(box[score.column], self._sizes[score.column]) > 0
                low, high = float(score.values[mask].min()), float(score.values[mask].max())
                part: Scored = np.where(mask, (score.values - low) / (high - low or 1.0), 0.0)
                above = [
                    (number * (high - low), (*own[: score.column], part, *own[score.column + 1 :]))
                    for number, own in terms
                ]
                terms = [term for term in (*((number * low, own) for number, own in terms), *above) if term[0]]
            counted += terms
        return counted

    def _selections(self, box: Box) -> tuple[Selection, ...]:
        return tuple(as_selection(runs, size) for runs, size in zip(box, self._sizes, strict=True))

    def _fitted(self, strata: Strata, missing: dict[Key, int]) -> dict[Key, FittedModel]:
        grids = self._mechanism.grids
        totals = dict.fromkeys(missing, 0.0)
        counts = {(key, grid): np.zeros(self._mechanism.oracle(grid).size + 1) for key in missing for grid in grids}
        for rows, block in strata.blocks(strata.weights):
            for key, place in missing.items():
                check_time()
                weights = np.maximum(key[2] * block.weights[key[1]], 0.0)
                totals[key] += float(weights[block.strata == place].sum())
                if weights.any():
                    for grid in grids:
                        self._add(counts[key, grid], grid, rows, block, place, weights)
        return {
            key: FittedModel(
                totals[key],
                GridModel(self._mechanism, {g: self._shares(g, counts[key, g]) for g in grids})
                if totals[key]
                else None,
            )
            for key in missing
        }

    def _add(self, counts: Floats, grid: Grid, rows: range, block: BlockRows, place: int, weights: Floats) -> None:
        """Add the supports from reports of a grid and a block; the last number is the total."""
        group = self._table.reports(grid, rows)
        if group is None or not block.rows.size:
            return
        spots = np.minimum(np.searchsorted(block.rows, group.rows), block.rows.size - 1)
        own = (block.rows[spots] == group.rows) & (block.strata[spots] == place)
        chosen = np.flatnonzero(own)
        if chosen.size:
            oracle = self._mechanism.oracle(grid)
            measure = ScaledNumbers.of("measure", weights[spots[chosen]])
            sketch = oracle.support(group.reports[chosen], np.arange(oracle.size), measure.weights)
            counts += sketch.counts[0] / measure.scale

    def _shares(self, grid: Grid, supports: Floats) -> Floats:
        check_time()
        moments = self._mechanism.oracle(grid).moments()
        gap = moments.true_mean - moments.false_mean
        if not supports[-1]:
            return np.full(supports.size - 1, 1 / (supports.size - 1))
        return np.asarray((supports[:-1] / supports[-1] - moments.false_mean) / gap)

    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> list[SumsWithError]:
        predicted = []
        for part in parts:
            stratum = strata.strata[part[0]]
            factors = strata.factors(part, strata.weights)
            expected = [(1.0, 0.0) if factor == NO_FACTOR else self._expected(factor) for factor in factors]
            shares, errors = np.array([share for share, _ in expected]), np.array([error for _, error in expected])
            totals = np.array([stratum.totals[weight.public] for weight in strata.weights])
            products = strata.products_of(strata.weights, 2)[part[0]]
            together = [[left == right for right in factors] for left in factors]  # else errors are independent
            covariance = np.where(together, np.outer(errors, errors) * stratum.n * products, 0.0)
            predicted.append(SumsWithError(shares * totals, covariance, np.zeros_like(products)))
        return predicted

    def _expected(self, factor: PrivateFactor) -> tuple[float, float]:
        """The mean of what people add, if they are spread evenly, and its error: of scores, that of the bounds."""
        boxes = disjoint(boxes_of(factor.formula, self._sizes))
        if factor.scores:
            (low, low_error), (high, high_error) = (bound.expected(factor) for bound in self._bounds)
            numbers = (scored_box(box, factor.scores, self._sizes) for box in boxes)
            means = (
                np.prod([d.numbers(part).mean() for d, part in zip(self._mechanism.dimensions, box, strict=True)])
                for box in numbers
            )
            return float(sum(means)), (high - low) / (2 * normal_reach(0.95)) + max(low_error, high_error)
        square = sum(grid_error(self._mechanism, RangeQuery(self._selections(box))) ** 2 for box in boxes)
        shares = (np.prod([size_of(runs) / size for runs, size in zip(box, self._sizes, strict=True)]) for box in boxes)
        return float(sum(shares)), math.sqrt(square)

    def joint(self, parts: Sequence[tuple[GridSums | SumsWithError, Floats]]) -> JointEstimate:
        if predicted := [(part, matrix) for part, matrix in parts if isinstance(part, SumsWithError)]:
            return independent(predicted, "heuristic")
        measured = [(part, matrix) for part, matrix in parts if isinstance(part, GridSums)]
        value = np.sum([matrix @ part.value for part, matrix in measured], axis=0)
        nothing = np.zeros((value.size, value.size))
        if not any(bound.levels for part, _ in measured for bound in part.bounds):  # known exactly
            return JointEstimate(value, (nothing,), "heuristic")
        bounds = self._bound(measured, 0), self._bound(measured, 1)
        return JointEstimate(value, (nothing + np.nan,), "heuristic", bounds=bounds)

    def _bound(self, parts: Sequence[tuple[GridSums, Floats]], side: int) -> JointEstimate:
        """The lower (0) or upper (1) bounds of sums; what is subtracted is at its other bound."""
        added = [(part.bounds[side], np.maximum(matrix, 0.0)) for part, matrix in parts]
        subtracted = [(part.bounds[1 - side], np.minimum(matrix, 0.0)) for part, matrix in parts]
        return joint_intervals(self._table.n, True, [*added, *subtracted])

    def describe(self, strata: Strata, part: GroupPart) -> list[str]:
        if part[1] == NO_FACTOR:
            return ["known exactly: no private column decides"]
        grids = ", ".join("x".join(map(str, self._mechanism.shape(grid))) for grid in self._mechanism.grids)
        return [
            f"a model of {len(self._mechanism.grids)} grids ({grids} cells)",
            "heuristic: values take people to be spread evenly inside cells; intervals hold however they are spread",
        ]
