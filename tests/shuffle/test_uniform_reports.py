"""Fake reports are uniform, whatever people say: a fixed seed, and a planted bug that is found."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import GRR, OLH, OUE, SOLH, Random
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.shuffle.report_numbers import uniform_reports

N = 40_000
NAMES = ["a", "b", "c", "d", "e"]
ORACLES = [GRR(epsilon=3.0, domain=NAMES), OLH(epsilon=3.0, domain=300), SOLH(epsilon=3.0, domain=300, buckets=16)]


def furthest(oracle: FrequencyOracle, reports: Reports) -> float:
    """By how many standard deviations the support of some values is off what uniform reports give each of them."""
    expected = 1 / (oracle.size if isinstance(oracle, GRR) else oracle.buckets)  # type: ignore[attr-defined]
    supports = oracle.accumulate(reports).counts[:5]
    return float(np.abs((supports - N * expected) / np.sqrt(N * expected * (1 - expected))).max())


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: type(oracle).__name__)
def test_every_value_is_supported_as_often_as_chance_says(oracle: FrequencyOracle) -> None:
    """Five values within 4.9 deviations: by chance it fails in one of 200,000 runs. Reports of people are far off."""
    reports = uniform_reports(oracle, N, Random(seed=5))
    assert furthest(oracle, reports) < 4.9
    planted = oracle.randomize(oracle.example_values(1) * N, Random(seed=5))
    assert furthest(oracle, planted) > 4.9
    assert len(uniform_reports(oracle, 0, Random(seed=5))) == 0


def test_other_mechanisms_have_no_uniform_fakes() -> None:
    with pytest.raises(InvalidValue, match="whose fakes are uniform"):
        uniform_reports(OUE(epsilon=1.0, domain=3), 1, Random(seed=1))
