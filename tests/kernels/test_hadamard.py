"""The fast transform against the matrix it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.kernels.estimators import walsh_hadamard
from hubbub.random.source import Random


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
