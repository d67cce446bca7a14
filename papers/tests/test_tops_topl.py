"""ToPS's figures at a small size, PAK's threshold against its definition, the streams of Table 1's shape."""

import math
from pathlib import Path

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.random.source import Random
from hubbub_papers import REPRODUCTIONS, reproduce
from hubbub_papers.harness import Context
from hubbub_papers.tops_topl import methods
from hubbub_papers.tops_topl.methods import measure, random_queries, smooth_sensitivity, threshold_s_p, threshold_s_pak
from hubbub_papers.tops_topl.streams import PAPER, made, paper_stream

NAMES = [name for name in REPRODUCTIONS if name.startswith("wang-2021-streams-")]
SHORT = ("wang-2021-streams-figure-3", "wang-2021-streams-figure-9")  # one of the curator's, one of the devices'


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SHORT else pytest.mark.papers) for name in NAMES],
)
def test_every_figure_runs_and_saves(name: str, tmp_path: Path) -> None:
    result = reproduce(name, repeats=1, scale=0.004)
    assert all(math.isfinite(cell.ours) for cell in result.cells)
    assert len(result.save(tmp_path)) == (1 if result.figure is None else 2)
    # The paper prints numbers in Table 1 and in its text, and none of its figures'.
    if name != "wang-2021-streams-table-1":
        assert {cell.paper for cell in result.cells if cell.column != "claim"} == {None}
    if name == "wang-2021-streams-figure-8":
        claims = [cell for cell in result.cells if cell.column == "claim"]
        assert len(claims) == 8 * len(PAPER)
        assert all(cell.ours > 0.99 for cell in claims if "to be expected" in cell.row)  # the best is the best
    if name == "wang-2021-streams-figure-3":
        assert [cell.paper for cell in result.cells if "beats PAK, orders" in cell.row] == ["7 to 11"]


@pytest.mark.parametrize("name", PAPER)
def test_the_streams_have_table_1s_percentiles(name: str) -> None:
    shape, values = PAPER[name], made(name, 60_000).values
    assert np.percentile(values, [85, 95, 99.5]) == pytest.approx([shape.p85, shape.p95, shape.p995], rel=1e-3)
    assert values.mean() == pytest.approx(shape.average, rel=0.01)
    assert values.max() <= shape.p100
    assert np.array_equal(values, made(name, 60_000).values)


def test_a_stand_in_has_no_smaller_values_than_the_stream() -> None:
    """No transaction is empty: a power law from 0 on made a fifth of the stand-in for POS 0 and 1."""
    least = {name: int(made(name).values.min()) for name in PAPER}
    assert least == {"DNS": 0, "Fare": 0, "Kosarak": 1, "POS": 2}


def test_a_file_of_the_papers_own_data_is_read_and_checked_against_table_1(tmp_path: Path) -> None:
    values, file = made("POS").values, tmp_path / "pos.txt"
    file.write_text("length\n" + "\n".join(f"{value:.0f}" for value in values[::-1]), encoding="utf-8")
    cells = {
        (cell.row, cell.column): cell
        for cell in reproduce("wang-2021-streams-table-1", data={"pos": file}, scale=0.01).cells
    }
    shape = PAPER["POS"]
    printed = (shape.n, shape.bound, shape.p85, shape.p95, shape.p995, shape.p100, shape.average)
    columns = ("n", "max", "p85", "p95", "p99.5", "p100", "avg")
    assert tuple(cells["POS", column].paper for column in columns) == printed
    assert [cells["POS", column].ours for column in columns] == pytest.approx(printed, rel=0.01)
    # What is made from Table 1 is not compared with it.
    assert {cell.paper for (row, _), cell in cells.items() if row != "POS"} == {None}
    context = Context(1, Random(seed=1), data={"pos": file})
    assert paper_stream(context, "POS", 1000).values.tolist() == values[::-1][:1000].tolist()
    short, other = tmp_path / "short.txt", tmp_path / "other.txt"
    short.write_text("3\n4\n", encoding="utf-8")
    other.write_text("7\n" * shape.n, encoding="utf-8")
    for wrong, words in ((short, "515,597"), (other, "percentile 85"), (tmp_path / "none", "a number a line")):
        with pytest.raises(InvalidValue, match=words):
            reproduce("wang-2021-streams-table-1", data={"pos": wrong})
    with pytest.raises(InvalidValue, match="for wang-2021-streams-figure-6: dns"):
        reproduce("wang-2021-streams-figure-6", data={"pos": file})


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
        drawn = [
            float(methods.HIERARCHIES[name](values, 1.0, 1.0, 256, queries, Random(seed=k))[0]) for k in range(1500)
        ]
        assert np.var(drawn) == pytest.approx(2 * nodes * height**2, rel=0.25), name


def test_the_four_errors() -> None:
    errors, queries = np.array([2.0, -4.0]), np.array([[0, 2], [0, 4]])
    assert measure(errors, queries) == methods.QueryErrors(mse=10.0, mae=3.0, mmse=1.0, mmae=1.0)
    drawn = random_queries(1000, 100, Random(seed=1))
    assert (drawn[:, 0] < drawn[:, 1]).all()
    assert (np.diff(drawn) <= 100).all()
    assert drawn.min() >= 0
    assert drawn.max() <= 1000
