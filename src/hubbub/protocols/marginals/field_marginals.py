"""The release of a marginals question: any marginal of its named fields, records, and what goes together most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import NamedTuple

import numpy as np

from hubbub.consistency.marginals import Attributes, check_attributes
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.marginals.calm import ReconstructionError, measured_reconstruction
from hubbub.protocols.marginals.synopsis import Synopsis
from hubbub.random.source import Random

_MOST_LEFT_OUT = 8
"""Each that is left out takes as long as a release."""


class GoesTogether(NamedTuple):
    """Two values that more people have together than would if their fields were independent.

    `share`, `low`, `high`: the share of the people who have both, with an interval that holds although the two were
    selected. `expected`: the share if the fields were independent.
    """

    fields: tuple[str, str]
    values: tuple[str, str]
    share: float
    low: float
    high: float
    expected: float


@dataclass(frozen=True, eq=False)
class FieldMarginals:
    """The joint distribution of some fields, as far as the marginals that devices reported on determine it.

    `labels`: the names of the values of each field, by the name of the field. `reported`: the unbiased estimate of each
    marginal that devices reported on, by the places of its fields.

    Example:
        >>> from hubbub.rehearse.marginals import rehearse_marginals
        >>> people = {"coat": ["none", "warm"] * 4000, "rain": ["dry", "wet"] * 4000}
        >>> released = rehearse_marginals(people, epsilon=4.0, rng=Random(seed=1))
        >>> released.marginal(["coat", "rain"]).value.round(1)[:2].tolist()
        [0.5, 0.0]
    """

    labels: Mapping[str, tuple[str, ...]]
    reported: Mapping[Attributes, Estimate]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(self.labels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each field has."""
        return tuple(map(len, self.labels.values()))

    @cached_property
    def synopsis(self) -> Synopsis:
        """The consistent marginals."""
        return Synopsis(self.reported, self.sizes)

    @property
    def n(self) -> int:
        """How many people reported."""
        return self.synopsis.n

    def places(self, fields: Sequence[str]) -> Attributes:
        """The places of some fields, ascending; unknown and repeated ones, and none at all, are refused."""
        unknown = [name for name in fields if name not in self.labels]
        if unknown or not fields or len(set(fields)) < len(fields):
            raise InvalidValue("of", ", ".join(fields), f"different fields, of {', '.join(self.fields)}")
        if not set(fields) <= set(self.known_fields):
            raise InvalidValue("of", ", ".join(fields), f"fields with enough reports: {', '.join(self.known_fields)}")
        return tuple(sorted(map(self.fields.index, fields)))

    def marginal(self, fields: Sequence[str]) -> Estimate:
        """The shares of all combinations of values of some fields, labelled; the last field varies fastest.

        Fields are in the order of the question. See `Synopsis.marginal` for the intervals.
        """
        places = self.places(fields)
        return replace(self.synopsis.marginal(places), labels=self.cells(places))

    def covers(self, fields: Sequence[str]) -> bool:
        """Whether devices reported on a marginal with all these fields: only then is its error known."""
        return self.synopsis.covers(self.places(fields))

    def cells(self, places: Attributes) -> tuple[str, ...]:
        """The names of the cells of a marginal."""
        return cell_names([self.labels[self.fields[place]] for place in places])

    def records(self, n: int, rng: Random, fields: Sequence[str] | None = None) -> list[tuple[str, ...]]:
        """Records of people who do not exist, as texts; of all fields with reports, or of some, in the given order."""
        chosen = self.known_fields if fields is None else list(fields)
        self.places(chosen)
        codes = synthetic_records(self.synopsis, n, rng, [self.fields.index(name) for name in chosen])
        columns = [np.array(self.labels[name], dtype=object)[codes[:, place]] for place, name in enumerate(chosen)]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    @property
    def known_fields(self) -> list[str]:
        """The fields that devices reported on."""
        return [self.fields[place] for place in self._known]

    @property
    def _known(self) -> list[int]:
        return sorted(set().union(*self.reported))

    @cached_property
    def left_out(self) -> ReconstructionError | None:
        """How far reconstruction was off where it can be checked; None where it can be nowhere.

        Marginals that devices reported on are left out, one at a time, reconstructed from the others, and compared.
        """
        try:
            return measured_reconstruction(self.reported, self.sizes, most=_MOST_LEFT_OUT)
        except InvalidValue:
            return None

    def goes_together(self, level: float = 0.95) -> GoesTogether | None:
        """The two values that go together most; None if no two are clearly more often together than by chance.

        Of all pairs of fields that were reported on together, that with the most mutual information is taken, and of
        its cells that with the largest excess over independence, if the interval of the excess is above 0. All such
        intervals together hold with probability `level`.
        """
        pairs = [pair for pair in combinations(self._known, 2) if self.synopsis.covers(pair)]
        if not pairs:
            return None
        pair = max(pairs, key=lambda places: information(self.synopsis.table(places)))
        table = self.synopsis.table(pair)
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        expected = np.multiply.outer(rows, columns)
        row, column = (int(place) for place in np.unravel_index(np.argmax(table - expected), table.shape))
        # The excess p_ab - p_a p_b as a linear function of the cells, around the estimated p_a and p_b.
        cell, excess = np.zeros(table.shape), np.zeros(table.shape)
        cell[row, column] = 1.0
        excess[row] -= columns[column]
        excess[:, column] -= rows[row]
        both = self.synopsis.direct(pair, np.stack([cell.ravel(), (cell + excess).ravel()]))
        looked_at = sum(prod(self.sizes[place] for place in places) for places in pairs)
        reach = normal_reach(1 - (1 - level) / looked_at) * both.stderr
        if not both.value[1] + expected[row, column] > reach[1]:
            return None
        fields = (self.fields[pair[0]], self.fields[pair[1]])
        values = (self.labels[fields[0]][row], self.labels[fields[1]][column])
        share, centre = table[row, column], both.value[0]
        ends = (share, min(share, centre - reach[0]), max(share, centre + reach[0]), expected[row, column])
        return GoesTogether(fields, values, *map(float, ends))


def cell_names(labels: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A name for each combination of values, the last of which varies fastest."""
    return tuple(map(", ".join, product(*labels)))


MOST_TOGETHER = 1 << 12
"""Attributes with at most this many cells together are drawn from their joint marginal."""


def synthetic_records(synopsis: Synopsis, n: int, rng: Random, attributes: Sequence[int] | None = None) -> Ints:
    """Records of people who do not exist, with the distribution of the released marginals.

    If the attributes have few cells together, records are drawn from their joint marginal. Otherwise each attribute is
    drawn given another, along the tree of pairs with the most mutual information: pairs in the tree are distributed as
    released, other pairs only as follows from the tree.

    `synopsis`: the release. The records reveal nothing more. `attributes`: the columns, in this order; all unless
    given.
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
