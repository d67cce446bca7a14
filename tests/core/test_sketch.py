from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import GRR, Random
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Sketch

SPEC = "0123456789abcdef" * 2
MOST = (1 << 63) - 1


def sketch(n: int, *counts: int) -> Sketch:
    return Sketch(SPEC, n, np.array(counts, dtype=np.int64))


small = st.builds(
    lambda n, counts: sketch(n, *counts), st.integers(0, 1 << 40), st.tuples(*[st.integers(-(1 << 50), 1 << 50)] * 3)
)


@given(small, small, small)
def test_merging_is_associative_and_commutative_to_the_byte(a: Sketch, b: Sketch, c: Sketch):
    assert ((a + b) + c).to_bytes() == (a + (b + c)).to_bytes() == ((c + a) + b).to_bytes()
    assert (a + b).n == a.n + b.n
    assert (a + sketch(0, 0, 0, 0)).to_bytes() == a.to_bytes()


@given(small)
def test_a_sketch_comes_back_from_its_bytes(a: Sketch):
    back = Sketch.from_bytes(a.to_bytes())
    assert back == a
    assert back.to_bytes() == a.to_bytes()


def test_counts_of_any_shape():
    table = Sketch(SPEC, 3, np.arange(6).reshape(2, 3))
    assert Sketch.from_bytes(table.to_bytes()) == table
    assert Sketch(SPEC, 3, np.arange(6).reshape(2, 3)[:, ::-1]) != table
    assert "n=3" in repr(table)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (sketch(1, MOST, 0), sketch(1, 1, 0)),
        (sketch(1, 0, -MOST), sketch(1, 0, -2)),
        (sketch(1, MOST, MOST), sketch(1, MOST, MOST)),
        (sketch(MOST, 0, 0), sketch(1, 0, 0)),
    ],
)
def test_a_sum_that_does_not_fit_is_refused_and_nothing_is_merged(a: Sketch, b: Sketch):
    before = a.to_bytes(), b.to_bytes()
    for first, second in ((a, b), (b, a)):
        with pytest.raises(InvalidValue):
            _ = first + second
    assert (a.to_bytes(), b.to_bytes()) == before


def test_the_largest_sums_that_fit():
    total = sketch(MOST - 1, MOST - 1, -MOST) + sketch(1, 1, -1)
    assert total.n == MOST
    assert total.counts.tolist() == [MOST, -MOST - 1]


def test_only_like_is_merged_with_like():
    a = sketch(1, 1, 2)
    with pytest.raises(SpecMismatch, match="spec_id"):
        _ = a + Sketch("f" * 32, 1, a.counts)
    with pytest.raises(SpecMismatch, match="counts"):
        _ = a + sketch(1, 1, 2, 3)
    with pytest.raises(TypeError):
        _ = a + 1  # type: ignore[operator]


def test_a_sketch_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        sketch(1, 1, 2).counts[0] = 5


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (-1, np.zeros(2, dtype=np.int64)),
        (1 << 63, np.zeros(2, dtype=np.int64)),
        (1, np.zeros(2)),
        (1, np.zeros(2, dtype=np.int32)),
        (1, np.int64(3)),
    ],
)
def test_sketches_are_int64_counts(n: int, counts: Any):
    with pytest.raises(InvalidValue):
        Sketch(SPEC, n, counts)


def read(data: bytes) -> None:
    with suppress(InvalidValue):
        Sketch.from_bytes(data)


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes):
    read(data)


@given(
    st.lists(
        st.tuples(st.integers(0, len(sketch(5, 1, 2).to_bytes()) - 1), st.integers(0, 255)), min_size=1, max_size=4
    )
)
def test_mutated_bytes(changes: list[tuple[int, int]]):
    data = bytearray(sketch(5, 1, 2).to_bytes())
    for place, byte in changes:
        data[place] = byte
    read(bytes(data))


@pytest.mark.parametrize("cut", range(len(sketch(5, 1, 2).to_bytes())))
def test_truncated_bytes(cut: int):
    with pytest.raises(DecodeError):
        Sketch.from_bytes(sketch(5, 1, 2).to_bytes()[:cut])


@pytest.mark.parametrize(
    "parts",
    [
        [["private", "counts", "i8", [1], bytes(8)]],
        [["counts", "other", "i8", [1], bytes(8)]],
        [["counts", "counts", "u8", [1], bytes(8)]],
        [["counts", "counts", "i8", [1], bytes(8)], ["counts", "more", "i8", [1], bytes(8)]],
        [["counts", "counts", "i8", [0, 1 << 63], b""]],
        [["counts", "counts", "i8", [1 << 61], b""]],
        [],
    ],
)
def test_hostile_frames(parts: list[Any]):
    with pytest.raises(InvalidValue):
        Sketch.from_bytes(msgspec.msgpack.encode(["sketch", SPEC, 1, parts]))


@pytest.mark.parametrize("n", [-1, 1 << 63, (1 << 64) - 1])
def test_hostile_totals(n: int):
    parts = [["counts", "counts", "i8", [1], bytes(8)]]
    with pytest.raises(InvalidValue):
        Sketch.from_bytes(msgspec.msgpack.encode(["sketch", SPEC, n, parts]))


def test_fakes_are_carried_along():
    """They add up when sketches are merged, and are stored only where there are any."""
    plain = Sketch("0" * 32, 10, np.arange(3, dtype=np.int64))
    mixed = plain.with_fakes(4)
    assert (mixed.people, (mixed + mixed).fakes, (mixed + plain).fakes) == (6, 8, 4)
    assert Sketch.from_bytes(mixed.to_bytes()) == mixed != plain
    assert plain.with_fakes(0).to_bytes() == plain.to_bytes()
    for wrong in (-1, 11):
        with pytest.raises(InvalidValue, match="fakes"):
            plain.with_fakes(wrong)


def test_no_estimate_takes_fakes_for_people():
    grr = GRR(epsilon=1.0, domain=3)
    sketch = grr.accumulate(grr.randomize([0, 1, 2, 2], Random(seed=1)))
    with pytest.raises(InvalidValue, match="takes them off"):
        grr.estimate(sketch.with_fakes(1))
