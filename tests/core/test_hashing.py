"""The hash that client and server share, in any language. Run this file to write its vectors anew."""

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from hubbub.core.hashing import bucket, fingerprint, hash32, mix32, spread_seeds, value_words
from hubbub.random.source import Random

VECTORS = Path(__file__).parents[1] / "vectors" / "hash32.json"
MASK = 0xFFFFFFFF


def slow_mix(low_seed: int, high_seed: int, word: int) -> int:
    x = low_seed ^ (word * 0x9E3779B9 & MASK)
    x = ((x ^ x >> 16) * 0x21F0AAAD + high_seed) & MASK
    x = (x ^ x >> 15) * 0xD35A2D97 & MASK
    return x ^ x >> 15


def slow_mix32(seed: int, value: int) -> int:
    """The definition of `mix32`, in whole numbers: one pass, or two where the value has an upper word."""
    low, high = seed & MASK, seed >> 32
    if value >> 32:
        low = slow_mix(low, high, value >> 32)
    return slow_mix(low, high, value & MASK)


def slow_words(value: int) -> tuple[int, int]:
    """What the hash makes of a value alone, in whole numbers."""
    upper = slow_mix(0, 0, value >> 32)
    first = slow_mix(0, 0, (value & MASK) ^ upper)
    return first, ((first << 16 | first >> 16) + upper) & MASK


def slow_hash(seed: int, value: int) -> int:
    """The definition of the hash, in whole numbers."""
    first, second = slow_words(value)
    return (seed + first) * ((seed >> 32) + second) & MASK


def slow_fingerprint(text: str) -> int:
    digest = hashlib.sha256(unicodedata.normalize("NFC", text).encode("utf-8")).digest()
    return sum(byte << 8 * place for place, byte in enumerate(digest[:8])) | 1 << 32


SEEDS = [0, 1, 2, MASK, 1 << 32, (1 << 32) + 1, 0x0123456789ABCDEF, 0xFEDCBA9876543210, (1 << 63) + 5, (1 << 64) - 1]
VALUES = [0, 1, 2, 255, 65_536, 0x7FFFFFFF, MASK, 1 << 32, (1 << 32) + 1, 1 << 63, 0xDEADBEEFCAFEF00D, (1 << 64) - 1]
TEXTS = ["", "a", "hello", "caf\u00e9", "cafe\u0301", "\U0001f389", "\U0001f469\u200d\U0001f4bb"]
TEXTS += ["na\u00efve \u20ac 10", "x" * 300]


def vectors() -> dict[str, Any]:
    """What every implementation must agree on; 64-bit numbers are decimal strings."""
    pairs = list(product(SEEDS, VALUES))
    tables = {
        name: [{"seed": str(seed), "value": str(value), "hash": function(seed, value)} for seed, value in pairs]
        for name, function in (("mix32", slow_mix32), ("hash32", slow_hash))
    }
    return {
        **tables,
        "bucket": [
            {"hash": h, "buckets": g, "bucket": h * g >> 32}
            for h in [0, MASK, *(slow_hash(*pair) for pair in pairs[:6])]
            for g in (2, 3, 4, 56, 65_536)
        ],
        "fingerprint": [{"text": text, "fingerprint": str(slow_fingerprint(text))} for text in TEXTS],
    }


def test_the_vectors_are_those_of_the_definition():
    assert json.loads(VECTORS.read_text(encoding="utf-8")) == vectors()


def test_the_library_agrees_with_the_vectors():
    stored = json.loads(VECTORS.read_text(encoding="utf-8"))
    for name, function in {"hash32": hash32, "mix32": mix32}.items():
        for case in stored[name]:
            assert int(function(np.uint64(case["seed"]), np.uint64(case["value"]))) == case["hash"]
    for case in stored["bucket"]:
        assert bucket(np.array([case["hash"]], dtype=np.uint32), case["buckets"]).tolist() == [case["bucket"]]
    for case in stored["fingerprint"]:
        assert str(fingerprint(case["text"])) == case["fingerprint"]


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_the_library_agrees_with_the_definition(seed: int, value: int):
    assert int(mix32(np.uint64(seed), np.uint64(value))) == slow_mix32(seed, value)
    assert int(hash32(np.uint64(seed), np.uint64(value))) == slow_hash(seed, value)


def test_seeds_and_values_broadcast():
    seeds, values = np.array(SEEDS, dtype=np.uint64), np.array(VALUES, dtype=np.uint64)
    table = hash32(seeds[:, None], values[None, :])
    assert table.shape == (len(SEEDS), len(VALUES))
    assert table.tolist() == [[slow_hash(seed, value) for value in VALUES] for seed in SEEDS]


@given(st.integers(0, MASK), st.integers(2, 1 << 16))
def test_buckets_are_intervals(value: int, buckets: int):
    assert bucket(np.array([value], dtype=np.uint32), buckets).tolist() == [value * buckets >> 32]


def test_fingerprints_are_wide_and_normalised():
    assert fingerprint("caf\u00e9") == fingerprint("cafe\u0301") != fingerprint("cafe")
    assert all(1 << 32 <= fingerprint(text) < 1 << 64 for text in TEXTS)


# -- over random seeds, two values fall together once in g --------------------------------------------------------

WIDE = slow_fingerprint("hello")
PAIRS = {
    "adjacent": (0, 1),
    "adjacent, odd": (1, 2),
    "adjacent, far": (1_000_000, 1_000_001),
    "a bit apart": (5, 5 + (1 << 31)),
    "across a byte": (255, 256),
    "words": (WIDE, slow_fingerprint("hallo")),
    "upper word only": (WIDE, WIDE ^ 1 << 40),
    "upper word by one": ((7 << 32) + 3, (8 << 32) + 3),
    "lower word only": (WIDE, WIDE ^ 1 << 3),
    "wide and plain": ((1 << 32) + 3, 3),
}
SEED_SAMPLE = 120_000


