"""A rehearsal of a search: the most common values of a column that a private study would find."""

import os
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Array, Reports, Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, CountResult, Release, converse
from hubbub.protocols.heavy_hitters.pem import FALSE_POSITIVES, PSI, REACH, SEARCH, prefix_extending
from hubbub.protocols.heavy_hitters.prefixes import Integers, PrefixPlan, Texts
from hubbub.random.source import Random
from hubbub.rehearse.columns import MISSING, read_column


@dataclass(frozen=True)
class TopValues:
    """The values that a search found, and the limits of the search.

    `release`: its release; without estimates if the search was stopped.
    """

    plan: PrefixPlan
    release: Release

    @property
    def estimate(self) -> Estimate:
        """The shares of the values, largest first, with intervals that allow for the selection."""
        return self.release.estimate

    @property
    def values(self) -> list[str] | list[int]:
        """The values: texts, or integers."""
        labels = list(self.estimate.labels or ())
        return labels if isinstance(self.plan.encoding, Texts) else [int(label) for label in labels]

    @property
    def stopped(self) -> str | None:
        """Why nothing was found."""
        return self.release.stopped

    @property
    def smallest_share(self) -> float:
        """The share above which one candidate that nobody has is expected by chance: Psi of the last group."""
        return self._number(REACH, PSI)

    @property
    def false_positives(self) -> float:
        """The expected number of values that were found by chance."""
        return self._number(SEARCH, FALSE_POSITIVES)

    def _number(self, estimate_name: str, label: str) -> float:
        estimate = self.release.estimates.get(estimate_name)
        return float("nan") if estimate is None else float(estimate.value[estimate.names().index(label)])


def find_top(
    values: Sequence[str] | Sequence[int] | Array,
    *,
    k: int,
    epsilon: float,
    rng: Random,
    bits: int | None = None,
    longest: int | None = None,
    **options: Any,
) -> TopValues:
    """Find the k most common of some values, one of each person, by the prefix extending method.

    Parameters
    ----------
    values
        The value of each person: texts, or integers of at least 0.
    k, epsilon
        How many values to find, and what the report of a person spends.
    rng
        The randomness of the people: of their groups and of their reports.
    bits
        For integers: how many bits they have, at most 64.
    longest
        For texts: how many UTF-8 bytes a value may have; longer values cannot be found.
    options
        `query_limit`, `branching`, `groups` and `threshold`, as of `PrefixPlan`.
    """
    if (bits is None) == (longest is None):
        raise InvalidValue("bits", bits, "given for integers, or longest for texts")
    encoding = Integers(bits) if bits is not None else Texts(longest)  # type: ignore[arg-type]
    plan = PrefixPlan(encoding=encoding, k=k, epsilon=epsilon, **options)
    kinds = int | np.integer if bits is not None else str | bytes
    table = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object if longest else None)
    if table.dtype.kind not in "iu" and not all(isinstance(value, kinds) for value in table):
        raise InvalidValue("values", values, "integers of at least 0" if bits is not None else "texts")
    return run_plan(plan, table, rng)


def run_plan(plan: PrefixPlan, values: Array, rng: Random) -> TopValues:
    """Run a plan with these people, who are put on the circle at random."""
    places = rng.uint32(len(values))
    reports: dict[str, Reports] = {}

    def answer(ask: Ask) -> Sketch:
        prefixes = ask.view(values[ask.cohort.holds(places)])
        reports[ask.ask_id] = plan.oracle.randomize(prefixes, rng)
        return plan.oracle.accumulate(reports[ask.ask_id])

    def count(message: Count) -> CountResult:
        return message.among(lambda: [reports[message.ask.ask_id]])

    (release,) = converse(prefix_extending(plan), answer, count=count, rounds=1, parts=len(plan.lengths))
    return TopValues(plan, release)


@dataclass(frozen=True, eq=False)
class TopInColumn:
    """The values that were found in a column, next to the true shares.

    `truth`: the true share of every value, in its NFC form. `missing`: how many rows have no value; they answer too.
    """

    findings: TopValues
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

    `path`, `column`: as of `collect_column`. `k`, `epsilon`, `longest`, `rng`, `threshold`, `query_limit`: as of
    `find_top`.
    """

    def show(done: int, label: str) -> None:
        if progress is not None:
            progress(done, 2, label)

    show(0, f"reading {column}")
    labels, codes, missing = read_column(Path(path), column, any_bytes=True)
    show(1, f"asking {codes.size:,} people")
    names = np.array(["" if label == MISSING and missing else label for label in labels], dtype=object)
    findings = find_top(
        names[codes], k=k, epsilon=epsilon, longest=longest, threshold=threshold, query_limit=query_limit, rng=rng
    )
    show(2, "done")
    truth: dict[str, float] = {}
    for name, count in zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True):
        if name:
            normal = unicodedata.normalize("NFC", name)
            truth[normal] = truth.get(normal, 0.0) + count / codes.size
    return TopInColumn(findings, truth, codes.size, missing)
