"""What papers say of shuffling: their tables, and claims that are not proved, beside valid bounds."""

import pytest

from hubbub_papers import reproduce


@pytest.mark.papers
def test_table_9_2_follows_from_the_formulas():
    cells = {(cell.row, cell.column): cell for cell in reproduce("dissertation-table-9.2").cells}
    printed = [cell for cell in cells.values() if isinstance(cell.paper, int | float)]
    assert len(printed) == 24
    for cell in printed:
        close = 0.1 if (cell.row, cell.column) == ("eps_c = 0.8", "d' = 100") else 0.04
        assert cell.ours == pytest.approx(cell.paper, rel=close), cell
    for central in (0.2, 0.4, 0.6, 0.8):
        assert (
            cells[f"eps_c = {central:g}", "best by valid bounds"].ours < cells[f"eps_c = {central:g}", "SOLH"].ours / 20
        )


@pytest.mark.papers
@pytest.mark.parametrize("name", ["coco-figure-2", "sao2-figure-2"])
def test_claims_stand_beside_valid_bounds(name):
    claims = [cell for cell in reproduce(name).cells if cell.column == "claim"]
    assert claims
    assert all("holds" in cell.note for cell in claims), claims


def test_table_9_1_has_every_formula():
    names = [cell.column for cell in reproduce("dissertation-table-9.1").cells]
    assert {"EFMRTT19", "BBGN19", "FMT21", "clones", "stronger clones", "blanket"} <= set(names)
