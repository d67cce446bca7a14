"""ToPS's figures at a small size, PAK's threshold against its definition, the streams of Table 1's shape."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from hubbub.random.source import Random
from hubbub_papers import REPRODUCTIONS, reproduce
from hubbub_papers.tops_topl.methods import (
    HIERARCHIES,
    QueryErrors,
    measure,
    random_queries,
    smooth_sensitivity,
    threshold_s_p,
    threshold_s_pak,
)
from hubbub_papers.tops_topl.streams import PAPER, made

NAMES = [name for name in REPRODUCTIONS if name.startswith("tops-")]
SHORT = ("tops-figure-3", "tops-figure-9")  # one of the curator's, one of the devices'


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SHORT else pytest.mark.papers) for name in NAMES],
)
def test_every_figure_runs_and_saves(name: str, tmp_path: Path) -> None:
    result = reproduce(name, repeats=1, scale=0.004)
    assert all(math.isfinite(cell.ours) for cell in result.cells)
    assert len(result.save(tmp_path)) == (1 if result.figure is None else 2)
    # The paper prints numbers in Table 1 and in its text, and none of its figures'.
    if name != "tops-table-1":
        assert {cell.paper for cell in result.cells if cell.column != "claim"} == {None}
    if name == "tops-figure-8":
        claims = [cell for cell in result.cells if cell.column == "claim"]
        assert len(claims) == 6 * len(PAPER)
        assert all(cell.ours > 0.99 for cell in claims if "to be expected" in cell.row)  # the best is the best
    if name == "tops-figure-3":
        assert [cell.paper for cell in result.cells if "beats PAK, orders" in cell.row] == ["7 to 11"]


@pytest.mark.parametrize("name", PAPER)
def test_the_streams_have_table_1s_percentiles(name: str) -> None:
    shape, values = PAPER[name], made(name, 60_000).values
    assert np.percentile(values, [85, 95, 99.5]) == pytest.approx([shape.p85, shape.p95, shape.p995], rel=1e-3)
    assert values.mean() == pytest.approx(shape.average, rel=0.01)
    assert values.max() <= shape.p100
    assert np.array_equal(values, made(name, 60_000).values)


def test_smooth_sensitivity_is_the_maximum_over_all_neighbours() -> None:
    """Against the definition: local sensitivities of all data sets at every distance, for few values."""
    values, bound, decay = np.array([1.0, 2.0, 2.0, 5.0, 7.0]), 9.0, 0.3
    for rank in range(1, 6):
        padded = {i: values[i - 1] for i in range(1, 6)}

        def at(i: int, padded: dict[int, float] = padded) -> float:
            return 0.0 if i < 1 else padded.get(i, 9.0)

        wanted = max(
            math.exp(-decay * k) * max(at(rank + t) - at(rank + t - k - 1) for t in range(k + 2)) for k in range(7)
        )
        assert smooth_sensitivity(values, bound, rank, decay) == pytest.approx(wanted)


def test_pak_raises_its_threshold() -> None:
    values = made("POS", 20_000).values
    raised = np.median([threshold_s_pak(values, 1657.0, 0.1, Random(seed=k)) for k in range(41)])
    plain = np.median([threshold_s_p(values, 1657.0, 0.1, Random(seed=k)) for k in range(41)])
    assert raised > 1657 > plain


def test_a_hierarchy_without_consistency_adds_up_its_nodes() -> None:
    """The variance of H2 and H16 on one range, over 1,500 runs: within 25%, five standard errors."""
    values, queries = np.zeros(256), np.array([[3, 250]])
    for name, nodes, height in (("H16", 13 + 10 + 14, 2), ("H2", 12, 8)):
        drawn = [float(HIERARCHIES[name](values, 1.0, 1.0, 256, queries, Random(seed=k))[0]) for k in range(1500)]
        assert np.var(drawn) == pytest.approx(2 * nodes * height**2, rel=0.25), name


def test_the_four_errors() -> None:
    errors, queries = np.array([2.0, -4.0]), np.array([[0, 2], [0, 4]])
    assert measure(errors, queries) == QueryErrors(mse=10.0, mae=3.0, mmse=1.0, mmae=1.0)
    drawn = random_queries(1000, 100, Random(seed=1))
    assert (drawn[:, 0] < drawn[:, 1]).all()
    assert (np.diff(drawn) <= 100).all()
    assert drawn.min() >= 0
    assert drawn.max() <= 1000
