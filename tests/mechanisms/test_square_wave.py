"""Square waves and the hybrid of means: exact, estimated as a plain implementation does."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub import Hybrid, Random, SquareWave
from hubbub.checks.failure import CheckFailed
from hubbub.checks.influence import check_influence
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.numeric.mean import MeanMechanism
from hubbub.mechanisms.numeric.square_wave import unbiased_shares
from hubbub.random.integers import exp_floor
from hubbub.statistics.influence import Influence
from tests.shared.answers import outputs_of, sketched

Floats = NDArray[np.float64]


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.61, 1.0, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("cells", [1, 2, 15, 255, 1023, 4095])
def test_epsilon_is_exact_and_all_but_spent(epsilon: float, cells: int) -> None:
    wave = SquareWave(epsilon=epsilon, cells=cells)
    assert wave.ratio() <= exp_floor(epsilon) * (1 + Fraction(1, 10**50))
    assert wave.effective_epsilon > epsilon * (1 - 1e-6)


def test_the_band_is_the_papers() -> None:
    """b = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)), half of the band as a part of the range (E.1)."""
    for epsilon, half in ((0.5, 0.3580), (1.0, 0.2561), (2.0, 0.1294), (4.0, 0.0304)):
        wave = SquareWave(epsilon=epsilon, cells=1023)
        assert wave.band / 1024 / 2 == pytest.approx(half, abs=0.003)
        assert math.gcd(wave.band, wave.cells) == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cells": 6, "band": 9}, "band"),
        ({"cells": 5000}, "cells"),
        ({"cells": 6, "band": 4, "other": 7}, "other"),
        ({"cells": 6, "band": 4, "other": 4}, "epsilon"),
        ({"low": 1.0, "high": 1.0}, "high"),
        # What floats could not estimate: else the reports of a whole step would be there, and no release.
        ({"epsilon": 1e-8}, "epsilon"),
        ({"low": 0.0, "high": 5e-324}, "high"),
        ({"low": 0.0, "high": 1e-300}, "high"),
        ({"low": 1.0, "high": 1.0 + 2**-52}, "high"),
    ],
)
def test_fields_that_cannot_be_are_refused(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        SquareWave(**({"epsilon": 1.0} | change))
    assert refused.value.field == named


def plain(wave: SquareWave, counts: NDArray[np.int64], smoothing: float, tolerance: float) -> Floats:
    """EM as it stands in a textbook: a matrix, a loop, and the smoothing by a matrix too."""
    n, points = counts.sum(), wave.cells + 1
    matrix = np.exp(wave.log_prob(outputs_of(wave), wave.points))
    smooth = np.eye(points)
    for x in range(points):
        for y in (max(x - 1, 0), min(x + 1, points - 1)):
            smooth[x, x] -= smoothing
            smooth[x, y] += smoothing
    shares, before = np.full(points, 1 / points), -np.inf
    for _ in range(100_000):
        mixed = matrix @ shares
        likelihood = float(counts @ np.log(mixed))
        if abs(likelihood - before) < tolerance:
            break
        before = likelihood
        shares = smooth @ (shares * (matrix.T @ (counts / n / mixed)))
    return np.asarray(shares / shares.sum())


@pytest.mark.parametrize("smooth", [True, False])
def test_it_estimates_as_a_plain_implementation_does(smooth: bool) -> None:
    wave = SquareWave(epsilon=1.0, low=0.0, high=1.0, cells=63)
    sketch = sketched(wave, smooth_crowd(20_000), Random(seed=5))
    ours = wave.likeliest(sketch, smooth=smooth)
    tolerance = 1e-3 if smooth else 1e-3 * math.e
    theirs = plain(wave, sketch.counts, wave.smoothing(sketch.n) if smooth else 0.0, tolerance)
    truth = np.cumsum(wave.truth(smooth_crowd(20_000)))
    distances = [float(np.abs(np.cumsum(shares) - truth).mean()) for shares in (ours, theirs)]
    assert distances[0] == pytest.approx(distances[1], rel=0.1)
    assert np.abs(np.cumsum(ours - theirs)).max() < 0.002


def test_expected_reports_of_ten_billion_tell_the_truth() -> None:
    wave = SquareWave(epsilon=1.0, low=0.0, high=1.0, cells=31)
    truth = wave.truth(spiky_crowd(10_000))
    counts = np.rint(1e10 * (np.exp(wave.log_prob(outputs_of(wave), wave.points)) @ truth)).astype(np.int64)
    estimate = wave.distribution(Sketch(wave.spec_id, int(counts.sum()), counts))
    assert np.abs(estimate.unbiased - truth).max() < 1e-6
    assert np.abs(np.cumsum(estimate.value - truth)).max() < 0.01


def numbers_of_cells(wave: SquareWave, target: Floats, shares: Floats) -> Floats:
    """The number that a report of each cell stands for, if the weights are those of these shares."""
    near, far = wave.rates
    counts = np.eye(wave.cells + wave.band, dtype=np.int64)
    told = [unbiased_shares(row, shares, band=wave.band, near=near, far=far)[0] for row in counts]
    return np.array(told) @ target


@pytest.mark.parametrize(
    "wave",
    [
        SquareWave(epsilon=1.0, low=0.0, high=10.0, cells=15),
        SquareWave(epsilon=2.0, cells=6, band=4),
        SquareWave(epsilon=4.0, cells=31),
        SquareWave(epsilon=0.2, cells=12, band=17),
    ],
    ids=str,
)
def test_forged_reports_say_what_is_stated_and_no_more(wave: SquareWave) -> None:
    """Of the mean and of two shares, whatever the weights: of every single point, which reach both ends, and others."""
    size, cell = wave.cells + 1, (wave.high - wave.low) / (wave.cells + 1)
    borders = np.concatenate([[wave.low], (wave.points[1:] + wave.points[:-1]) / 2, [wave.high]])
    blurred = np.array([1.0, 2 / 3, 1 / 3, *[0.0] * (size - 3)])  # below the second border, and a border to each side
    middle = ((np.arange(size) >= 2) & (np.arange(size) < 5)).astype(np.float64)
    targets: list[tuple[Floats, Influence]] = [
        (wave.points, wave.influence()),
        (middle, wave.share_influence(borders[2], borders[5])),
        (blurred, wave.share_influence(wave.low, borders[2], blur=2 * cell)),
    ]
    for target, stated in targets:
        reached = np.array([numbers_of_cells(wave, target, single) for single in np.eye(size)])
        slack = 1e-9 * float(stated.most - stated.least)
        assert reached.min() == pytest.approx(float(stated.least), rel=0, abs=slack)
        assert reached.max() == pytest.approx(float(stated.most), rel=0, abs=slack)
        for shares in np.random.default_rng(1).dirichlet(np.full(size, 0.1), 5):
            numbers = numbers_of_cells(wave, target, shares)
            assert float(stated.least) - slack <= numbers.min()
            assert numbers.max() <= float(stated.most) + slack


def test_forged_reports_move_shares_no_further() -> None:
    """Ten billion honest reports as expected, one in a hundred forged, all of a cell: of shares as they are told."""
    wave = SquareWave(epsilon=1.0, low=0.0, high=1.0, cells=15)
    chances = np.exp(wave.log_prob(outputs_of(wave), wave.points))
    honest = np.rint(9.9e9 * (chances @ wave.truth(smooth_crowd(1000)))).astype(np.int64)

    def told(counts: NDArray[np.int64]) -> tuple[float, float]:
        estimate = wave.distribution(Sketch(wave.spec_id, int(counts.sum()), counts))
        share = estimate.share(0.0, 0.5, atoms=False)
        assert share.centre is not None
        return float(share.centre[0]), float(estimate.resolution[8])

    truth, _ = told(honest)
    moves = []
    for cell in range(len(honest)):
        moved, blur = told(honest + 10**8 * (np.arange(len(honest)) == cell))
        most = wave.share_influence(0.0, 0.5, blur=blur).shift(0.01, truth)
        assert -most.down - 1e-4 < moved - truth < most.up + 1e-4
        moves.append((moved - truth) / most.largest)
    assert max(np.abs(moves)) > 0.5  # the bound is not far


def smooth_crowd(n: int) -> Floats:
    """Numbers around 0.3, from none to all of the range."""
    even = Random(seed=1).uint64(n, 3) / 2.0**64
    return np.asarray((even * [0.5, 0.3, 0.2]).sum(axis=1) ** 1.5)


def spiky_crowd(n: int) -> Floats:
    """Half at 0.3, a fifth at 0, the others anywhere."""
    even = Random(seed=2).uint64(n, 2) / 2.0**64
    return np.where(even[:, 0] < 0.5, 0.3, np.where(even[:, 0] < 0.7, 0.0, even[:, 1]))


def test_an_end_of_the_range_that_many_have_is_in_the_interval() -> None:
    """A quarter has the lowest number: intervals of the lowest tenth end there, and hold it. Seeded."""
    wave, rng = SquareWave(epsilon=0.5), Random(seed=1)
    values = np.concatenate([np.full(400, -1.0), np.linspace(-1.0, 0.0, 1100)])
    for _ in range(10):
        low, _ = wave.distribution(sketched(wave, values, rng)).quantile(0.1).interval()
        assert low[0] <= -1.0


def all_at_the_top(wave: SquareWave, seed: int) -> Estimate:
    """The mean of a thousand people who all have the highest value."""
    return wave.distribution(sketched(wave, [wave.high] * 1000, Random(seed=seed))).mean()


def test_the_least_epsilon_has_estimates() -> None:
    low, high = all_at_the_top(SquareWave(epsilon=1e-5), 1).interval()
    assert low[0] < 1.0 < high[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_mean_in_the_narrowest_range_is_that_of_a_wide_one(seed: int) -> None:
    """On the scale of the range: a number that is rounded to 2e-16 has seven digits there."""
    low, length = 1.0, 2e-9
    narrow = all_at_the_top(SquareWave(epsilon=1.0, low=low, high=low + length), seed)
    wide = all_at_the_top(SquareWave(epsilon=1.0, low=0.0, high=1.0), seed)
    assert (narrow.value - low) / length == pytest.approx(wide.value, abs=1e-6)
    assert narrow.stderr / length == pytest.approx(wide.stderr, rel=1e-6)


WIDE = Hybrid(epsilon=1.0, low=0.0, high=10.0)
NARROW = Hybrid(epsilon=0.5, low=0.0, high=10.0)


def _report(mechanism: Hybrid, rounded: int, cell: int) -> Reports:
    dtype = mechanism.columns[1].dtype
    return Reports(
        mechanism.spec_id,
        public={"rounded": np.array([rounded], dtype=np.uint8)},
        private={"cell": np.array([cell], dtype=dtype)},
    )


@pytest.mark.parametrize("cell", [2, 255, 256, 257, 512, 42 * 256])
@pytest.mark.parametrize("mechanism", [WIDE, NARROW], ids=["both", "rounding alone"])
def test_a_rounded_report_says_one_end_or_the_other(mechanism, cell):
    # Cut to a byte, a cell of 256 passes for 0: it stood for a number a thousand times the range.
    with pytest.raises(InvalidValue, match="cell"):
        mechanism.accumulate(_report(mechanism, 1, cell))


def test_one_report_among_many_moves_the_mean_by_little():
    honest = WIDE.randomize([4.0] * 10_000, Random(seed=1))
    before = WIDE.estimate(WIDE.accumulate(honest)).value[0]
    for rounded, cell in ((1, 0), (1, 1), (0, 0), (0, WIDE.cells + WIDE.band - 1)):
        after = WIDE.estimate(WIDE.accumulate(Reports.concat([honest, _report(WIDE, rounded, cell)]))).value[0]
        assert abs(after - before) < 3 * 10 / 10_000  # 2.5 people at most


def test_where_the_coin_never_falls_on_piecewise_noise_it_is_refused():
    NARROW.accumulate(_report(NARROW, 1, 1))
    with pytest.raises(InvalidValue, match="rounded"):
        NARROW.accumulate(_report(NARROW, 0, 0))
    WIDE.accumulate(_report(WIDE, 0, 0))


FEW = {"cells": 300, "band": 128}


class CutsToAByte(Hybrid):
    """Checks the cell of a rounded report after cutting it to a byte."""

    def check(self, reports):
        MeanMechanism.check(self, reports)
        cells = reports.private["cell"][reports.public["rounded"] == 1].astype(np.uint8)
        if (cells > 1).any():
            raise InvalidValue("cell", int(cells.max()), "0 or 1")


class TakesAnyCoin(Hybrid):
    """Accepts piecewise reports where the coin never falls on them."""

    def check(self, reports):
        MeanMechanism.check(self, reports)
        ends = reports.private["cell"][reports.public["rounded"] == 1]
        if (ends > 1).any():
            raise InvalidValue("cell", int(ends.max()), "0 or 1")


@pytest.mark.parametrize(
    "mechanism", [CutsToAByte(epsilon=1.0, **FEW), CutsToAByte(epsilon=0.5, **FEW), TakesAnyCoin(epsilon=0.5, **FEW)]
)
def test_the_contract_finds_both(mechanism):
    with pytest.raises(CheckFailed, match="stands for"):
        check_influence(mechanism)
