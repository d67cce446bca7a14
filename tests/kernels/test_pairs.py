"""CoCo's hot loop against the plain sum over every report and position."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.hashing import bucket, hash32
from hubbub.kernels import ternary as pairs
from hubbub.kernels.support import BLOCK
from hubbub.kernels.ternary import pair_support
from hubbub.random.source import Random


def brute(seeds, buckets, t, d) -> list[list[int]]:
    own = bucket(hash32(seeds[:, None], np.arange(d)[None, :]), t)
    reported = buckets.astype(np.int64)[:, None]
    return [(own == reported).sum(axis=0).tolist(), (own == reported ^ 1).sum(axis=0).tolist()]


def reports(n: int, t: int) -> tuple[np.ndarray, np.ndarray]:
    rng = Random(seed=n + t)
    return rng.uint64(n), rng.below(t, n).astype(np.uint8 if t <= 256 else np.uint16)


@pytest.mark.parametrize("n", [0, 1, 2, 31, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_counts_around_the_borders_of_blocks(n: int):
    seeds, buckets = reports(n, 6)
    assert pair_support(seeds, buckets, 6, 9).tolist() == brute(seeds, buckets, 6, 9)


@pytest.mark.parametrize("t", [4, 6, 32, 38, 256, 258, 65_534, 65_536])
def test_any_number_of_buckets(t: int):
    seeds, buckets = reports(4_000, t)
    # Half the reports say a bucket of a position, or its neighbour, so that large t have supports too.
    buckets[::2] = bucket(hash32(seeds[::2], np.arange(2_000) % 7), t) ^ np.arange(2_000) // 7 % 2
    assert pair_support(seeds, buckets, t, 7).tolist() == brute(seeds, buckets, t, 7)


@pytest.mark.parametrize("parity", [0, 1])
def test_reports_of_one_kind_only(parity: int):
    seeds, buckets = reports(3_000, 8)
    buckets = buckets // 2 * 2 + parity
    assert pair_support(seeds, buckets, 8, 5).tolist() == brute(seeds, buckets, 8, 5)


def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch):
    seeds, buckets = reports(9_000, 10)
    alone = pair_support(seeds, buckets, 10, 20)
    monkeypatch.setattr(pairs, "SLICE", 1)
    assert pair_support(seeds, buckets, 10, 20).tolist() == alone.tolist()
