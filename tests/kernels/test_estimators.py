"""Column sums of packed bits against numpy's own unpacking, and the fast transform against the matrix it stands for."""

import numpy as np
import pytest

from hubbub.kernels import estimators
from hubbub.kernels.estimators import BLOCK, column_sums, walsh_hadamard
from hubbub.random.source import Random


def packed(n: int, width: int, seed: int = 1) -> np.ndarray:
    return np.frombuffer(Random(seed=seed).bytes(n * width), dtype=np.uint8).reshape(n, width)


def brute(rows: np.ndarray, weights: np.ndarray | None = None) -> list[int]:
    bits = np.unpackbits(rows, axis=1, bitorder="little").astype(np.int64)
    return (bits if weights is None else bits * weights[:, None]).sum(axis=0).tolist()


@pytest.mark.parametrize("width", [1, 2, 7, 16, 33])
@pytest.mark.parametrize("n", [0, 1, 2, 1023, 1025])
def test_sums(n: int, width: int):
    rows = packed(n, width)
    assert column_sums(rows).tolist() == brute(rows)


@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_around_the_borders_of_blocks(n: int):
    rows = packed(n, 2)
    assert column_sums(rows).tolist() == brute(rows)
    # All ones: the 16-bit counters are emptied before they are full.
    assert column_sums(np.full((n, 2), 255, dtype=np.uint8)).tolist() == [n] * 16


@pytest.mark.parametrize("n", [0, 1, 1023, BLOCK + 1])
def test_weights(n: int):
    rows = packed(n, 3)
    weights = Random(seed=2).below(1 << 40, n) - (1 << 39)
    assert column_sums(rows, weights).tolist() == brute(rows, weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch, weighted: bool):
    rows = packed(5_001, 5)
    weights = Random(seed=2).below(1000, 5_001) if weighted else None
    monkeypatch.setattr(estimators, "SLICE", 1)
    assert column_sums(rows, weights).tolist() == brute(rows, weights)


def test_strided_and_read_only_input():
    rows = packed(500, 6)
    assert column_sums(rows[::2, ::3]).tolist() == brute(np.ascontiguousarray(rows[::2, ::3]))


def test_the_first_bit_is_the_lowest():
    assert column_sums(np.array([[1, 128]], dtype=np.uint8)).tolist() == [1] + [0] * 14 + [1]


def matrix(size: int) -> np.ndarray:
    shared = np.arange(size)[:, None] & np.arange(size)[None, :]
    parity = np.array([bin(bits).count("1") & 1 for bits in shared.ravel().tolist()]).reshape(size, size)
    return 1 - 2 * parity


@pytest.mark.parametrize("size", [1, 2, 4, 8, 32, 64, 256, 512])
def test_the_transform_is_the_matrix(size: int):
    x = Random(seed=1).below(1 << 40, size) - (1 << 39)
    before = x.copy()
    assert walsh_hadamard(x).tolist() == (matrix(size) @ x).tolist()
    assert x.tolist() == before.tolist()


def test_twice_is_the_identity_times_the_size():
    x = Random(seed=2).below(1000, 1 << 12)
    assert (walsh_hadamard(walsh_hadamard(x)) == x << 12).all()
