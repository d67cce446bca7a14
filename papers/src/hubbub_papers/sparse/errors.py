"""The errors of the answers of one collection, by the metrics of two papers, with and without post-processing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.signs import capped_signs, clip_means
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect

Floats = NDArray[np.float64]


class Errors(NamedTuple):
    """The errors of means and of the frequencies of signs: total variation, maximum, squared.

    TVE is the sum of the absolute errors and MAE the largest of them, over d positions for means and over 2 d signs for
    frequencies. Fields that end in `_possible` are errors after post-processing: answers are projected onto the capped
    simplex, or, if a mechanism estimates no frequencies, clipped to -1 to 1. Squared errors are sums, without
    post-processing. Errors of what a mechanism does not estimate are NaN.
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
    """The errors of estimated means and frequencies (if there are any), and of both after post-processing."""
    true_mean, true_frequency = people.means(), people.frequencies()
    possible_mean, possible_frequency = possible
    raw, processed = mean - true_mean, possible_mean - true_mean
    of_means = Errors(*_tve_and_mae(raw), *_tve_and_mae(processed), float((raw**2).sum()))
    if frequency is None or possible_frequency is None:
        return of_means
    raw_signs = _signs(raw, frequency - true_frequency)
    processed_signs = _signs(processed, possible_frequency - true_frequency)
    tve, mae = _tve_and_mae(raw_signs)
    tve_possible, mae_possible = _tve_and_mae(processed_signs)
    return of_means._replace(
        sign_tve=tve,
        sign_mae=mae,
        sign_tve_possible=tve_possible,
        sign_mae_possible=mae_possible,
        sign_squared=float((raw_signs**2).sum()),
        frequency_squared=float(((frequency - true_frequency) ** 2).sum()),
    )


def measure(mechanism: TernaryMechanism, people: Ternary, rng: Random, *, exactly: bool = True) -> Errors:
    """Collect from these people and measure the errors.

    Parameters
    ----------
    mechanism, people, rng
        The mechanism, the vectors of the people, and the randomness.
    exactly
        Whether it is known that everyone holds exactly `sparsity` entries, or only at most as many.
    """
    sketch = collect(mechanism, people, rng)
    mean = mechanism.estimate(sketch)
    if "frequency" not in mechanism.answers:
        return errors(mean.value, None, (clip_means(mean).value, None), people)
    frequency = mechanism.estimate(sketch, of="frequency")
    possible = capped_signs(mean, frequency, mechanism.sparsity, exactly=exactly)
    return errors(mean.value, frequency.value, (possible[0].value, possible[1].value), people)


def _signs(mean: Floats, frequency: Floats) -> Floats:
    """The shares of +1 and of -1 from means and frequencies; likewise their errors."""
    return np.concatenate([frequency + mean, frequency - mean]) / 2


def _tve_and_mae(differences: Floats) -> tuple[float, float]:
    return float(np.abs(differences).sum()), float(np.abs(differences).max())