def collisions(hashes: Sequence[np.ndarray], buckets: int) -> float:
    """How many standard deviations the number of collisions is from its mean."""
    in_both = int((bucket(hashes[0], buckets) == bucket(hashes[1], buckets)).sum())
    n = hashes[0].size
    return (in_both - n / buckets) / np.sqrt(n / buckets * (1 - 1 / buckets))


@pytest.mark.parametrize("pair", PAIRS)
def test_two_values_fall_together_once_in_g(pair: str):
    # 10 pairs, 5 numbers of buckets: each beyond 5.5 deviations with probability 4e-8, all of them 2e-6.
    seeds = Random(seed=11).uint64(SEED_SAMPLE)
    hashes = [hash32(seeds, np.uint64(value)) for value in PAIRS[pair]]
    for buckets in (2, 3, 4, 8, 56):
        assert abs(collisions(hashes, buckets)) < 5.5


@pytest.mark.parametrize("pair", PAIRS)
def test_the_buckets_of_two_values_are_independent(pair: str):
    # All g^2 pairs of buckets, chi-square: 30 tests with failure probability 1e-7 each.
    seeds = Random(seed=12).uint64(SEED_SAMPLE)
    first, second = (hash32(seeds, np.uint64(value)) for value in PAIRS[pair])
    for buckets in (2, 4, 8):
        cells = bucket(first, buckets) * buckets + bucket(second, buckets)
        assert chisquare(np.bincount(cells, minlength=buckets**2)).pvalue > 1e-7


FAR = {
    "bit 26": (1206944688, 1139835824),
    "bit 30": (2177841073, 3251582897),
    "bit 30, other": (2231451661, 3305193485),
    "bit 28": (1011535481, 743100025),
    "the last": (0, MASK),
    "halves swapped": (1 << 16, 1),
    "both halves by bit 15": (0, (1 << 31) | (1 << 15)),
}
TOGETHER = [(0, 1, 2), (0, 2, 4), (10, 20, 30), (0, 1 << 16, 1 << 17), (1 << 30, 1 << 31, 0), (1, 2, 4)]


@pytest.mark.parametrize("pair", FAR)
def test_the_hash_is_even_where_mix32_is_not(pair: str):
    # 7 pairs, 2 numbers of buckets, 400,000 seeds: each beyond 5.5 deviations with probability 4e-8.
    seeds = Random(seed=13).uint64(400_000)
    hashes = [hash32(seeds, np.uint64(value)) for value in FAR[pair]]
    for buckets in (56, 404):
        assert abs(collisions(hashes, buckets)) < 5.5


def test_mix32_is_not_universal():
    """Why it is no hash for reports: these two meet 79% too often in 404 buckets, and these 39% too rarely."""
    seeds = Random(seed=13).uint64(400_000)
    for pair, sign in (("bit 26", 1), ("bit 30", -1)):
        assert sign * collisions([mix32(seeds, np.uint64(value)) for value in FAR[pair]], 404) > 5.5


@pytest.mark.parametrize("three", TOGETHER, ids=str)
def test_three_values_fall_together_once_in_g_squared(three: tuple[int, int, int]):
    # Sums of estimates need it. 6 triples, 3 numbers of buckets: each beyond 5.5 deviations with probability 4e-8.
    seeds = Random(seed=14).uint64(400_000)
    for buckets in (2, 3, 8):
        first, second, third = (bucket(hash32(seeds, np.uint64(value)), buckets) for value in three)
        meet = int(((first == second) & (second == third)).sum())
        chance = 1 / buckets**2
        assert abs(meet - seeds.size * chance) < 5.5 * np.sqrt(seeds.size * chance * (1 - chance))


def test_no_two_values_have_the_same_words():
    some = np.arange(1 << 16, dtype=np.uint64) << np.uint64(16)
    values = np.unique(np.concatenate([some, Random(seed=1).uint64(10_000)]))
    first, second = value_words(values)
    assert np.unique(first.astype(np.uint64) << np.uint64(32) | second).size == values.size
    # Of plain codes, one of the two words tells them apart by its last 16 bits.
    plain = np.arange(1 << 20, dtype=np.uint64)
    first, second = value_words(plain)
    ends = (first & np.uint32(0xFFFF)).astype(np.uint64) << np.uint64(16) | second & np.uint32(0xFFFF)
    assert np.unique(ends).size == 1 << 20


def test_functions_of_a_list_are_spread():
    seeds = spread_seeds(np.arange(4096, dtype=np.uint64))
    hashes = hash32(seeds[:, None], np.arange(64, dtype=np.uint64))
    meet = (bucket(hashes[:, :1], 8) == bucket(hashes[:, 1:], 8)).mean()
    assert abs(meet - 1 / 8) < 5.5 * np.sqrt(1 / 8 * 7 / 8 / (4096 * 63))


def test_a_poor_hash_would_be_seen():
    # xor with the seed keeps adjacent values apart or together for good.
    seeds = Random(seed=11).uint64(SEED_SAMPLE)
    hashes = [(seeds ^ np.uint64(value)).astype(np.uint32) for value in (0, 1)]
    assert abs(collisions(hashes, 2)) > 5.5
    # One pass over wide values would forget the upper word.
    hashes = [hash32(seeds, np.uint64(value & MASK)) for value in PAIRS["upper word only"]]
    assert abs(collisions(hashes, 8)) > 5.5


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
