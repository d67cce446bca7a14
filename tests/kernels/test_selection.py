"""Compiled sequential selection against the plain loop that a device runs, bit for bit."""

import numpy as np
import pytest

from hubbub.kernels.ternary import select as compiled
from hubbub.mechanisms.ternary import selection
from hubbub.mechanisms.ternary.selection import advance, decide, odds, select
from hubbub.random.source import Random

TIE = (1 << 32) // 3  # with one chance in three, 32 bits that do not decide


def devices(n: int, d: int, s: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of up to s + 1 entries, some with one too many, and counters of devices that report half of them."""
    rng = Random(seed=seed)
    values = np.where(rng.below(d, n * d).reshape(n, d) <= s, rng.below(2, n * d).reshape(n, d) * 2 - 1, 0)
    trues = rng.below(s + 1, n)
    reverses = np.minimum(rng.below(s + 1, n), s - trues)
    counters = np.stack([trues, reverses, np.full(n, d // 2), np.full(n, s), np.full(n, d)], axis=1)
    return values.astype(np.int8), rng.uint32(n, d), counters.astype(np.int32)


def plain(values, words, counters, rng) -> np.ndarray:
    """One device at a time, which never loads compiled code."""
    return np.concatenate(
        [np.empty((0, values.shape[1]), dtype=np.int8)]
        + [select(values[k : k + 1], words[k : k + 1], counters[k : k + 1], rng) for k in range(len(values))]
    )


@pytest.mark.parametrize(("n", "d", "s"), [(1, 1, 1), (40, 7, 2), (300, 40, 5), (7, 500, 8), (0, 4, 1), (5, 0, 1)])
def test_the_same_signs_and_the_same_state(n: int, d: int, s: int):
    values, words, counters = devices(n, max(d, 1), s)
    values, words = values[:, :d], words[:, :d]
    states = counters.copy(), counters.copy()
    undecided: list[tuple[int, int]] = []
    signs = compiled(values, words, states[0], lambda row, column: undecided.append((row, column)) or 0)
    assert not undecided
    assert signs.tolist() == plain(values, words, states[1], Random(seed=1)).tolist()
    assert states[0].tolist() == states[1].tolist()


def test_a_large_batch_is_compiled_and_the_same(monkeypatch: pytest.MonkeyPatch):
    values, words, counters = devices(300, 40, 5)
    state = counters.copy()
    large = select(values, words, state, Random(seed=1))
    monkeypatch.setattr(selection, "LARGE_BATCH", 1 << 40)
    assert select(values, words, counters, Random(seed=1)).tolist() == large.tolist()
    assert state.tolist() == counters.tolist()


def test_where_the_bits_cannot_decide_more_are_drawn(monkeypatch: pytest.MonkeyPatch):
    # Every device has one true sign to say among three entries: the first of them is a tie, in the first, a middle and
    # the last column.
    n = 300
    values = np.zeros((n, 40), dtype=np.int8)
    for row in range(n):
        first = (0, 20, 37)[row % 3]
        values[row, first : first + 3] = 1
    words = np.full((n, 40), TIE, dtype=np.uint32)
    counters = np.tile(np.array([1, 0, 0, 3, 40], dtype=np.int32), (n, 1))
    states = counters.copy(), counters.copy()
    signs = select(values, words, states[0], Random(seed=9))
    monkeypatch.setattr(selection, "LARGE_BATCH", 1 << 40)
    assert signs.tolist() == select(values, words, states[1], Random(seed=9)).tolist()
    assert states[0].tolist() == states[1].tolist()
    assert (signs.sum(axis=1) == 1).all()
    # Given a tie, the more exact place is uniform: the border 1/3 2^32 lies a third of the way.
    now = np.array([signs[row, (0, 20, 37)[row % 3]] for row in range(n)])
    assert 0.2 < now.mean() < 0.47  # five standard errors


def test_a_tie_is_drawn_out_as_far_as_it_goes():
    class Scripted:
        def __init__(self, *words: int) -> None:
            self.words = list(words)

        def bytes(self, size: int) -> bytes:
            return self.words.pop(0).to_bytes(size, "little")

    third = (1 << 32) // 3  # the digits of 1/3 in base 2^32 are all the same
    for last, sign in ((third - 1, 1), (third + 1, 0)):
        rng = Scripted(third, third, last)
        assert decide(third, 1, 0, 3, rng) == sign  # type: ignore[arg-type]
        assert not rng.words
    rng = Scripted(0)
    assert decide(third, 0, 1, 3, rng) == -1  # type: ignore[arg-type]


def test_entries_past_the_allowed_number_count_as_zeros():
    assert odds([0, 0, 2, 0, 7], 1) == odds([0, 0, 2, 0, 7], 0) == (2, 2, 14)
    counters = [0, 0, 2, 0, 7]
    advance(counters, -1, 1)
    assert counters == [0, 0, 1, 0, 6]
