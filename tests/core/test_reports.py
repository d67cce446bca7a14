"""Batches of reports, and the sketches that they add up to: merging, bytes, and hostile bytes."""

import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import GRR, Random
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Reports, Sketch, unpack_columns

SPEC = "0123456789abcdef" * 2
MOST = (1 << 63) - 1


def batch(n: int = 5) -> Reports:
    return Reports(
        SPEC,
        public={"seed": np.arange(n, dtype=np.uint64) << np.uint64(40)},
        private={"bits": np.arange(3 * n, dtype=np.uint8).reshape(n, 3), "cell": np.arange(-n, 0, dtype=np.int16)},
    )


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_reports_come_back_from_their_bytes(n: int):
    reports = batch(n)
    back = Reports.from_bytes(reports.to_bytes())
    assert back == reports
    assert back.to_bytes() == reports.to_bytes()
    assert len(back) == n
    assert back.nbytes == n * 13
    assert {name: column.dtype for name, column in back.private.items()} == {"bits": np.uint8, "cell": np.int16}


@given(st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"]), st.lists(st.integers(0, 127), max_size=20))
def test_every_integer_type_travels(dtype: str, values: list[int]):
    reports = Reports(SPEC, private={"x": np.array(values, dtype=dtype)})
    assert Reports.from_bytes(reports.to_bytes()) == reports
    swapped = Reports(SPEC, private={"x": np.array(values, dtype=np.dtype(dtype).newbyteorder(">"))})
    assert swapped.to_bytes() == reports.to_bytes()  # bytes do not depend on the machine's order


def test_a_batch_is_cut_and_joined():
    reports = batch(7)
    assert Reports.concat([reports[:2], reports[2:2], reports[2:]]) == reports
    assert reports[np.array([3])].private["cell"].tolist() == [-4]
    assert len(reports[reports.private["cell"] < -4]) == 3


def test_only_like_is_joined_with_like():
    two_reports = batch(2)
    with pytest.raises(SpecMismatch, match="spec_id"):
        Reports.concat([two_reports, Reports("f" * 32, public=two_reports.public, private=two_reports.private)])
    with pytest.raises(InvalidValue, match="columns"):
        Reports.concat([two_reports, Reports(SPEC, private=two_reports.private)])
    with pytest.raises(InvalidValue, match="batches"):
        Reports.concat([])


@pytest.mark.parametrize(
    "columns",
    [
        {"private": {}},
        {"private": {"x": np.zeros(2)}},
        {"private": {"x": np.uint8(3)}},
        {"private": {"x": np.array(["a"])}},
        {"private": {"x": np.zeros(2, dtype=bool)}},
        {"private": {"x": np.zeros(2, dtype=np.uint8), "y": np.zeros(3, dtype=np.uint8)}},
        {"private": {"x": np.zeros(2, dtype=np.uint8)}, "public": {"y": np.zeros(1, dtype=np.uint8)}},
    ],
    ids=str,
)
def test_columns_are_integers_of_one_length(columns: dict[str, Any]):
    with pytest.raises(InvalidValue):
        Reports(SPEC, **columns)


def test_columns_and_counts_cannot_be_written_to():
    reports = batch()
    with pytest.raises(ValueError, match="read-only"):
        sketch(1, 1, 2).counts[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        reports.private["cell"][0] = 1
    with pytest.raises(TypeError):
        reports.private["more"] = np.zeros(5, dtype=np.uint8)  # type: ignore[index]


def test_equality_looks_at_everything():
    reports = batch()
    assert reports != Reports("f" * 32, public=reports.public, private=reports.private)
    assert reports != Reports(SPEC, private=reports.private)
    wider = {**reports.private, "cell": reports.private["cell"].astype(np.int32)}
    assert reports != Reports(SPEC, public=reports.public, private=wider)
    assert reports != 5
    assert "n=5" in repr(reports)
    with pytest.raises(TypeError):
        hash(reports)


# -- sketches -------------------------------------------------------------------------------------------------------


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


# -- hostile bytes ----------------------------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize(("kind", "whole"), [(Reports, batch().to_bytes()), (Sketch, sketch(5, 1, 2).to_bytes())])


def read(data: bytes) -> None:
    """Read hostile bytes: the only errors are refusals, and memory stays in proportion to the input."""
    for kind in (Reports, Sketch):
        tracemalloc.start()
        try:
            kind.from_bytes(data)
        except InvalidValue:  # DecodeError is one
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 100_000 + 40 * len(data)


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes):
    read(data)


@BOTH
def test_truncated_bytes(kind: type[Reports | Sketch], whole: bytes):
    for cut in range(len(whole)):
        with pytest.raises(DecodeError):
            kind.from_bytes(whole[:cut])


@BOTH
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_bytes(kind: type[Reports | Sketch], whole: bytes, changes: list[tuple[float, int]]):
    data = bytearray(whole)
    for place, byte in changes:
        data[int(place * len(data))] = byte
    read(bytes(data))


numbers = st.integers(-(1 << 63), (1 << 64) - 1) | st.sampled_from([0, 1, 2, 1 << 31, 1 << 62, 1 << 63])
columns = st.tuples(
    st.sampled_from(["public", "private", "counts", "x"]),
    st.sampled_from(["a", "b", ""]),
    st.sampled_from(["u1", "u8", "i8", "f8", "O", "V9", ""]),
    st.lists(numbers, max_size=5),
    st.binary(max_size=16),
)


@given(
    st.sampled_from(["reports", "sketch", ""]),
    st.sampled_from([SPEC, "", "G" * 32]),
    numbers,
    st.lists(columns, max_size=3),
)
def test_well_formed_frames_with_hostile_contents(kind: str, spec: str, n: int, parts: list[Any]):
    read(msgspec.msgpack.encode([kind, spec, n, parts]))


def frame(*parts: Any, n: int = 0, kind: str = "reports", spec: str = SPEC) -> bytes:
    return msgspec.msgpack.encode([kind, spec, n, parts])


@pytest.mark.parametrize(
    "data",
    [
        frame(),
        frame(["private", "a", "u1", [0, 1 << 63], b""]),
        frame(["private", "a", "u1", [0, 1 << 40, 1 << 40], b""]),
        frame(["private", "a", "u1", [1 << 62], b""], n=1 << 62),
        frame(["private", "a", "u1", [-1], b""]),
        frame(["private", "a", "u1", [2], b"a"], n=2),
        frame(["private", "a", "u1", [], b"a"]),
        frame(["private", "a", "f8", [1], b"12345678"], n=1),
        frame(["private", "a", "O8", [1], b"12345678"], n=1),
        frame(["private", "a", "u1", [1], b"a"], n=2),
        frame(["public", "a", "u1", [1], b"a"], n=1),
        frame(["counts", "b", "u1", [1], b"a"], ["private", "a", "u1", [1], b"a"], n=1),
        frame(["private", "a", "u1", [1], b"a"], ["public", "a", "u1", [1], b"a"], n=1),
        frame(*[["private", str(k), "u1", [1], b"a"] for k in range(17)], n=1),
        frame(["private", "a", "u1", [1], b"a"], n=1, kind="sketch"),
        frame(["private", "a", "u1", [1], b"a"], n=1, spec="0" * 31),
        frame(["private", "a", "u1", [1], b"a", "surplus"], n=1),
        frame(["private", "a", "u1", [1], b"a"], n=1) + b"more",
        msgspec.json.encode(["reports"]),
    ],
)
def test_what_is_not_well_formed_is_refused(data: bytes):
    with pytest.raises(InvalidValue):
        Reports.from_bytes(data)
    read(data)


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
def test_frames_that_are_no_sketches_are_refused(parts: list[Any]):
    with pytest.raises(InvalidValue):
        Sketch.from_bytes(frame(*parts, n=1, kind="sketch"))


@pytest.mark.parametrize("n", [-1, 1 << 63, (1 << 64) - 1])
def test_hostile_totals(n: int):
    with pytest.raises(InvalidValue):
        Sketch.from_bytes(frame(["counts", "counts", "i8", [1], bytes(8)], n=n, kind="sketch"))


@pytest.mark.parametrize("data", [None, "text", 5, [b"a"]])
def test_what_is_not_bytes_is_refused(data: Any):
    with pytest.raises(DecodeError):
        Reports.from_bytes(data)


def test_a_refusal_does_not_repeat_a_large_frame():
    with pytest.raises(DecodeError) as refusal:
        unpack_columns("reports", bytes(1 << 20))
    assert len(str(refusal.value)) < 300
    assert len(refusal.value.value) <= 40  # type: ignore[arg-type]
