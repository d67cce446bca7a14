"""The hot loops of local hashing and of CoCo against plain sums over every report and candidate, or position."""

import numpy as np
import pytest

from hubbub.core.hashing import bucket, fingerprint, hash32
from hubbub.kernels import support, ternary
from hubbub.kernels.support import BLOCK, hash_sums, hash_support
from hubbub.kernels.ternary import pair_support
from hubbub.random.source import Random

PLAIN = np.array([0, 1, 2, 3, 255, 65_536, (1 << 32) - 1], dtype=np.uint64)
WIDE = np.array([fingerprint(word) for word in ("hello", "hallo", "")] + [1 << 32, (1 << 64) - 1], dtype=np.uint64)
MIXED = np.concatenate([PLAIN[:3], WIDE, PLAIN[3:]])


def brute(seeds, buckets, g, candidates, weights=None) -> list[int]:
    held = bucket(hash32(seeds[:, None], candidates[None, :]), g) == buckets[:, None]
    weights = np.ones(len(seeds), dtype=np.int64) if weights is None else weights
    return (held * weights[:, None]).sum(axis=0).tolist()


def reports(n: int, g: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = Random(seed=seed)
    return rng.uint64(n), rng.below(g, n).astype(np.uint8 if g <= 256 else np.uint16)


SIZES = [0, 1, 2, 31, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 7]


@pytest.mark.parametrize("n", SIZES)
def test_counts_around_the_borders_of_blocks(n: int):
    seeds, buckets = reports(n, 4)
    assert hash_support(seeds, buckets, 4, MIXED).tolist() == brute(seeds, buckets, 4, MIXED)


@pytest.mark.parametrize("n", SIZES)
def test_weights_around_the_borders_of_blocks(n: int):
    """Weights of one digit and of several, below 0 and not, and as large as squares that 64 bits hold."""
    seeds, buckets = reports(n, 4)
    draws = Random(seed=2)
    wide = draws.below(5, n) + (1 << 51)
    wide[:1] = -(1 << 62)
    rows = [draws.below(1 << 22, n), draws.below(1 << 24, n) - (1 << 23), np.zeros(n, dtype=np.int64)]
    for weights in (*rows, draws.below(1 << 40, n) - (1 << 39), wide):
        wanted = [[*brute(seeds, buckets, 4, MIXED, weights), weights.sum()]]
        assert hash_sums(seeds, buckets, 4, MIXED, weights).tolist() == wanted
    for weights in rows:
        powers = [weights, weights**2]
        wanted = [[*brute(seeds, buckets, 4, MIXED, row), row.sum()] for row in powers]
        assert hash_sums(seeds, buckets, 4, MIXED, weights, powers=2).tolist() == wanted


@pytest.mark.parametrize("g", [2, 3, 4, 7, 8, 56, 255, 256, 257, 65_535, 65_536])
def test_any_number_of_buckets(g: int):
    seeds, buckets = reports(4_000, g)
    # Half the reports say the bucket of a candidate, so that large g have supports too.
    buckets[::2] = bucket(hash32(seeds[::2], MIXED[np.arange(2_000) % MIXED.size]), g)
    assert hash_support(seeds, buckets, g, MIXED).tolist() == brute(seeds, buckets, g, MIXED)


@pytest.mark.parametrize("candidates", [PLAIN, WIDE, MIXED, MIXED[:0]], ids=["plain", "wide", "mixed", "none"])
def test_any_candidates(candidates: np.ndarray):
    seeds, buckets = reports(500, 3)
    assert hash_support(seeds, buckets, 3, candidates).tolist() == brute(seeds, buckets, 3, candidates)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch, weighted: bool):
    seeds, buckets = reports(9_001, 8)
    weights = Random(seed=2).below(1000, 9_001) if weighted else np.ones(9_001, dtype=np.int64)

    def counted() -> list[int]:
        if weighted:
            return hash_sums(seeds, buckets, 8, MIXED, weights)[0, :-1].tolist()
        return hash_support(seeds, buckets, 8, MIXED).tolist()

    alone = counted()
    monkeypatch.setattr(support, "SLICE", 1)
    assert counted() == alone == brute(seeds, buckets, 8, MIXED, weights)


def test_strided_and_read_only_input():
    seeds, buckets = reports(1_000, 4)
    seeds.flags.writeable = False
    wanted = brute(seeds[::3], buckets[::3], 4, MIXED[::2])
    assert hash_support(seeds[::3], buckets[::3], 4, MIXED[::2]).tolist() == wanted


def test_one_bucket_off_would_be_seen():
    seeds, buckets = reports(500, 4)
    assert hash_support(seeds, (buckets + 1) % 4, 4, MIXED).tolist() != brute(seeds, buckets, 4, MIXED)


# -- CoCo's pairs of buckets ----------------------------------------------------------------------------------------


def brute_pairs(seeds, buckets, t, d) -> list[list[int]]:
    own = bucket(hash32(seeds[:, None], np.arange(d)[None, :]), t)
    reported = buckets.astype(np.int64)[:, None]
    return [(own == reported).sum(axis=0).tolist(), (own == reported ^ 1).sum(axis=0).tolist()]


@pytest.mark.parametrize("n", SIZES)
def test_pairs_around_the_borders_of_blocks(n: int):
    seeds, buckets = reports(n, 6)
    assert pair_support(seeds, buckets, 6, 9).tolist() == brute_pairs(seeds, buckets, 6, 9)


@pytest.mark.parametrize("t", [4, 6, 32, 38, 256, 258, 65_534, 65_536])
def test_pairs_of_any_number_of_buckets(t: int):
    seeds, buckets = reports(4_000, t)
    # Half the reports say a bucket of a position, or its neighbour, so that large t have supports too.
    buckets[::2] = bucket(hash32(seeds[::2], np.arange(2_000) % 7), t) ^ np.arange(2_000) // 7 % 2
    assert pair_support(seeds, buckets, t, 7).tolist() == brute_pairs(seeds, buckets, t, 7)


@pytest.mark.parametrize("parity", [0, 1])
def test_pairs_of_one_kind_only(parity: int):
    seeds, buckets = reports(3_000, 8)
    buckets = buckets // 2 * 2 + parity
    assert pair_support(seeds, buckets, 8, 5).tolist() == brute_pairs(seeds, buckets, 8, 5)


def test_threads_give_the_same_pairs(monkeypatch: pytest.MonkeyPatch):
    seeds, buckets = reports(9_000, 10)
    alone = pair_support(seeds, buckets, 10, 20)
    monkeypatch.setattr(ternary, "SLICE", 1)
    assert pair_support(seeds, buckets, 10, 20).tolist() == alone.tolist()
