"""Forged reports move an estimate in a simulation as far as the formula says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub import GRR, OLH, OUE, Random
from hubbub.core.hashing import bucket, hash32
from hubbub.core.reports import Reports
from hubbub.statistics.influence import forged_part

TARGET = 100
HONEST, FORGED = 99_000, 1_000


def _forged_reports(oracle, rng):
    """What gives the target most: itself, all bits set, or its bucket under any seed."""
    if isinstance(oracle, GRR):
        return Reports(oracle.spec_id, private={"value": np.full(FORGED, TARGET, dtype=np.uint8)})
    if isinstance(oracle, OUE):
        return Reports(oracle.spec_id, private={"bits": np.full((FORGED, 16), 255, dtype=np.uint8)})
    seed = rng.uint64(FORGED)
    own = bucket(hash32(seed, np.uint64(TARGET)), oracle.buckets).astype(np.uint8)
    return Reports(oracle.spec_id, public={"seed": seed}, private={"bucket": own})


@pytest.mark.parametrize(("kind", "estimated"), [(OLH, 0.037), (OUE, 0.024), (GRR, 0.74)])
def test_one_percent_forged_at_128_values_and_epsilon_1(kind, estimated):
    # Failure probability: 5.5 standard errors, 4e-8 each. `seen` was measured once, noise included, by others: the
    # formula is the mean of what such attacks show, and cannot be exceeded but by noise.
    oracle, rng = kind(epsilon=1.0, domain=128), Random(seed=9)
    honest = oracle.randomize(rng.below(64, HONEST), rng)  # nobody holds the target
    forged = _forged_reports(oracle, rng)
    without = oracle.estimate(oracle.accumulate(honest))
    poisoned = oracle.estimate(oracle.accumulate(Reports.concat([honest, forged])))
    part, most = forged_part(FORGED, HONEST), float(oracle.influence().most)
    stated = oracle.influence().shift(part, truth=0.0).up
    noise = math.sqrt(oracle.variance(HONEST))
    assert poisoned.value[TARGET] == pytest.approx(stated, abs=5.5 * noise)
    assert estimated == pytest.approx(stated, abs=3 * noise)
    # Given the honest reports there is no noise in it: exactly m/(n+m) of the distance.
    moved = poisoned.value[TARGET] - without.value[TARGET]
    assert moved == pytest.approx(float(part) * (most - without.value[TARGET]), rel=1e-9)


def test_honest_lies_move_a_share_by_their_own_part_alone():
    # 1% who lie about their value, and else follow the protocol, count for themselves: 1% of the share, plus noise.
    oracle, rng = GRR(epsilon=1.0, domain=128), Random(seed=10)
    liars = oracle.randomize(np.full(FORGED, TARGET), rng)
    honest = oracle.randomize(rng.below(64, HONEST), rng)
    share = oracle.estimate(oracle.accumulate(Reports.concat([honest, liars]))).value[TARGET]
    assert share == pytest.approx(0.01, abs=5.5 * math.sqrt(oracle.variance(HONEST)))  # failure probability 4e-8
