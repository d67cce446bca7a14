"""The error of oracles with few hash functions: values that collide too often are confused, however many reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.core.estimate import Estimate


def add_confusion(estimate: Estimate, *, confusion: float, total: float, size: int) -> Estimate:
    """The estimate with the mean square of that error added to its variances.

    For a value i it is `confusion` times the sum of the squares of all other values. The squares of the estimated
    values are estimated from them. Values that are not listed have what is left of `total`, and the sum of their
    squares is largest where one of them has it all.

    Parameters
    ----------
    estimate
        Shares with their `noise`, or totals of weights without one.
    confusion
        `SupportMechanism.confusion` of the oracle.
    total, size
        The sum over all values and their number, those included that are not listed.
    """
    known = float((estimate.value if estimate.noise is not None else np.abs(estimate.value)).sum())
    rest = 0.0 if len(estimate) == size else max(0.0, total - known)
    squares = float((estimate.value**2 - estimate.variance).sum()) + rest**2
    squares = min(max(squares, total**2 / size), total**2)
    if estimate.noise is None:
        added = confusion * np.maximum(squares - estimate.value**2, 0.0)
        return replace(estimate, variance=estimate.variance + added)
    noise = replace(estimate.noise, floor=estimate.noise.floor + confusion * squares, square=-confusion)
    return replace(estimate, variance=np.maximum(noise.variance(estimate.value), 0.0), noise=noise)
