"""The exact delta of a few shuffled reports, by brute force: bounds are checked against it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism


def report_table(
    mechanism: Mechanism, *, publics: Mapping[str, NDArray[Any]] | None = None, values: int = 4
) -> NDArray[np.float64]:
    """The probability of every report (column) under every value (row); public parts are equally likely."""
    examples = mechanism.example_values(values)
    parts = max((len(column) for column in (publics or {}).values()), default=1)
    tables = []
    for row in range(parts):
        outputs = mechanism.outputs({name: column[row : row + 1] for name, column in (publics or {}).items()} or None)
        if outputs is None:
            raise InvalidValue("mechanism", type(mechanism).__name__, "one whose reports can be enumerated")
        tables.append(mechanism.prob(outputs, examples).astype(np.float64).T)
    return np.concatenate(tables, axis=1) / len(tables)


def shuffled_delta(table: NDArray[np.float64], n: int, epsilon: float) -> float:
    """The exact delta of n shuffled reports at an epsilon: the largest over all values of everyone."""
    kinds = math.comb(table.shape[1] + n - 1, n)
    if kinds > 10**5:
        raise InvalidValue("n", n, f"less: {kinds:,} multisets of reports are too many to look at")
    return max(_deltas(table, n, math.exp(epsilon)))


def _deltas(table: NDArray[np.float64], n: int, factor: float) -> Iterator[float]:
    for other_values in combinations_with_replacement(range(len(table)), n - 1):
        rest: dict[tuple[int, ...], float] = {(0,) * table.shape[1]: 1.0}
        for value in other_values:
            rest = _with(rest, table[value])
        worlds = [_with(rest, row) for row in table]
        for first, second in permutations(worlds, 2):
            yield sum(max(0.0, chance - factor * second[counts]) for counts, chance in first.items())


def _with(counts: dict[tuple[int, ...], float], row: NDArray[np.float64]) -> dict[tuple[int, ...], float]:
    """The distribution of the counts of every kind of report after one more report, whose distribution is `row`."""
    longer: dict[tuple[int, ...], float] = defaultdict(float)
    for numbers, chance in counts.items():
        for kind, more in enumerate(row.tolist()):
            longer[(*numbers[:kind], numbers[kind] + 1, *numbers[kind + 1 :])] += chance * more
    return longer
