"""The intervals of quantiles hold at atoms: where the distribution function jumps over the quantile's share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hubbub as hb
from tests.shared.coverage import refused_coverage

# The crowds at which the fault was seen, by which the rule was chosen: value to share, and the quantile that is asked.
SEEN: list[tuple[dict[float, float], float]] = [
    ({0.0: 0.55, 0.3: 0.3, 0.5: 0.15}, 0.5),
    ({0.0: 0.2, 0.3: 0.6, 0.8: 0.2}, 0.25),
    ({0.0: 0.45, 1.0: 0.55}, 0.5),
    ({0.0: 1.0}, 0.9),
    ({1.0: 1.0}, 0.1),
    ({0.0: 0.8, 0.5: 0.2}, 0.75),
]
# Crowds that were not looked at when the rule was chosen. None is the share of people with a smooth value.
OTHERS: list[tuple[dict[float | None, float], float]] = [
    ({0.1: 0.35, 0.7: 0.65}, 0.3),
    ({0.62: 1.0}, 0.02),
    ({0.0: 0.3, None: 0.7}, 0.25),
    ({0.25: 0.12, None: 0.88}, 0.4),
    ({1.0: 0.25, None: 0.75}, 0.8),
    ({0.45: 0.5, 0.5: 0.5}, 0.5),
    ({None: 1.0}, 0.1),
    ({None: 1.0}, 0.5),
]
EVERY: list[Any] = [*SEEN, *OTHERS]


def hits(crowd: dict[float | None, float], p: float, runs: int, n: int, **options: bool) -> int:
    """How many of the intervals of a quantile held the truth."""
    generator = np.random.default_rng(11)
    mechanism, inside = hb.SquareWave(epsilon=1.0, low=0.0, high=1.0), 0
    for run in range(runs):
        chosen = generator.choice(len(crowd), n, p=list(crowd.values()))
        values = np.array([np.nan if value is None else value for value in crowd])[chosen]
        values = np.where(np.isnan(values), generator.beta(2, 4, n), values)
        truth = np.quantile(values, p, method="inverted_cdf")
        estimate = mechanism.estimate(mechanism.accumulate(mechanism.randomize(values, hb.Random(seed=run))))
        (low,), (high,) = estimate.quantile(p, **options).interval()
        inside += int(low <= truth <= high)
    return inside


@pytest.mark.parametrize(("crowd", "p"), [SEEN[0], SEEN[1], SEEN[3], OTHERS[2]])
def test_quantiles_hold_at_atoms(crowd: dict[float | None, float], p: float) -> None:
    """A coverage of .93 is refused once in 10,000 cases; the seeds are fixed."""
    assert refused_coverage(hits(crowd, p, 12, 10_000), 12) == ""


def test_without_atoms_a_quantile_at_a_jump_is_missed() -> None:
    """A planted bug: intervals that are not extended by half the resolution."""
    assert "below" in refused_coverage(hits(SEEN[1][0], SEEN[1][1], 12, 10_000, atoms=False), 12)


@pytest.mark.slow
@pytest.mark.parametrize(("crowd", "p"), EVERY)
def test_quantiles_hold_over_a_grid_of_crowds(crowd: dict[float | None, float], p: float) -> None:
    """1,000 runs a crowd. A coverage of .93 is refused once in 10,000 cases."""
    assert refused_coverage(hits(crowd, p, 1_000, 20_000), 1_000) == ""
