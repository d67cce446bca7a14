"""Upper bounds of the errors of range queries (T. Wang, 2021, chapter 7), and from where on a method is better.

The text's bounds are for columns of b^h values each and reports by OLH. Here columns may have any sizes, and reports by
GRR have their own greatest variance. For b^h values and OLH the numbers are the text's, but for one: (7.25) leaves out
a factor of 2 that follows from Prop 7.2.2, and is exceeded (one column of 625 values, fan-out 5, epsilon 0.1).

Each bound is also one of answers by least squares. A decomposition of p cells has the sum of squared weights p; least
squares has the smallest sum of all unbiased combinations of the cells, and the bounds use no more than that sum.
"""

import math
from collections.abc import Sequence

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.protocols.ranges.cell_sums import cells_of
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery, Selection
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism, cell_oracle
from hubbub.protocols.ranges.split import SC

BoundedMechanism = IntervalMechanism | SC
SignedSelections = Sequence[tuple[int, Sequence[Selection]]]
"""Boxes that add up to a condition, each with its factor."""


def report_bound(epsilon: float) -> float:
    """The variance of one person's contribution to a cell, at most, by OLH (Prop 7.2.1)."""
    half = math.tanh(min(epsilon, 700.0) / 2)  # (e^eps - 1) / (e^eps + 1)
    return 1 / half**2


def sample_bound(epsilon: float, groups: float) -> float:
    """The same where one of some groups of people reports, and stands for all (Prop 7.2.2)."""
    return groups * (report_bound(epsilon) + 1)


def most_intervals(dimension: Dimension, selection: Selection) -> int:
    """The most intervals that a selection of a column is decomposed into: of a range, 2 (b - 1) log_b m (7.3.1)."""
    if selection is None:
        return 1
    runs = dimension.runs(selection)
    values = sum(high - low + 1 for low, high in runs)
    if dimension.levels == 2:  # or all values but the others
        return min(values, dimension.size - values + 1)
    fanout = max(-(-wide // narrow) for wide, narrow in zip(dimension.widths, dimension.widths[1:], strict=False))
    return min(values, len(runs) * 2 * (fanout - 1) * (dimension.levels - 1))


def bound_name(mechanism: BoundedMechanism) -> str:
    """The number of a mechanism's bound in the dissertation."""
    single = len(mechanism.dimensions) == 1
    if isinstance(mechanism, SC):
        return "7.31"
    if isinstance(mechanism, MG):
        return "7.10"
    return ("7.13" if single else "7.21") if isinstance(mechanism, HI) else ("7.14" if single else "7.25")


def bound_stderr(
    mechanism: BoundedMechanism, query: RangeQuery, n: int, *, mean_square: float = 1.0, asked: float = 1.0
) -> float:
    """The greatest standard error of an answer from n people, however they are spread over the values.

    `mean_square`: the mean square of the measure that is added up; 1 for counts. `asked`: the part of the people that
    reports by this mechanism.
    """
    query.check(mechanism.dimensions)
    return math.sqrt(n * mean_square * boxes_bound(mechanism, [(1, query.box)], asked=asked))


def boxes_bound(
    mechanism: BoundedMechanism, boxes: SignedSelections, *, asked: float = 1.0, report: float | None = None
) -> float:
    """The greatest variance of a sum over several boxes, for a sum of 1 of the squared measures (M_T^2).

    HI (7.13, 7.21): p V, with p cells, and V the variance of one report. HIO (7.14, 7.25): p k (V + 1), where k is
    the number of groups that people are divided into. MG (7.10): p V. SC (7.31): the product over the columns of a box
    of 1 + p_i V, which is the second moment of a person's score; the text gives its order only. V is `worst_report`
    unless it is given as `report`.
    """
    boxes = [(factor, box) for factor, box in boxes if any(selection is not None for selection in box)]
    if not boxes:
        return 0.0
    report, groups = worst_report(mechanism) if report is None else report, 1 / asked
    if isinstance(mechanism, HIO):
        groups *= len(mechanism.levels)
    root = sum(abs(factor) * math.sqrt(_box_bound(mechanism, box, report)) for factor, box in boxes)
    if isinstance(mechanism, SC):
        return root**2 * (2 * groups - 1 if groups > 1 else 1.0)
    return root**2 * (groups * (report + 1) if groups > 1 else report)


def _box_bound(mechanism: BoundedMechanism, box: Sequence[Selection], report: float) -> float:
    """Of one box: the number of cells at most; for SC, the second moment of a score."""
    chosen = [(d, selection) for d, selection in zip(mechanism.dimensions, box, strict=True) if selection is not None]
    if isinstance(mechanism, SC):
        return math.prod(1 + most_intervals(dimension, selection) * report for dimension, selection in chosen)
    if isinstance(mechanism, MG):
        pairs = zip(mechanism.dimensions, box, strict=True)
        return math.prod(sum(high - low + 1 for low, high in d.runs(selection)) for d, selection in pairs)
    return math.prod(most_intervals(dimension, selection) for dimension, selection in chosen)


def worst_report(mechanism: BoundedMechanism) -> float:
    """The greatest second moment of what one report adds to a cell: by OLH, or on levels of few cells by GRR."""
    worst, dimensions = report_bound(mechanism.level_epsilon), mechanism.dimensions
    if isinstance(mechanism, SC):
        sizes = {dimensions[column].nodes(depth) for column, depth in mechanism.levels}
    else:
        sizes = {cells_of(dimensions, level) for level in mechanism.levels}
    for oracle in (cell_oracle(mechanism.level_epsilon, cells) for cells in sizes):
        if isinstance(oracle, GRR):
            moments = oracle.moments()
            worst = max(worst, moments.true_mean / (moments.true_mean - moments.false_mean) ** 2)
    return worst


def _widest(dimensions: Sequence[Dimension], columns: int) -> list[Selection]:
    """A box of the most intervals in the columns that have the most levels, and all of the others."""
    order = sorted(range(len(dimensions)), key=lambda place: -dimensions[place].levels)[:columns]
    return [(1, d.size - 2) if place in order and d.size > 2 else (0, 0) if place in order else None
            for place, d in enumerate(dimensions)]  # fmt: skip


def hio_from_volume(epsilon: float, dimensions: Sequence[Dimension]) -> float:
    """The part of all cells from which on a box of all columns has a smaller bound by HIO than by MG (7.32, 7.33).

    Above 1: by MG for every box.
    """
    hio, marginal = HIO(epsilon, tuple(dimensions)), MG(epsilon, tuple(dimensions))
    box = _widest(dimensions, len(dimensions))
    cells = boxes_bound(hio, [(1, box)]) / worst_report(marginal)
    return cells / math.prod(dimension.size for dimension in dimensions)


def sc_up_to_columns(epsilon: float, dimensions: Sequence[Dimension]) -> int:
    """The most columns of a query for which its bound by SC is smaller than by HIO (7.34); 0 if there are none."""
    split, hio = SC(epsilon, tuple(dimensions)), HIO(epsilon, tuple(dimensions))
    better = 0
    for columns in range(1, len(dimensions) + 1):
        box = [(1, _widest(dimensions, columns))]
        if boxes_bound(split, box) < boxes_bound(hio, box):
            better = columns
    return better
