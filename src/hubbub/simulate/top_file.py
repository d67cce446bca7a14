"""A rehearsal on a file: the most common values of a column that a private study would find, beside the truth."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hubbub.core.random import Random
from hubbub.simulate.columns import MISSING, read_column
from hubbub.simulate.top import TopValues, find_top


@dataclass(frozen=True, eq=False)
class TopInColumn:
    """The values that were found in a column, beside the true shares.

    Parameters
    ----------
    found
        The result of the study.
    truth
        The true share of every value, in its NFC form.
    n
        How many rows there are.
    missing
        How many rows have no value; they answer too.
    """

    found: TopValues
    truth: dict[str, float]
    n: int
    missing: int


def find_top_in_column(
    path: str | os.PathLike[str],
    column: str,
    *,
    k: int,
    epsilon: float,
    longest: int,
    rng: Random,
    threshold: float | None = None,
    query_limit: int = 1 << 20,
    progress: Callable[[int, int, str], None] | None = None,
) -> TopInColumn:
    """Find the k most common values of a column by the prefix extending method; each row is a person who answers once.

    Parameters
    ----------
    path, column
        As of `collect_column`.
    k, epsilon, longest, rng, threshold, query_limit
        As of `find_top`.
    progress
        Called with (done, total, label).
    """

    def show(done: int, label: str) -> None:
        if progress is not None:
            progress(done, 2, label)

    show(0, f"reading {column}")
    labels, codes, missing = read_column(Path(path), column, any_bytes=True)
    show(1, f"asking {codes.size:,} people")
    names = np.array(["" if label == MISSING and missing else label for label in labels], dtype=object)
    found = find_top(
        names[codes], k=k, epsilon=epsilon, longest=longest, threshold=threshold, query_limit=query_limit, rng=rng
    )
    show(2, "done")
    truth: dict[str, float] = {}
    for name, count in zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True):
        if name:
            normal = unicodedata.normalize("NFC", name)
            truth[normal] = truth.get(normal, 0.0) + count / codes.size
    return TopInColumn(found, truth, codes.size, missing)
