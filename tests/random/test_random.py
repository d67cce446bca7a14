import copy
import hashlib
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from hubbub.core.errors import InvalidValue, RandomnessError
from hubbub.random.source import Random


def reference(tag: bytes, size: int) -> bytes:
    """The counter mode written out: encrypt 0, 1, 2, ... one block each."""
    key = hashlib.sha256(b"hubbub key" + tag).digest()
    blocks = b"".join(counter.to_bytes(16, "big") for counter in range(-(-size // 16)))
    return Cipher(AES256(key), ECB()).encryptor().update(blocks)[:size]


SEVEN = b"int" + (1).to_bytes(8, "big") + b"7"


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4095, 4096, 4097, (1 << 18) - 1, 1 << 18, (1 << 18) + 4097, 700_001])
def test_the_stream_is_aes_in_counter_mode(size: int):
    assert Random(seed=7).bytes(size) == reference(SEVEN, size)


@given(st.lists(st.integers(0, 9000), max_size=12))
def test_the_stream_does_not_depend_on_how_it_is_cut(sizes: list[int]):
    rng = Random(seed=7)
    assert b"".join(rng.bytes(size) for size in sizes) == reference(SEVEN, sum(sizes))


def test_integers_are_the_stream_read_in_little_endian():
    stream = reference(SEVEN, 24)
    for draw, dtype in ((Random.uint16, "<u2"), (Random.uint32, "<u4"), (Random.uint64, "<u8")):
        drawn = draw(Random(seed=7), 24 // np.dtype(dtype).itemsize)
        assert drawn.tolist() == np.frombuffer(stream, dtype=dtype).tolist()
    assert Random(seed=7).uint16(3, 4).shape == (3, 4)


def test_different_seeds_and_types_of_seed_give_different_streams():
    seeds: list[int | str | bytes] = [1, 2, -1, 0, "1", b"1", "", b"", "a", b"a", 10**40]
    assert len({Random(seed=seed).bytes(16) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("seed", [True, 1.0, [1], (1,)])
def test_other_seeds_are_refused(seed: Any):
    with pytest.raises(InvalidValue, match="seed"):
        Random(seed=seed)


def test_without_a_seed_the_system_gives_the_key():
    assert Random().secure
    assert Random().bytes(16) != Random().bytes(16)


def test_no_randomness_no_numbers(monkeypatch: pytest.MonkeyPatch):
    def nothing(size: int) -> bytes:
        raise NotImplementedError("no randomness source found")

    monkeypatch.setattr(os, "urandom", nothing)
    with pytest.raises(NotImplementedError):
        Random()
    rng = Random(seed=1)  # a seeded stream asks nothing of the system
    rng.bytes(1)


def test_a_fork_that_finds_no_randomness_draws_nothing(monkeypatch: pytest.MonkeyPatch):
    rng = Random()
    monkeypatch.setattr(os, "urandom", lambda size: (_ for _ in ()).throw(OSError("exhausted")))
    rng._stale = True  # as after a fork
    for _ in range(2):
        with pytest.raises(OSError, match="exhausted"):
            rng.bytes(16)


FORK = """
import os, sys
from hubbub.core.errors import RandomnessError
from hubbub.random.source import Random

system, seeded, untouched = Random(), Random(seed=1), Random(seed=2)
system.bytes(10), seeded.bytes(10)   # a part of the pool is used: the rest must not be handed out twice

def in_child(work):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, work())
        finally:
            os._exit(0)
    os.wait()
    return os.read(reader, 100)

def refused(rng):
    try:
        rng.bytes(1)
    except RandomnessError:
        return b"refused"
    return b"drew"

one, two = in_child(lambda: system.bytes(32)), in_child(lambda: system.bytes(32))
nested = in_child(lambda: in_child(lambda: system.bytes(32)))
mine = system.bytes(32)
assert len({one, two, nested, mine}) == 4 and all(map(len, (one, two, nested, mine))), (one, two, nested, mine)
assert in_child(lambda: refused(seeded)) == b"refused"
assert in_child(lambda: refused(untouched)) == b"refused"
assert in_child(lambda: refused(seeded.child("worker", 1))) == b"drew"
assert in_child(lambda: refused(Random(seed=1))) == b"drew"
again = Random(seed=1)
again.bytes(10)
assert seeded.bytes(16) == again.bytes(16)
print("ok")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_never_repeats_its_parent():
    completed = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False)
    assert (completed.stdout, completed.stderr) == ("ok\n", "")


def test_a_stream_is_not_copied():
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(RandomnessError, match="would repeat"):
            copier(Random(seed=1))


def test_threads_do_not_share_bytes():
    rng = Random(seed=7)
    drawn_by: list[list[bytes]] = [[] for _ in range(8)]

    def draw(parts: list[bytes]) -> None:
        parts.extend(rng.bytes(48) for _ in range(500))

    threads = [threading.Thread(target=draw, args=(parts,)) for parts in drawn_by]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    all_parts = sorted(part for parts in drawn_by for part in parts)
    stream = reference(SEVEN, 48 * 4000)
    assert all_parts == sorted(stream[start : start + 48] for start in range(0, len(stream), 48))


def test_children_are_independent_and_leave_the_parent_alone():
    parent = Random(seed=7)
    names = [("a",), ("b",), ("a", "b"), ("ab",), (1,), ("1",), (1, 1), (11,), ()]
    streams = {parent.child(*name).bytes(16) for name in names}
    assert len(streams) == len(names)
    assert parent.bytes(16) == reference(SEVEN, 16)
    assert parent.child("a").bytes(16) == Random(seed=7).child("a").bytes(16)
    assert parent.child("a").child("b").bytes(16) != parent.child("a", "b").bytes(16)
    assert Random().child("a").secure


def chi_square(counts: np.ndarray) -> float:
    return float(chisquare(counts).pvalue)


BOUNDS = [1, 2, 3, 100, 1000, 3 << 61, (1 << 63) - 1, 1 << 63]


@pytest.mark.parametrize("bound", BOUNDS)
def test_choices_below_a_bound_are_uniform(bound: int):
    drawn = Random(seed=3).below(bound, 60_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    cells = bound if bound <= 1000 else 24
    counts = np.bincount([value * cells // bound for value in drawn.tolist()], minlength=cells)
    assert bound == 1 or chi_square(counts) > 1e-6  # its failure probability


def test_modulo_bias_would_be_seen():
    # The same test on draws reduced without redrawing: at 3 * 2^61 a quarter of them fold over.
    bound = 3 << 61
    drawn = Random(seed=3).uint64(60_000) % np.uint64(bound)
    counts = np.bincount([value * 24 // bound for value in drawn.tolist()], minlength=24)
    assert chi_square(counts) < 1e-6
    small = (Random(seed=3).uint16(60_000) & 0xFF) % 100
    assert chi_square(np.bincount(small, minlength=100)) < 1e-6


@pytest.mark.parametrize("bound", [0, -1, (1 << 63) + 1])
def test_bounds_without_choices_are_refused(bound: int):
    with pytest.raises(InvalidValue, match="bound"):
        Random(seed=1).below(bound, 3)


def test_orders_are_uniform():
    # 24 orders of 4, 24,000 draws; failure probability 1e-6.
    rng = Random(seed=5)
    codes = [int("".join(map(str, rng.permutation(4)))) for _ in range(24_000)]
    _, counts = np.unique(codes, return_counts=True)
    assert counts.size == 24
    assert chi_square(counts) > 1e-6


def test_bits_are_fair():
    # 8,192,000 bits of each width: every bit position within 6 standard deviations (2e-9 each).
    for draw, width in ((Random.uint16, 16), (Random.uint32, 32), (Random.uint64, 64)):
        drawn = draw(Random(seed=9), 8_192_000 // width)
        for bit in range(width):
            set_bits = int((drawn >> drawn.dtype.type(bit) & drawn.dtype.type(1)).sum())
            assert abs(set_bits - drawn.size / 2) < 3 * np.sqrt(drawn.size)


def test_sizes():
    rng = Random(seed=1)
    assert rng.bytes(0) == b""
    assert rng.below(5, 0).size == rng.uint64(0).size == rng.permutation(0).size == 0
    assert rng.bytes(16) == Random(seed=1).bytes(16)
    for refused in (rng.bytes, lambda size: rng.below(5, size), rng.permutation):
        with pytest.raises(InvalidValue, match="size"):
            refused(-1)


def test_only_contiguous_arrays_are_filled():
    block = np.zeros((4, 6), dtype=np.uint32)
    with pytest.raises(InvalidValue, match="contiguous"):
        Random(seed=1).fill(block[:, ::2])
    assert not block.any()
    Random(seed=1).fill(block[1:3])
    assert block[1:3].any()
    assert not block[0].any()
    assert not block[3].any()


def test_representations_hide_the_seed():
    assert repr(Random(seed="secret")) == "Random(seed=...)"
    assert repr(Random()) == "Random()"
