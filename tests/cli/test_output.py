"""Rows, bars and figures of an estimate next to the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hubbub.cli.output import bar, check_plot, figure, rows, save_plot, shorten
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

VALUES = [0.01, 0.5, -0.02, 0.2]
LABELS = ("rare", "$often^", "\U0001f602", "some")
FOUND = Estimate(value=VALUES, variance=[1e-4] * 4, n=1000, labels=LABELS)
TRUTH = np.array([0.0, 0.5, 0.3, 0.2])


def test_rows_are_the_largest_first() -> None:
    shown = rows(FOUND, TRUTH, threshold=0.05)
    assert [row.value for row in shown] == ["$often^", "some", "rare", "\U0001f602"]
    assert [row.significant for row in shown] == [True, True, False, False]
    assert [row.truth for row in shown] == [0.5, 0.2, 0.0, 0.3]
    assert all(row.low < row.estimate < row.high for row in shown)
    assert rows(FOUND, TRUTH, 0.05, most=2) == shown[:2]


@pytest.mark.parametrize("threshold", [-1.0, 0.05, 1.0])
def test_a_figure_of_any_names(tmp_path: Path, threshold: float, capsys: pytest.CaptureFixture[str]) -> None:
    shown = rows(FOUND, TRUTH, threshold)
    drawn = figure(shown, [row.value for row in shown], threshold, "all")
    save_plot(drawn, tmp_path / "all.png")
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == f"plot: {tmp_path / 'all.png'}\n"
    (ax,) = drawn.axes
    heights = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    assert [heights[place] for place in (3, 2, 1, 0)] == pytest.approx([100 * row.estimate for row in shown])


def test_a_bar_is_as_long_as_its_value() -> None:
    lengths = [len(bar(value / 100, 1.0, 20)) for value in range(101)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (0, 20)
    assert bar(1.0, 0.0, 20) == ""
    for mark in (-0.5, 0.0, 0.5, 1.0, 7.0):
        assert bar(0.3, 1.0, 10, mark=mark).count("◆") == 1
        assert len(bar(0.3, 1.0, 10, mark=mark)) <= 10


def test_names_are_made_printable() -> None:
    assert shorten("a\nb\x1b[31m", 20) == "a b [31m"
    assert len(shorten("x" * 50, 20)) == 20


def test_where_a_plot_cannot_be_saved(tmp_path: Path) -> None:
    check_plot(None)
    check_plot(tmp_path / "a.SVG")
    for wrong in (tmp_path / "a", tmp_path / "a.doc", tmp_path / "absent" / "a.png"):
        with pytest.raises(InvalidValue, match="plot: got"):
            check_plot(wrong)
