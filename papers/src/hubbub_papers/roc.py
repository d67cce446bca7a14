"""ROC curves: how well released values detect the steps whose true value is above a threshold."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue

Floats = NDArray[np.float64]


def event_threshold(truth: ArrayLike) -> float:
    """The threshold three quarters of the way from least to largest truth (Ren et al., 2022, section 7.2.2)."""
    numbers = np.asarray(truth, dtype=np.float64)
    return float(0.75 * (numbers.max() - numbers.min()) + numbers.min())


def roc(values: ArrayLike, truth: ArrayLike, threshold: float) -> tuple[Floats, Floats]:
    """The false and the true positive rates, for every threshold on the released values.

    A step is an event if its truth is above `threshold`. It is detected if its released value reaches a threshold that
    falls from above all values to the smallest: the rates rise from 0 to 1. Steps of equal value are detected together.

    There must be events and other steps.
    """
    scores, numbers = np.asarray(values, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != numbers.shape:
        raise InvalidValue("values", scores.shape, f"a number for each step, as the truth has: {numbers.shape}")
    if not (np.isfinite(scores).all() and np.isfinite(numbers).all()):
        raise InvalidValue("values", "NaN or infinite", "finite numbers")
    event = numbers > threshold
    if event.all() or not event.any():
        raise InvalidValue("threshold", threshold, "a number below some truths and not below others")
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # of each run of equal values
    true, false = (np.concatenate([[0], np.cumsum(hit[order])[last]]) for hit in (event, ~event))
    return false / false[-1], true / true[-1]


def auc(false: ArrayLike, true: ArrayLike) -> float:
    """The area under the curve: the probability that an event has a larger value than another step; ties count half."""
    return float(np.trapezoid(np.asarray(true, dtype=np.float64), np.asarray(false, dtype=np.float64)))
