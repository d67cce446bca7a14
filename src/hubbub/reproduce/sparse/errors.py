"""How far the answers of one collection are from the truth: the two papers' metrics, as they are and made possible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.signs import capped_signs, clip_means
from hubbub.core.random import Random
from hubbub.core.ternary import Ternary
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.simulate.collect import collect

Floats = NDArray[np.float64]


class Errors(NamedTuple):
    """Of means and of the frequencies of signs: the total variation error, the largest error, the squared error.

    TVE is the sum of the absolute errors and MAE the largest of them, over d positions for means and over 2 d signs for
    frequencies. Those that end in `_possible` are made possible first: projected onto the capped simplex, or, where a
    mechanism tells no frequencies, cut at -1 and 1. Squared errors are sums, of the answers as they are. What a
    mechanism does not tell is NaN.
    """

    mean_tve: float
    mean_mae: float
    mean_tve_possible: float
    mean_mae_possible: float
    mean_squared: float
    sign_tve: float = np.nan
    sign_mae: float = np.nan
    sign_tve_possible: float = np.nan
    sign_mae_possible: float = np.nan
    sign_squared: float = np.nan
    frequency_squared: float = np.nan


def errors(mean: Floats, frequency: Floats | None, possible: tuple[Floats, Floats | None], people: Ternary) -> Errors:
    """The errors of means, and of frequencies where there are any, and of both made possible.

    Example:
        >>> people = Ternary.dense([[1, 0], [1, -1]])
        >>> exact = people.means(), people.frequencies()
        >>> off = errors(exact[0] + 0.25, exact[1] - 0.25, exact, people)
        >>> off.mean_tve, off.mean_tve_possible, off.sign_tve, off.sign_mae, off.mean_squared
        (0.5, 0.0, 0.5, 0.25, 0.125)
    """
    truth, held = people.means(), people.frequencies()
    better, shares = possible
    off, close = mean - truth, better - truth
    tve, mae = _sizes(off)
    measured = Errors(tve, mae, *_sizes(close), float((off**2).sum()))
    if frequency is None or shares is None:
        return measured
    signs, near = _signs(off, frequency - held), _signs(close, shares - held)
    tve, mae = _sizes(signs)
    tve_possible, mae_possible = _sizes(near)
    return measured._replace(
        sign_tve=tve,
        sign_mae=mae,
        sign_tve_possible=tve_possible,
        sign_mae_possible=mae_possible,
        sign_squared=float((signs**2).sum()),
        frequency_squared=float(((frequency - held) ** 2).sum()),
    )


def measure(mechanism: TernaryMechanism, people: Ternary, rng: Random, *, exactly: bool = True) -> Errors:
    """Collect from these people and measure the errors.

    Parameters
    ----------
    mechanism, people, rng
        Who reports what.
    exactly
        Whether everyone is known to hold `sparsity` entries, or at most as many.

    Example:
        >>> from hubbub import Collision
        >>> from hubbub.data import sparse_vectors
        >>> rng = Random(seed=1)
        >>> off = measure(Collision(epsilon=2.0, dimension=16, sparsity=2), sparse_vectors(5000, 16, 2, rng), rng)
        >>> off.mean_mae_possible <= off.mean_mae < 0.3
        True
    """
    sketch = collect(mechanism, people, rng)
    mean = mechanism.estimate(sketch)
    if "frequency" not in mechanism.answers:
        return errors(mean.value, None, (clip_means(mean).value, None), people)
    frequency = mechanism.estimate(sketch, of="frequency")
    better, shares = capped_signs(mean, frequency, mechanism.sparsity, exactly=exactly)
    return errors(mean.value, frequency.value, (better.value, shares.value), people)


def _signs(mean: Floats, frequency: Floats) -> Floats:
    """The shares of +1 and of -1 behind means and frequencies, or the errors of one behind those of the other."""
    return np.concatenate([frequency + mean, frequency - mean]) / 2


def _sizes(off: Floats) -> tuple[float, float]:
    return float(np.abs(off).sum()), float(np.abs(off).max())
