"""The error that checks raise, and statistical tests with a stated chance of a false alarm."""

import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from hubbub.core.errors import HubbubError, MissingDependency, needs
from hubbub.core.reports import Array, Floats


class CheckFailed(AssertionError):
    """A mechanism broke its contract."""


def require(condition: object, message: str) -> None:
    """Fail unless the condition holds; unlike `assert`, also under `python -O`."""
    if not condition:
        raise CheckFailed(message)


def require_refusal(action: str, error: type[HubbubError], call: Callable[[], object]) -> None:
    """Fail unless the call raises this kind of error; `action` names the call in the message."""
    try:
        call()
    except error:
        return
    except Exception as other:
        raise CheckFailed(
            f"{action} must be refused with {error.__name__}, not {type(other).__name__}: {other}"
        ) from other
    raise CheckFailed(f"{action} must be refused with {error.__name__}, but was accepted")


@contextmanager
def named_failure(check: str, subject: object) -> Iterator[None]:
    """Turn any error of a check into a failure that names it and what it checked; a missing dependency stays one."""
    try:
        yield
    except MissingDependency:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, CheckFailed) else f"{type(error).__name__}: {error}"
        raise CheckFailed(f"{check} of {reprlib.repr(subject)}: {reason}") from error


FALSE_ALARM = 1e-6
_LEAST_EXPECTED = 20.0  # where chi-square's own tail is right to within a factor


def fit(observed: Array, expected: Array) -> float:
    """The p-value of Pearson's chi-square; the smallest cells are pooled until they hold enough."""
    with needs("analytics"):
        from scipy.stats import chi2

    if observed[expected == 0].any():  # one impossible report is too many
        return 0.0
    order = np.argsort(expected)
    observed, expected = observed[order].astype(float), expected[order].astype(float)
    small = int(np.searchsorted(expected, _LEAST_EXPECTED))
    if small and expected[:small].sum() < _LEAST_EXPECTED:
        small += 1
    if small:
        observed, expected = (np.append(cells[small:], cells[:small].sum()) for cells in (observed, expected))
    if expected.size < 2:
        return 1.0
    return float(chi2.sf(np.sum((observed - expected) ** 2 / expected), expected.size - 1))


def same_counts(first: Array, second: Array) -> float:
    """The p-value that two rows of counts come from one distribution."""
    with needs("analytics"):
        from scipy.stats import chi2

    both = np.stack([first, second]).astype(float)
    both = both[:, both.sum(axis=0) > 0]
    order = np.argsort(-both.sum(axis=0))
    both = both[:, order]
    large = max(1, int(np.sum(both.sum(axis=0) >= 2 * _LEAST_EXPECTED)))
    both = np.hstack([both[:, :large], both[:, large:].sum(axis=1, keepdims=True)])
    both = both[:, both.sum(axis=0) > 0]
    if both.shape[1] < 2:
        return 1.0
    expected = both.sum(axis=1, keepdims=True) * both.sum(axis=0) / both.sum()
    return float(chi2.sf(np.sum((both - expected) ** 2 / expected), both.shape[1] - 1))


def mean_is(samples: Array, mean: Array | float) -> Floats:
    """The p-values of Student's test, a column each, that the rows have that mean."""
    with needs("analytics"):
        from scipy.stats import t

    rows = len(samples)
    off = samples.mean(axis=0) - mean
    error = samples.std(axis=0, ddof=1) / np.sqrt(rows)
    # Columns that never vary must be right to rounding.
    z = np.where(error > 1e-12, np.abs(off) / np.maximum(error, 1e-12), np.where(np.abs(off) < 1e-9, 0.0, np.inf))
    return np.asarray(2 * t.sf(z, rows - 1))


def smallest(p_values: Sequence[float] | Array) -> float:
    """The smallest of several p-values, corrected for their number (Bonferroni)."""
    return min(1.0, float(np.min(p_values)) * len(p_values)) if len(p_values) else 1.0
