"""Counts the weighted support of cells in each stratum, block by block, and sums them with their exact covariances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import Level
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, LevelReports
from hubbub.protocols.ranges.table import MOST_KEPT, ScaledNumbers, Supports
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import BlockRows, Strata
from hubbub.query.sums import JointEstimate, Monomial

Needs = Mapping[int, Mapping[Level, Ints]]
"""For the index of each stratum, the cells of each level that must be counted."""
MOST_TOGETHER = 4
"""Of how many sums what one report adds is looked at together: the work grows with the fourth power."""
MOST_HASHES = 1 << 28
"""The query's time is checked whenever this number of pairs of a report and a cell was looked at (under a second)."""
CountKey = tuple[int, Level, Monomial]
"""The index of a stratum, a level, and a public weight."""


class SupportCounts:
    """The total weight of the reports that support a cell, among the people of a stratum who reported on its level.

    Counts are cached. Those that are missing for a query are made in one pass over the table, a block at a time.

    `most`: for how many cells counts are cached.
    """

    def __init__(self, table: PrivateTable, mechanism: IntervalMechanism, most: int = MOST_KEPT) -> None:
        self._table = table
        self._mechanism = mechanism
        self.supports = Supports(most)
        self.passes = 0
        """How many times the reports were read."""

    def count(self, strata: Strata, needs: Needs, monomials: Sequence[Monomial]) -> None:
        """Count the cells that are not cached yet, so that `of` can be asked for them."""
        missing: dict[CountKey, Ints] = {}
        for place, levels in needs.items():
            for level, cells in levels.items():
                for monomial in monomials:
                    absent = self.supports.missing(self._key(strata, place, monomial, level), cells)
                    if absent.size:
                        missing[place, level, monomial] = absent
        if missing:
            self._pass(strata, missing)

    def _pass(self, strata: Strata, missing: dict[CountKey, Ints]) -> None:
        self.passes += 1
        sums = {key: (np.zeros((2, cells.size)), np.zeros(2)) for key, cells in missing.items()}
        levels = sorted({level for _, level, _ in missing})
        for rows, block in strata.blocks(sorted({monomial for _, _, monomial in missing})):
            for level in levels:
                group = self._table.reports(level, rows)
                if group is not None and block.rows.size:
                    self._add(sums, missing, level, group, block)
        for (place, level, monomial), (counts, totals) in sums.items():
            cells = missing[place, level, monomial]
            self.supports.keep(self._key(strata, place, monomial, level), cells, counts, totals)

    def _add(
        self,
        sums: dict[CountKey, tuple[Floats, Floats]],
        missing: dict[CountKey, Ints],
        level: Level,
        group: LevelReports,
        block: BlockRows,
    ) -> None:
        spots = np.minimum(np.searchsorted(block.rows, group.rows), block.rows.size - 1)
        selected = np.flatnonzero(block.rows[spots] == group.rows)
        if not selected.size:
            return
        spots = spots[selected]
        order = np.argsort(block.strata[spots], kind="stable")
        places, starts = np.unique(block.strata[spots][order], return_index=True)
        oracle = self._mechanism.oracle(level)
        for place, own in zip(places.tolist(), np.split(order, starts[1:]), strict=True):
            monomials = [monomial for monomial in block.weights if (place, level, monomial) in missing]
            if not monomials:
                continue
            reports = LevelReports(group.rows[selected[own]], group.reports[selected[own]])
            for monomial in monomials:
                cells = missing[place, level, monomial]
                weights = block.weights[monomial][spots[own]] if monomial.base else None
                counts, totals = sums[place, level, monomial]
                some = max(MOST_HASHES // own.size, 1)
                for start in range(0, cells.size, some):
                    check_time()
                    chunk = slice(start, start + some)
                    more, whole = _supports(oracle, reports, cells[chunk], weights)
                    counts[:, chunk] += more
                totals += whole

    def of(self, strata: Strata, place: int, monomial: Monomial, level: Level, cells: Ints) -> tuple[Floats, Floats]:
        """The support of each cell by a weight and by its square, and the totals of those who reported."""
        return self.supports.find(self._key(strata, place, monomial, level), cells)

    @staticmethod
    def _key(strata: Strata, place: int, monomial: Monomial, level: Level) -> object:
        return strata.strata[place].name, monomial, level


def _supports(
    oracle: FrequencyOracle, group: LevelReports, cells: Ints, weights: Floats | None
) -> tuple[Floats, Floats]:
    if weights is None:
        counts = oracle.supports(group.reports, cells.astype(np.uint64)).astype(np.float64)
        return np.array([counts, counts]), np.full(2, float(group.rows.size))
    measure = ScaledNumbers.of("measure", weights)
    sums = oracle.support(group.reports, cells, measure.weights).counts
    scales = np.array([measure.scale, measure.scale**2])
    return sums[:, :-1] / scales[:, None], sums[:, -1] / scales


@dataclass(frozen=True, eq=False)
class LevelSums:
    """The contribution of a level to the sums of a part.

    Sum j weighs person i with w_ij and their cell with c_j. All are estimated: the sums `own` of c_j w_j; the
    covariances `noise` of randomisation (`report_covariances`); the sums `first` of c_j w_j w_k and `second` of
    c_j c_k w_j w_k.
    """

    scale: float
    own: Floats
    noise: Floats
    first: Floats
    second: Floats


@dataclass(frozen=True, eq=False)
class StratumSums:
    """The sums of a part by level, and the exact totals and products of its weights in the stratum.

    Sum j includes `known[j]` times its total. `inside` are the estimated sums of w_j w_k f_j f_k, f_j being what the
    private columns of a person multiply their weight with. `step` is that of `PartSums`.
    """

    step: Floats
    known: Floats
    totals: Floats
    products: Floats
    inside: Floats
    levels: dict[Level, LevelSums]


def joint_intervals(n: int, divided: bool, parts: Sequence[tuple[StratumSums, Floats]]) -> JointEstimate:
    """Sums over the people of several strata, each person being of one of them.

    `SumVariance` has the derivation; here a product of two weights stands for a squared one, f for whether a person is
    in the box, and people of different strata have different weights of cells. Over all levels, the weights c_j of a
    person's cells add up to f_j - known_j. The noise of different people is independent. Dividing n people into levels
    moves all strata together, so that the squares of the levels' sums are of all strata. It does not matter whether
    everybody is on one of the levels: others may report by another method.

    `divided`: whether a person reports on one level only; otherwise the same people report on all levels. `parts`: the
    sums of each stratum, and the matrix that makes the wanted sums (rows) of its weights (columns).
    """
    size = parts[0][1].shape[0] if parts else 0
    value, noise = np.zeros(size), np.zeros((size, size))
    sampling, spread = np.zeros((size, size)), np.zeros((size, size))
    size_of_terms = np.zeros(size)
    level_sums: dict[Level, Floats] = {}
    scales: dict[Level, float] = {}
    for part, matrix in parts:
        value += matrix @ (part.known * part.totals)
        size_of_terms += np.abs(matrix) @ np.abs(part.known * part.totals)
        first = part.known[:, None] * part.products  # sums of w_j w_k f_j
        for level, sums in part.levels.items():
            value += matrix @ sums.own
            size_of_terms += np.abs(matrix) @ np.abs(sums.own)
            noise += sums.scale * (matrix @ sums.noise @ matrix.T)
            sampling += sums.scale * (matrix @ sums.second @ matrix.T)
            level_sums[level] = level_sums.get(level, 0.0) + matrix @ sums.own
            scales[level] = sums.scale
            first = first + sums.first
        shift = first * part.known
        own = part.inside - shift - shift.T + np.outer(part.known, part.known) * part.products
        spread += matrix @ own @ matrix.T
    value[np.abs(value) < 1e-11 * size_of_terms] = 0.0  # terms that cancel leave what floats round
    asked = max((scale for scale in scales.values() if np.isfinite(scale)), default=1.0)
    if n < 2 or (not divided and asked == 1):
        return JointEstimate(value, (noise,))
    every = np.sum(list(level_sums.values()), axis=0) if level_sums else np.zeros(size)
    if divided:
        sampling -= spread
        for level, level_sum in level_sums.items():
            if np.isfinite(scales[level]):
                sampling -= scales[level] * np.outer(level_sum, level_sum) / n
    else:  # one group of people, who report on every level, stands for all
        sampling = (asked - 1) * spread - asked * np.outer(every, every) / n
    sampling = (sampling + np.outer(every, every) / n) * n / (n - 1)
    return JointEstimate(value, (noise, sampling))


def report_covariances(oracle: FrequencyOracle, weights: Floats) -> tuple[Floats, float, float]:
    """A, B and C of the covariance A_jk + B (T_j c_k + T_k c_j) + C c_j c_k of one report's weighted supports.

    Row j of the weights are those of sum j, T_j is its total, and c_j the weight of the report's cell. A single row has
    `report_variance`.
    """
    moments = oracle.moments()
    holder, neither = oracle.pair_covariance() or (0.0, 0.0)
    gap = (moments.true_mean - moments.false_mean) ** 2
    totals, products = weights.sum(axis=1), weights @ weights.T
    constant = moments.false_variance * products + neither * (np.outer(totals, totals) - products)
    slope = holder - neither
    curve = moments.true_variance - moments.false_variance - 2 * slope
    return constant / gap, slope / gap, curve / gap


def typical_step(levels: Sequence[tuple[float, int, Floats]], size: int) -> Floats:
    """The products of what one report typically adds to each two of `size` sums.

    People are taken to be spread evenly. Of one sum, it is the square of the third moment of what reports add over the
    second; cells with positive weights, which are those inside of a box, and cells with negative weights are looked at
    separately, and the larger result counts. Of several sums, it is the mean of the products of what reports add,
    drawn by their part in the variance.

    `levels`: for each level: how many people one report stands for, how many cells the level has, and what a report
    adds to each sum (row) that supports each cell of a query.
    """
    if size > MOST_TOGETHER:  # each sum by itself, and all moved together
        alone = [[(scale, cells, added[k : k + 1]) for scale, cells, added in levels] for k in range(size)]
        each = np.array([typical_step(own, 1)[0, 0] for own in alone])
        return np.sqrt(np.outer(each, each))
    if size > 1:
        second, fourth = np.zeros((size, size)), np.zeros((size,) * 4)
        for scale, cells, added in levels:
            check_time()
            pairs = np.einsum("ax,bx->abx", added, added)
            second += scale * pairs.sum(axis=2) / cells
            fourth += scale**3 * np.tensordot(pairs, pairs, axes=(2, 2)) / cells
        used = np.flatnonzero(np.diag(second) > 0)  # a sum that is known has no reports
        scales = np.sqrt(np.diag(second))[used]
        inverse = np.linalg.pinv(second[np.ix_(used, used)] / np.outer(scales, scales), hermitian=True)
        drawn = fourth[np.ix_(*[used] * 4)] / np.outer(scales, scales)
        products = np.zeros((size, size))
        products[np.ix_(used, used)] = np.einsum("abcd,cd->ab", drawn, inverse)
        return products
    moments = np.zeros((2, 2))
    for scale, cells, added in levels:
        sides = np.maximum([added[0], -added[0]], 0.0)
        moments += np.array([scale * (sides**2).sum(axis=1), scale**2 * (sides**3).sum(axis=1)]) / cells
    step = max((cube / square for square, cube in moments.T if square > 0), default=0.0)
    return np.full((1, 1), float(step) ** 2)
