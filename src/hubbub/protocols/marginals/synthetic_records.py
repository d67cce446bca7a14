"""Synthetic records drawn from released marginals, for programs that need records, such as those that train models."""

from collections.abc import Sequence
from math import prod

import numpy as np

from hubbub.consistency.marginals import Attributes, check_attributes
from hubbub.core.errors import check_integer
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.marginals.synopsis import Synopsis
from hubbub.random.source import Random

MOST_TOGETHER = 1 << 12
"""Attributes with at most this many cells together are drawn from their joint marginal."""


def synthetic_records(synopsis: Synopsis, n: int, rng: Random, attributes: Sequence[int] | None = None) -> Ints:
    """Records of people who do not exist, with the distribution of the released marginals.

    If the attributes have few cells together, records are drawn from their joint marginal. Otherwise each attribute is
    drawn given another, along the tree of pairs with the most mutual information: pairs in the tree are distributed as
    released, other pairs only as follows from the tree.

    Parameters
    ----------
    synopsis
        The release. The records reveal nothing more.
    n
        How many records.
    rng
        The randomness.
    attributes
        The columns, in this order; all unless given.
    """
    check_integer("n", n, 0)
    order = list(range(len(synopsis.sizes))) if attributes is None else list(attributes)
    columns = check_attributes(order, [1] * len(synopsis.sizes))  # however many cells they have together
    if prod(synopsis.sizes[column] for column in columns) <= MOST_TOGETHER:
        table = synopsis.table(columns)
        cells = _draw(np.broadcast_to(table.ravel(), (1, table.size)), np.zeros(n, dtype=np.int64), rng)
        rows = np.stack(np.unravel_index(cells, table.shape), axis=1)
    else:
        rows = _along_tree(synopsis, columns, n, rng)
    return np.asarray(rows[:, [columns.index(column) for column in order]], dtype=np.int64)


def information(table: Floats) -> float:
    """The mutual information of two attributes, in nats."""
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    positive = table > 0
    return float((table[positive] * np.log(table[positive] / independent[positive])).sum())


def _along_tree(synopsis: Synopsis, columns: Attributes, n: int, rng: Random) -> Ints:
    rows = np.zeros((n, len(columns)), dtype=np.int64)
    rows[:, 0] = _draw(synopsis.table(columns[:1])[None, :], np.zeros(n, dtype=np.int64), rng)
    # for every column that is not drawn yet: its largest mutual information with a drawn column, and that column
    best = dict.fromkeys(range(1, len(columns)), (-1.0, 0))
    new = 0
    while best:
        for place in best:
            nats = information(synopsis.table((columns[new], columns[place])))
            best[place] = max(best[place], (nats, new))
        chosen = max(best, key=lambda place: best[place])
        _, parent = best.pop(chosen)
        rows[:, chosen] = _draw(synopsis.table((columns[parent], columns[chosen])), rows[:, parent], rng)
        new = chosen
    return rows


def _draw(weights: Floats, rows: Ints, rng: Random) -> Ints:
    """For each of the given rows of a table, draw a column in proportion to the row's weights."""
    sums = np.cumsum(weights, axis=1)
    # cell c of row r has the numbers from r + sums[c-1] to r + sums[c], scaled to its row
    scaled = np.divide(sums, sums[:, -1:], out=np.ones_like(sums), where=sums[:, -1:] > 0)
    borders = (scaled + np.arange(len(weights))[:, None]).ravel()
    points = rows + rng.uint64(rows.size) / 2.0**64 * (1 - 1e-12)
    return np.asarray(np.searchsorted(borders, points, side="right") - rows * weights.shape[1], dtype=np.int64)
