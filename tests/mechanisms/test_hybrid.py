"""The hybrid mechanism refuses what no client sends: a report of it could stand for any number."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import Hybrid, Random
from hubbub.checks.failure import CheckFailed
from hubbub.checks.influence import check_influence
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.numeric.mean import MeanMechanism

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
