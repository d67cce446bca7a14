"""All possible reports of a mechanism, where they can be listed, with their exact probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.checks.failure import CheckFailed
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.probes import count_of

_ROWS = 32  # public parts tried: values that differ under some of them almost surely differ under one of so many
_VALUES = 512
_ENTRIES = 60_000  # about the most exact probabilities that are computed


class OutputTable(NamedTuple):
    """The exact probabilities of every private part (row) given some values (column), beside one public part."""

    outputs: Reports
    prob: NDArray[np.object_]


def public_rows(mechanism: Mechanism, count: int, rng: Random) -> list[Mapping[str, NDArray[Any]] | None]:
    """The public parts of so many reports, one row each, without repeats; a single None where reports have none."""
    if not any(column.part == "public" for column in mechanism.columns):
        return [None]
    reports = mechanism.randomize(mechanism.example_values(1) * count, rng)
    distinct = {key: row for row, key in enumerate(row_keys(reports.public, count))}
    return [{name: column[row : row + 1] for name, column in reports.public.items()} for row in distinct.values()]


@lru_cache(maxsize=2)  # several checks in a row look at one mechanism
def enumerate_outputs(mechanism: Mechanism, rng_seed: int) -> tuple[OutputTable, ...]:
    """The outputs beside several public parts; nothing where they are too many."""
    tables: list[OutputTable] = []
    rows = public_rows(mechanism, _ROWS, Random(seed=rng_seed))
    for public in rows:
        outputs = mechanism.outputs(public)
        if outputs is None:
            return ()
        if len(tables) * len(outputs) > _ENTRIES:
            break
        values = mechanism.example_values(_most_values(len(outputs), len(rows)))
        tables.append(OutputTable(outputs, mechanism.prob(outputs, values)))
    return tuple(tables)


def covers_every_value(mechanism: Mechanism) -> bool:
    """Whether `enumerate_outputs` lists every output given every value."""
    rows = public_rows(mechanism, _ROWS, Random(seed=1))
    outputs, count = mechanism.outputs(rows[0]), count_of(mechanism)
    return outputs is not None and count is not None and count <= _most_values(len(outputs), len(rows))


def _most_values(outputs: int, rows: int) -> int:
    return min(_VALUES, max(2, _ENTRIES // (outputs * rows)))


def worst_ratio(parts: Iterable[OutputTable]) -> Fraction:
    """The largest ratio of one output's probabilities under two values."""
    worst = Fraction(1)
    for _, prob in parts:
        for row in prob.tolist():
            few = {id(chance): chance for chance in row}.values()  # tables repeat fractions, slow to compare
            least, most = min(few), max(few)
            if least == 0 < most:
                raise CheckFailed("a report is possible under one value and impossible under another")
            if most:
                worst = max(worst, most / least)
    return worst


def exact_sum(parts: NDArray[np.object_]) -> Fraction:
    """The sum of many fractions, over one common denominator."""
    denominator = lcm(*{part.denominator for part in parts})
    return Fraction(sum(part.numerator * (denominator // part.denominator) for part in parts), denominator)


def row_keys(columns: Mapping[str, NDArray[Any]], n: int) -> list[bytes]:
    """Each row's bytes, all columns together: equal rows have equal keys."""
    parts = [np.ascontiguousarray(column).reshape(n, -1).view(np.uint8) for _, column in sorted(columns.items())]
    wide = np.hstack(parts) if parts else np.zeros((n, 0), dtype=np.uint8)
    data, width = wide.tobytes(), wide.shape[1]
    return [data[start : start + width] for start in range(0, n * width, width)] if width else [b""] * n
