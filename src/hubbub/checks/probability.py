"""All possible reports with their exact probabilities, and checks of `prob`, `log_prob` and `ratio`."""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.checks.failure import CheckFailed, require
from hubbub.checks.values import some_values
from hubbub.core.reports import Columns, Reports
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.privacy.enumeration import count_of
from hubbub.random.integers import log_fraction, log_upper
from hubbub.random.source import Random

_ROWS = 32  # public parts tried: values that differ under some of them almost surely differ under one of these
_VALUES = 512
_ENTRIES = 60_000  # about the most exact probabilities that are computed


class OutputTable(NamedTuple):
    """The exact probabilities of every private part (row) given some values (column), with one public part."""

    outputs: Reports
    prob: NDArray[np.object_]


def public_rows(mechanism: Mechanism, count: int, rng: Random) -> list[Columns | None]:
    """The public parts of a number of reports, one row each, without repeats; a single None where reports have none."""
    if not any(column.part == "public" for column in mechanism.columns):
        return [None]
    reports = mechanism.randomize(mechanism.example_values(1) * count, rng)
    distinct = {key: row for row, key in enumerate(row_keys(reports.public, count))}
    return [{name: column[row : row + 1] for name, column in reports.public.items()} for row in distinct.values()]


@lru_cache(maxsize=2)  # several checks in a row look at one mechanism
def enumerate_outputs(mechanism: Mechanism, rng_seed: int) -> tuple[OutputTable, ...]:
    """The outputs with several public parts; nothing where they are too many."""
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


def row_keys(columns: Columns, n: int) -> list[bytes]:
    """Each row's bytes, all columns together: equal rows have equal keys."""
    parts = [np.ascontiguousarray(column).reshape(n, -1).view(np.uint8) for _, column in sorted(columns.items())]
    wide = np.hstack(parts) if parts else np.zeros((n, 0), dtype=np.uint8)
    data, width = wide.tobytes(), wide.shape[1]
    return [data[start : start + width] for start in range(0, n * width, width)] if width else [b""] * n


_RELATIVE = 1e-12


def check_normalised(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Given any value and public part, the probabilities of all private parts add up to 1 exactly."""
    for outputs, prob in enumerate_outputs(mechanism, rng_seed)[:4]:
        mechanism.check(outputs)
        require(len(set(row_keys(outputs.private, len(outputs)))) == len(outputs), "outputs() lists a report twice")
        for column in range(min(prob.shape[1], 16)):
            require(all(isinstance(part, Fraction) for part in prob[:, column]), "prob() must return Fractions")
            total = exact_sum(prob[:, column])
            require(total == 1, f"given value {column}, the probabilities of all outputs add up to {total}, not 1")


def check_log_prob(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """`log_prob` is the logarithm of `prob`, to 12 digits, with one row per report and one column per value."""
    rng = Random(seed=rng_seed)
    reports = mechanism.randomize(some_values(mechanism, 40, rng), rng)
    values = mechanism.example_values(12)
    prob, log_prob = mechanism.prob(reports, values), mechanism.log_prob(reports, values)
    shape = len(reports), len(values)
    require(prob.shape == log_prob.shape == shape, f"shapes {prob.shape} and {log_prob.shape}, not {shape}")
    parts: list[Fraction] = prob.ravel().tolist()
    require(all(0 <= part <= 1 for part in parts), "a probability is not between 0 and 1")
    logarithms = {part: log_fraction(part) for part in set(parts)}
    exact = np.array([logarithms[part] for part in parts]).reshape(shape)
    finite = np.isfinite(exact)
    require(np.array_equal(finite, np.isfinite(log_prob)), "log_prob and prob differ on what is impossible")
    off = np.abs(log_prob[finite] - exact[finite]) / np.maximum(1.0, np.abs(exact[finite]))
    require(off.max(initial=0.0) <= _RELATIVE, f"log_prob is off by {off.max(initial=0.0):.3g}, more than {_RELATIVE}")


def check_effective_epsilon(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """The effective epsilon is the logarithm of `ratio()`, rounded up, and at most the declared one."""
    ratio = mechanism.ratio()
    require(isinstance(ratio, Fraction), f"ratio() is {ratio!r}, not a Fraction")
    require(
        mechanism.effective_epsilon == log_upper(ratio),
        f"effective_epsilon is {mechanism.effective_epsilon!r}, and ln(ratio()) {log_upper(ratio)!r}",
    )
    require(
        mechanism.effective_epsilon <= mechanism.epsilon,
        f"it spends {mechanism.effective_epsilon!r} and declares {mechanism.epsilon!r}",
    )


def check_exact_epsilon(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """No report's probabilities under two values have a larger ratio than `ratio()`, by enumeration."""
    worst, stated = worst_ratio(enumerate_outputs(mechanism, rng_seed)), mechanism.ratio()
    require(worst <= stated, f"a report has the epsilon {log_upper(worst)!r}, and ratio() says {log_upper(stated)!r}")


def check_tight_epsilon(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Over every value and output, `ratio()` is reached, and not only a bound."""
    worst, stated = worst_ratio(enumerate_outputs(mechanism, rng_seed)), mechanism.ratio()
    require(worst >= stated, f"the worst epsilon is {log_upper(worst)!r}, and ratio() says {log_upper(stated)!r}")
