"""The intervals of quantiles and of shares hold at atoms, where a distribution function jumps, and without.

A coverage of .93 is refused once in 10,000 cases; the seeds are fixed.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.protocols.driver import MAIN
from hubbub.protocols.statistic import Spread
from hubbub.statistics.distribution import Distribution
from tests.shared.answers import holds, sketched
from tests.shared.coverage import refused_coverage

Crowd = dict[Any, float]
# The crowds at which the fault was seen, by which the rule was chosen: value to share, and the quantile that is asked.
SEEN: list[tuple[Crowd, float]] = [
    ({0.0: 0.55, 0.3: 0.3, 0.5: 0.15}, 0.5),
    ({0.0: 0.2, 0.3: 0.6, 0.8: 0.2}, 0.25),
    ({0.0: 0.45, 1.0: 0.55}, 0.5),
    ({0.0: 1.0}, 0.9),
    ({1.0: 1.0}, 0.1),
    ({0.0: 0.8, 0.5: 0.2}, 0.75),
]
# Crowds that were not looked at when the rule was chosen. None is the share of people with a smooth value.
OTHERS: list[tuple[Crowd, float]] = [
    ({0.1: 0.35, 0.7: 0.65}, 0.3),
    ({0.62: 1.0}, 0.02),
    ({0.0: 0.3, None: 0.7}, 0.25),
    ({0.25: 0.12, None: 0.88}, 0.4),
    ({1.0: 0.25, None: 0.75}, 0.8),
    ({0.45: 0.5, 0.5: 0.5}, 0.5),
    ({None: 1.0}, 0.1),
    ({None: 1.0}, 0.5),
]


def crowd_of(shares: Crowd, n: int, generator: np.random.Generator) -> Any:
    smooth = generator.beta(2, 4, n)
    values = {None: smooth, "narrow": 0.4 + 0.02 * generator.random(n), "rounded": np.round(20 * smooth) / 20}
    chosen = generator.choice(len(shares), n, p=list(shares.values()))
    return np.choose(chosen, [values[key] if key in values else np.full(n, key) for key in shares])


def quantile_hits(crowd: Crowd, p: float, runs: int, n: int, **options: bool) -> int:
    """How many of the intervals of a quantile held the truth."""
    generator = np.random.default_rng(11)
    mechanism, inside = hb.SquareWave(epsilon=1.0, low=0.0, high=1.0), 0
    for run in range(runs):
        values = crowd_of(crowd, n, generator)
        truth = np.quantile(values, p, method="inverted_cdf")
        estimate = mechanism.distribution(sketched(mechanism, values, hb.Random(seed=run)))
        inside += int(holds(estimate.quantile(p, **options), truth)[0])
    return inside


@pytest.mark.parametrize(("crowd", "p"), [SEEN[0], SEEN[1], SEEN[3], OTHERS[2]])
def test_quantiles_hold_at_atoms(crowd: Crowd, p: float) -> None:
    assert refused_coverage(quantile_hits(crowd, p, 12, 10_000), 12) == ""


def test_without_atoms_a_quantile_at_a_jump_is_missed() -> None:
    """A planted bug: intervals that are not extended by half the resolution."""
    assert "below" in refused_coverage(quantile_hits(SEEN[1][0], SEEN[1][1], 12, 10_000, atoms=False), 12)


@pytest.mark.slow
@pytest.mark.parametrize(("crowd", "p"), [*SEEN, *OTHERS])
def test_quantiles_hold_over_a_grid_of_crowds(crowd: Crowd, p: float) -> None:
    assert refused_coverage(quantile_hits(crowd, p, 1_000, 20_000), 1_000) == ""


# -- shares: ranges, cells of a histogram, points -------------------------------------------------------------------

# The crowds of the quantiles, and others: "narrow" is a value in a fiftieth of the range, "rounded" to twentieths.
CROWDS: list[Any] = list({str(crowd): crowd for crowd, _ in [*SEEN, *OTHERS]}.values())
CROWDS += [{"narrow": 1.0}, {0.25: 0.05, 0.5: 0.05, None: 0.9}, {"rounded": 0.6, None: 0.4}]
SPREAD = Spread(0.0, 1.0, 10)
ENDS = np.linspace(0.0, 1.0, SPREAD.cells + 1)
ANSWERS = ("mean", "cells", "points", "share below", "share from")


@cache
def hits(number: int, runs: int, n: int, atoms: bool = True) -> dict[str, Any]:
    """How many of the intervals of each number of each answer held the truth."""
    generator = np.random.default_rng(number)
    wave = SPREAD.mechanism(10**12)
    inside: dict[str, Any] = dict.fromkeys(ANSWERS, 0)
    for run in range(runs):
        values = crowd_of(CROWDS[number], n, generator)
        sketch = sketched(wave, SPREAD.view(values), hb.Random(seed=run))
        estimate, released = wave.distribution(sketch), SPREAD.answers(wave, sketch)
        cells = np.histogram(values, ENDS)[0] / n
        for name, answer, truth in (
            ("mean", released["Mean"], values.mean()),
            ("cells", released[MAIN] if atoms else estimate.coarser(SPREAD.cells, atoms=False), cells),
            ("points", estimate, wave.truth(values)),
            ("share below", estimate.share(0.0, 0.3, atoms=atoms), (values < 0.3).mean()),
            ("share from", estimate.share(0.3, 1.0, atoms=atoms), (values >= 0.3).mean()),
        ):
            inside[name] = inside[name] + holds(answer, truth)
    return inside


@pytest.mark.parametrize("number", [1, 6, 10, 12])
def test_shares_hold_by_default(number: int) -> None:
    for name, inside in hits(number, 30, 10_000).items():
        assert [refused_coverage(int(each), 30) for each in np.ravel(inside)] == [""] * np.size(inside), name


def test_without_atoms_the_cells_of_a_spiky_crowd_are_missed() -> None:
    """A planted bug: the intervals of the blurred shares."""
    assert "below" in refused_coverage(int(np.min(hits(1, 30, 10_000, atoms=False)["cells"])), 30)


def test_intervals_of_a_smooth_crowd_need_not_allow_for_atoms() -> None:
    smooth, inside = CROWDS.index({None: 1.0}), quantile_hits({None: 1.0}, 0.5, 30, 10_000, atoms=False)
    held = [inside, *(hits(smooth, 30, 10_000, atoms=False)[name] for name in ("share below", "share from"))]
    assert [refused_coverage(int(np.ravel(each)[0]), 30) for each in held] == [""] * 3


@pytest.mark.parametrize("number", [0.0, 0.3, 1.0])
def test_the_share_between_a_number_and_itself_may_be_0(number: float) -> None:
    wave = SPREAD.mechanism(10**12)
    estimate = wave.distribution(sketched(wave, np.linspace(0.2, 0.4, 10_000), hb.Random(seed=1)))
    (low,), (high,) = estimate.share(number, number).interval()
    assert low <= 0.0 <= high < (0.9 if number == 0.3 else 0.3)


def test_noise_leaves_no_interval_of_a_share_without_width() -> None:
    """Nobody is around 0.5; by noise the share above 0.6 is estimated to be larger than that above 0.4."""
    noisy = np.array([0.8, *[0.0] * 9, -0.2, *[0.0] * 8, 0.4])
    borders = np.linspace(0.0, 1.0, 21)
    points = (borders[1:] + borders[:-1]) / 2
    estimate = Distribution.of(
        np.eye(20)[0], noisy, 1e-6 * np.eye(20), 1000, points=points, borders=borders, resolution=0.1
    )
    assert estimate.share(0.5, 1.0).stderr[0] >= estimate.share(0.6, 1.0, atoms=False).stderr[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("number", range(len(CROWDS)))
def test_shares_hold_over_a_grid_of_crowds(number: int, name: str) -> None:
    """1,000 runs a crowd; the mean may not be above .97 either."""
    inside = np.ravel(hits(number, 1_000, 20_000)[name])
    most = 0.97 if name == "mean" else 1.0
    assert [refused_coverage(int(each), 1_000, most=most) for each in inside] == [""] * len(inside)
