"""Sparse ternary vectors: from rows, mappings, columns and gradients; what is refused; rounding and clipping."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary import gradients as module
from hubbub.mechanisms.ternary.vectors import MOST_DIMENSION, Ternary, as_ternary, exact_symbols, symbols_of_rows
from hubbub.random.integers import bounded
from hubbub.random.source import Random
from tests.shared.answers import estimated

rows = st.tuples(st.integers(0, 5), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(-1, 1))
)


def symbols_of(row: np.ndarray) -> list[int]:
    return [2 * int(i) + (row[i] < 0) for i in np.flatnonzero(row)]


@given(rows)
def test_every_way_in_is_the_same(array: np.ndarray):
    n, d = array.shape
    person, key = np.nonzero(array)
    wide = max(1, int((array != 0).sum(axis=1).max(initial=0)))
    index, sign = np.full((n, wide), -1), np.zeros((n, wide), dtype=int)
    for row in range(n):
        positions = np.flatnonzero(array[row])[::-1]
        index[row, : positions.size], sign[row, : positions.size] = positions, array[row, positions]
    batches = [
        Ternary.pairs([{int(k): int(v) for k, v in enumerate(row) if v} for row in array], dimension=d),
        Ternary.columns(key, array[person, key], person=person, n=n, dimension=d),
        Ternary.dense(array.astype(float)),
        as_ternary(array.tolist(), d),
    ]
    if n:
        batches.append(Ternary.sparse(index, sign, dimension=d))
    for batch in batches:
        assert exact_symbols(batch.entries, d).tolist() == [(symbols_of(row) + [-1] * d)[:d] for row in array]
    assert Ternary.dense(array).means().tolist() == pytest.approx(array.sum(axis=0) / max(n, 1))
    assert Ternary.dense(array).frequencies().tolist() == pytest.approx((array != 0).sum(axis=0) / max(n, 1))


def test_one_vector_is_a_batch_of_one():
    assert len(as_ternary([0, 1, -1], 3)) == len(as_ternary({1: 1}, 3)) == len(as_ternary(np.zeros(3), 3)) == 1
    assert len(Ternary.columns([0, 2], [1, -1], dimension=3)) == 1
    assert len(as_ternary([], 3)) == len(as_ternary(np.zeros((0, 3)), 3)) == 0


NO_ROWS = [[[0, 2]], [[0, math.nan]], [[0, 0.5]], [[0, 1, 0]], [[0, 1], [1]], [["a", "b"]], "01", b"01", 5, None]
NO_PAIRS = [{2: 1}, {-1: 1}, {0: 1.5}, {0: math.nan}, {0: None}, {0: True}, {0.5: 1}, {"a": 1}, {1 << 70: 1}]
NO_ARRAYS = [np.array([[True, False]]), np.zeros((1, 2, 2)), Ternary.dense([[0, 1, 0]])]
MIXED: list[Any] = [[{0: 1}, [0, 1]], [[0, 1], {0: 1}]]


@pytest.mark.parametrize("values", [*NO_ROWS, *([pairs] for pairs in NO_PAIRS), *NO_ARRAYS, *MIXED], ids=repr)
def test_what_is_no_ternary_vector_is_refused(values: Any):
    with pytest.raises(InvalidValue):
        as_ternary(values, 2)


@pytest.mark.parametrize(
    ("key", "value", "person", "n"),
    [
        ([0, 0], [1, -1], None, None),
        ([0, 1], [1], None, None),
        ([0, 2], [1, 1], None, None),
        ([0], [1], [1], 1),
        ([0], [1], [-1], None),
        ([0], [1], [0.5], None),
    ],
    ids=["a key twice", "lengths", "too large a key", "too many people", "before the first", "half a person"],
)
def test_columns_that_do_not_fit_are_refused(key: Any, value: Any, person: Any, n: int | None):
    with pytest.raises(InvalidValue):
        Ternary.columns(key, value, person=person, n=n, dimension=2)


def test_the_same_key_of_two_people_is_no_duplicate():
    assert len(Ternary.columns([0, 0], [1, -1], person=[0, 1], dimension=2)) == 2
    with pytest.raises(InvalidValue, match="differ from each other"):
        Ternary.sparse([[1, 1]], [[1, -1]], dimension=2)
    with pytest.raises(InvalidValue, match="-1 or 1"):
        Ternary.sparse([[1, 0]], [[1, 0]], dimension=2)


@pytest.mark.parametrize("dimension", [0, MOST_DIMENSION + 1, 1 << 80, 2.0, True])
def test_a_dimension_out_of_range_is_refused(dimension: object):
    with pytest.raises(InvalidValue, match="dimension"):
        Ternary.pairs([{0: 1}], dimension=dimension)  # type: ignore[arg-type]


def test_a_batch_cannot_be_written_to_and_does_not_follow_its_source():
    array = np.array([[0, 1], [1, 0]], dtype=np.int8)
    batch = Ternary.dense(array)
    array[:] = -1
    assert batch.means().tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        batch.entries[0, 0] = 1
    assert batch[1:].means().tolist() == [1.0, 0.0]


def test_people_who_share_a_row_are_read_once_and_counted_each():
    first_row, second_row = {0: 1}, {1: -0.5}
    batch = as_ternary([first_row, second_row, first_row, first_row], 2)
    assert batch.means().tolist() == [0.75, -0.125]


class TestSettling:
    def test_a_key_held_with_a_real_value_is_a_sign_with_that_mean(self):
        # 200,000 signs of mean v have a standard error of at most 0.0023: five of them, failure probability 1e-6.
        values = {0: 0.5, 3: -0.25, 4: 0.0, 7: 1.0, 8: -1.0}
        batch = as_ternary([values] * 200_000, 9)
        symbols = symbols_of_rows(batch.entries, Random(seed=1).uint64(len(batch)), 5)
        assert (symbols >= 0).all()
        assert (np.diff(symbols >> 1, axis=1) > 0).all()
        means = (1 - 2 * (symbols & 1)).mean(axis=0)
        assert means == pytest.approx(list(values.values()), abs=0.012)
        assert means[3:].tolist() == [1.0, -1.0]

    def test_signs_of_one_device_are_independent(self):
        batch = as_ternary([{0: 0.0, 1: 0.0, 2: 0.0}] * 100_000, 3)
        signs = 1 - 2 * (symbols_of_rows(batch.entries, Random(seed=2).uint64(len(batch)), 3) & 1)
        for a, b in ((0, 1), (0, 2), (1, 2)):
            assert abs((signs[:, a] * signs[:, b]).mean()) < 0.016  # five standard errors

    def test_of_too_many_entries_each_stays_as_often(self):
        batch = as_ternary([{k: (-1) ** k for k in range(10)}] * 100_000, 12)
        symbols = symbols_of_rows(batch.entries, Random(seed=3).uint64(len(batch)), 4)
        assert symbols.shape == (100_000, 4)
        assert (np.diff(symbols >> 1, axis=1) > 0).all()
        shares = np.bincount((symbols >> 1).ravel(), minlength=12) / 100_000
        assert shares[:10] == pytest.approx([0.4] * 10, abs=0.008)  # five standard errors
        assert shares[10:].tolist() == [0.0, 0.0]
        # Any two stay together with probability 4/10 * 3/9.
        there = np.zeros((100_000, 12), dtype=bool)
        np.put_along_axis(there, symbols >> 1, True, axis=1)
        assert (there[:, 0] & there[:, 9]).mean() == pytest.approx(2 / 15, abs=0.006)
        assert ((symbols & 1) == (symbols >> 1) % 2).all()

    def test_rows_that_fit_are_left_alone_next_to_rows_that_do_not(self):
        batch = as_ternary([{0: 1, 5: -1}, dict.fromkeys(range(6), 1)], 6)
        symbols = symbols_of_rows(batch.entries, Random(seed=4).uint64(2), 3)
        assert symbols[0].tolist() == [0, 11, -1]
        assert (symbols[1] >= 0).all()

    def test_the_bias_of_clipping_is_said(self):
        people = [dict.fromkeys(range(6), 1)] * 3 + [{0: -1}]
        clipping = as_ternary(people, 8).clipping(2)
        assert clipping.rows == 3
        assert clipping.lost == pytest.approx(12 / 19)
        symbols = symbols_of_rows(as_ternary(people * 20_000, 8).entries, Random(seed=5).uint64(80_000), 2)
        chosen = symbols[symbols >= 0]
        means = np.bincount(chosen >> 1, weights=1 - 2 * (chosen & 1), minlength=8) / 80_000
        assert means - as_ternary(people, 8).means() == pytest.approx(clipping.bias, abs=0.01)
        nothing = as_ternary(people, 8).clipping(6)
        assert (nothing.rows, nothing.lost, np.abs(nothing.bias).max()) == (0, 0.0, pytest.approx(0.0))

    def test_what_needs_chance_has_no_symbols(self):
        for value in ({0: 0.5}, {0: 1, 1: 1, 2: 1}):
            with pytest.raises(InvalidValue, match="at most 2"):
                exact_symbols(as_ternary([value], 3).entries, 2)


def test_real_rows_are_rounded_without_bias():
    row = np.array([0.5, -0.125, 0.0, 1.0])
    batch = Ternary.rounded(np.tile(row, (100_000, 1)), Random(seed=1))
    assert batch.means() == pytest.approx(row, abs=0.008)
    assert batch.frequencies() == pytest.approx(np.abs(row), abs=0.008)
    for bad in ([[1.5]], [[math.nan]], [["a"]], [[[0.0]]]):
        with pytest.raises(InvalidValue):
            Ternary.rounded(bad, Random(seed=1))


class TestBounded:
    def test_small_bounds_are_uniform(self):
        drawn = bounded(Random(seed=1).uint64(90_000), np.full(90_000, 3), Random(seed=2))
        assert np.bincount(drawn) == pytest.approx([30_000] * 3, abs=750)  # five standard errors

    def test_words_past_the_last_multiple_are_drawn_again(self):
        last = (1 << 64) - (1 << 64) % 3 - 1
        words = np.array([last, (1 << 64) - 1, 5], dtype=np.uint64)
        spare = SimpleNamespace(uint64=lambda n: np.full(n, 7, dtype=np.uint64))
        assert bounded(words, np.array([3, 3, 1]), spare).tolist() == [last % 3, 1, 0]  # type: ignore[arg-type]
        assert bounded(np.array([(1 << 64) - 1], dtype=np.uint64), np.array([4]), None).tolist() == [3]  # type: ignore[arg-type]


# -- gradients as ternary vectors: never too many entries, the mean kept, the variance as stated -----------------------


GRADIENT = np.array([0.3, -0.05, 0.0, 0.45, -0.5, 0.1])


def dense(batch: Ternary) -> np.ndarray:
    rows = np.zeros((len(batch), batch.dimension), dtype=int)
    row, column = np.nonzero(batch.entries >= 0)
    entry = batch.entries[row, column]
    rows[row, entry >> 33] = np.where(entry & (2**33 - 1), 1, -1)
    return rows


def drawn(gradients: hb.Gradients, n: int = 200_000) -> np.ndarray:
    return dense(gradients.ternary(np.tile(GRADIENT, (n, 1)), hb.Random(seed=1)))


def deviations(gradients: hb.Gradients) -> np.ndarray:
    """How far the mean of many is from the row, entry by entry, in standard errors."""
    rows = gradients.scale * drawn(gradients)
    error = np.sqrt(gradients.variance(GRADIENT)[0] / len(rows))
    off = np.abs(rows.mean(axis=0) - gradients.clipped(GRADIENT)[0])
    assert np.allclose(off[error == 0], 0)  # numbers that are 0 or the scale itself are not drawn at all
    return off[error > 0] / error[error > 0]


@pytest.mark.parametrize(("scale", "sparsity"), [(0.5, 3), (2.0, 1), (1.0, 6), (0.2, 2)])
def test_unbiased_and_as_noisy_as_stated(scale: float, sparsity: int) -> None:
    gradients = hb.Gradients(scale=scale, sparsity=sparsity)
    # Five standard errors for five entries in four settings: fails for one seed in 80,000.
    assert deviations(gradients).max() < 5
    rows = scale * drawn(gradients)
    stated = gradients.variance(GRADIENT)[0]
    # A variance of 200,000 draws of two values is within 3% where the rarer has 2.5% of them: six deviations.
    assert np.allclose(rows.var(axis=0), stated, rtol=0.03, atol=1e-12)
    assert stated.sum() == pytest.approx(
        scale * np.abs(gradients.clipped(GRADIENT)).sum() - (gradients.clipped(GRADIENT) ** 2).sum()
    )


def test_a_chance_that_is_off_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRAIN", int(1.03 * 2**32))  # 3% more than they should be
    assert deviations(hb.Gradients(scale=2.0, sparsity=1)).max() > 8


@settings(max_examples=2 * settings().max_examples)
@given(
    rows=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), min_size=1, max_size=5),
    scale=st.floats(1e-6, 1e6),
    sparsity=st.integers(1, 5),
)
def test_never_more_than_s_entries(rows: list[list[float]], scale: float, sparsity: int) -> None:
    gradients = hb.Gradients(scale=scale, sparsity=sparsity)
    clipped = gradients.clipped(rows)
    assert np.abs(clipped).max() <= scale * (1 + 1e-12)
    assert np.abs(clipped).sum(axis=1).max() <= scale * sparsity * (1 + 1e-12)
    signs = dense(gradients.ternary(rows, hb.Random(seed=1)))
    assert (np.abs(signs).sum(axis=1) <= sparsity).all()
    assert (signs * np.sign(rows) >= 0).all()
    assert (signs[np.asarray(rows) == 0] == 0).all()


def test_rows_that_fit_are_left_alone() -> None:
    gradients = hb.Gradients(scale=0.5, sparsity=3)
    assert (gradients.clipped(GRADIENT) == GRADIENT).all()
    assert np.allclose(gradients.clipped(4 * GRADIENT)[0], GRADIENT)  # the largest is 2, four times the scale
    halved = hb.Gradients(scale=0.5, sparsity=1).clipped(GRADIENT)[0]
    assert np.allclose(halved, GRADIENT * 0.5 / np.abs(GRADIENT).sum())


@pytest.mark.parametrize("kind", [hb.ExSub, hb.CoCo, hb.Collision])
def test_the_mean_gradient_comes_back_with_its_error(kind: Callable[..., hb.Mechanism]) -> None:
    gradients, n = hb.Gradients(scale=0.5, sparsity=3), 100_000
    mechanism = kind(epsilon=3.0, dimension=GRADIENT.size, sparsity=3)
    rng = hb.Random(seed=2)
    means = estimated(mechanism, gradients.ternary(np.tile(GRADIENT, (n, 1)), rng), rng)
    gradient = gradients.estimate(means)
    # Six entries within five standard errors: fails for one seed in 300,000. Twice the scale would be far outside.
    assert (np.abs(gradient.value - GRADIENT) < 5 * gradient.stderr).all()
    assert (gradient.stderr > 0.4999 * means.stderr).all()
    assert (gradient.stderr < 0.01).all()


SETTINGS: list[tuple[str, Any]] = [("scale", scale) for scale in (0.0, -1.0, np.inf, np.nan, True, "1")]
SETTINGS += [("sparsity", sparsity) for sparsity in (0, -1, 1.5, True, 1 << 21)]


@pytest.mark.parametrize(("field", "value"), SETTINGS)
def test_settings_there_are_none_of(field: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=field):
        hb.Gradients(**{"scale": 1.0, "sparsity": 2, field: value})


def test_rows_there_are_none_of_and_shares_are_refused() -> None:
    rows: tuple[Any, ...] = ([[np.nan, 1.0]], [[np.inf]], np.zeros((2, 2, 2)))
    for wrong in rows:
        with pytest.raises(InvalidValue, match="rows"):
            hb.Gradients(scale=1.0, sparsity=1).clipped(wrong)
    with pytest.raises(InvalidValue, match="means"):
        hb.Gradients(scale=1.0, sparsity=1).estimate(hb.Estimate([0.5], [0.1], n=9))


def test_where_the_spread_is_unknown_rounding_adds_the_most_that_it_can() -> None:
    unknown = hb.Estimate([0.5, -2.0], [0.1, 0.1], n=9, kind="quantity")
    gradient = hb.Gradients(scale=2.0, sparsity=1).estimate(unknown)
    assert gradient.variance.tolist() == pytest.approx([4 * (0.1 + 0.75 / 9), 0.4])
