"""A rehearsal on a file: the estimates that a private collection of one column would give, next to the truth."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Array, Floats
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random
from hubbub.rehearse.columns import read_column
from hubbub.simulate.conversation import collect


@dataclass(frozen=True, eq=False)
class ColumnResult:
    """The estimated shares of a column's values, next to the true shares.

    `labels`: the distinct values: numbers by size, then words alphabetically, then "(missing)" if a row has no value.
    """

    column: str
    labels: tuple[str, ...]
    truth: Floats
    estimate: Estimate
    mechanism: FrequencyOracle
    n: int
    missing: int


def collect_column(
    path: str | os.PathLike[str],
    column: str,
    *,
    epsilon: float,
    mechanism: str | None = None,
    seed: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> ColumnResult:
    """Randomise every row's value of a column, as its owner's device would, and estimate the shares.

    The labels are taken from the file. In a real collection nobody has the file: the list of labels must be known.

    Parameters
    ----------
    path
        A .csv, .tsv, .jsonl, .ndjson or .parquet file; a row is a person.
    column
        The name of the column. Values are labels, even if they are numbers; there may be a million different ones.
    mechanism
        The name of a frequency oracle; unless given, the one with the smallest variance (`hubbub.adaptive`).
    seed
        For a repeatable result; new randomness unless given.
    """

    def show(done: int, label: str) -> None:
        if progress is not None:
            progress(done, 3, label)

    show(0, f"reading {column}")
    labels, codes, missing = read_column(Path(path), column)
    if len(labels) < 2:
        raise InvalidValue("column", column, f"a column of different values: every row holds {labels[0]!r}")
    oracle = _oracle(mechanism, epsilon, labels)
    show(1, f"randomising {codes.size:,} rows")
    names: Array = np.array(labels, dtype=object)
    sketch = collect(oracle, names[codes], Random(seed=seed))
    show(2, f"estimating {len(labels):,} shares")
    estimate = oracle.estimate(sketch)
    show(3, "done")
    truth = np.bincount(codes, minlength=len(labels)) / codes.size
    return ColumnResult(column, labels, truth, estimate, oracle, codes.size, missing)


def _oracle(mechanism: str | None, epsilon: float, labels: tuple[str, ...]) -> FrequencyOracle:
    if mechanism is None:
        return adaptive(epsilon=epsilon, domain=labels)
    oracles = {name: kind for name, kind in MECHANISMS.usable().items() if issubclass(kind, FrequencyOracle)}
    if mechanism not in oracles:
        raise InvalidValue("mechanism", mechanism, f"one of {', '.join(oracles)}")
    return oracles[mechanism](epsilon=epsilon, domain=labels)
