"""Gradients as ternary vectors: never too many entries, the mean kept, the variance as stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary.vectors import Ternary

ROW = np.array([0.3, -0.05, 0.0, 0.45, -0.5, 0.1])


def dense(batch: Ternary) -> np.ndarray:
    rows = np.zeros((len(batch), batch.dimension), dtype=int)
    row, column = np.nonzero(batch.entries >= 0)
    entry = batch.entries[row, column]
    rows[row, entry >> 33] = np.where(entry & (2**33 - 1), 1, -1)
    return rows


def drawn(gradients: hb.Gradients, n: int = 200_000) -> np.ndarray:
    return dense(gradients.ternary(np.tile(ROW, (n, 1)), hb.Random(seed=1)))


def deviations(gradients: hb.Gradients) -> np.ndarray:
    """How far the mean of many is from the row, entry by entry, in standard errors."""
    rows = gradients.scale * drawn(gradients)
    error = np.sqrt(gradients.variance(ROW)[0] / len(rows))
    off = np.abs(rows.mean(axis=0) - gradients.clipped(ROW)[0])
    assert np.allclose(off[error == 0], 0)  # numbers that are 0 or the scale itself are not drawn at all
    return off[error > 0] / error[error > 0]


@pytest.mark.parametrize(("scale", "sparsity"), [(0.5, 3), (2.0, 1), (1.0, 6), (0.2, 2)])
def test_unbiased_and_as_noisy_as_stated(scale: float, sparsity: int) -> None:
    gradients = hb.Gradients(scale=scale, sparsity=sparsity)
    # Five standard errors for five entries in four settings: fails for one seed in 80,000.
    assert deviations(gradients).max() < 5
    rows = scale * drawn(gradients)
    stated = gradients.variance(ROW)[0]
    # A variance of 200,000 draws of two values is within 3% where the rarer has 2.5% of them: six deviations.
    assert np.allclose(rows.var(axis=0), stated, rtol=0.03, atol=1e-12)
    assert stated.sum() == pytest.approx(
        scale * np.abs(gradients.clipped(ROW)).sum() - (gradients.clipped(ROW) ** 2).sum()
    )


def test_a_chance_that_is_off_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.mechanisms.ternary import gradients as module

    monkeypatch.setattr(module, "GRAIN", int(1.03 * 2**32))  # 3% more than they should be
    assert deviations(hb.Gradients(scale=2.0, sparsity=1)).max() > 8


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
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
    assert (gradients.clipped(ROW) == ROW).all()
    assert np.allclose(gradients.clipped(4 * ROW)[0], ROW)  # the largest is 2, four times the scale
    assert np.allclose(hb.Gradients(scale=0.5, sparsity=1).clipped(ROW)[0], ROW * 0.5 / np.abs(ROW).sum())


@pytest.mark.parametrize("kind", [hb.ExSub, hb.CoCo, hb.Collision])
def test_the_mean_gradient_comes_back_with_its_error(kind: type[hb.Mechanism]) -> None:
    gradients, n = hb.Gradients(scale=0.5, sparsity=3), 100_000
    mechanism = kind(epsilon=3.0, dimension=ROW.size, sparsity=3)  # type: ignore[call-arg]
    rng = hb.Random(seed=2)
    means = mechanism.estimate(
        mechanism.accumulate(mechanism.randomize(gradients.ternary(np.tile(ROW, (n, 1)), rng), rng))
    )
    gradient = gradients.estimate(means)
    # Six entries within five standard errors: fails for one seed in 300,000. Twice the scale would be far outside.
    assert (np.abs(gradient.value - ROW) < 5 * gradient.stderr).all()
    assert (gradient.stderr > 0.4999 * means.stderr).all()
    assert (gradient.stderr < 0.01).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, True, "1"])
def test_scales_there_are_none_of(scale: object) -> None:
    with pytest.raises(InvalidValue, match="scale"):
        hb.Gradients(scale=scale, sparsity=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("sparsity", [0, -1, 1.5, True, 1 << 21])
def test_sparsities_there_are_none_of(sparsity: object) -> None:
    with pytest.raises(InvalidValue, match="sparsity"):
        hb.Gradients(scale=1.0, sparsity=sparsity)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [[[np.nan, 1.0]], [[np.inf]], np.zeros((2, 2, 2))])
def test_rows_there_are_none_of(rows: object) -> None:
    with pytest.raises(InvalidValue, match="rows"):
        hb.Gradients(scale=1.0, sparsity=1).clipped(rows)  # type: ignore[arg-type]


def test_shares_are_refused() -> None:
    with pytest.raises(InvalidValue, match="means"):
        hb.Gradients(scale=1.0, sparsity=1).estimate(hb.Estimate([0.5], [0.1], n=9))


def test_where_the_spread_is_unknown_rounding_adds_the_most_that_it_can() -> None:
    unknown = hb.Estimate([0.5, -2.0], [0.1, 0.1], n=9, kind="quantity")
    gradient = hb.Gradients(scale=2.0, sparsity=1).estimate(unknown)
    assert gradient.variance.tolist() == pytest.approx([4 * (0.1 + 0.75 / 9), 0.4])
