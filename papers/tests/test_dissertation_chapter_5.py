"""The tables of chapter 5, entry for entry."""

import math

import pytest

from hubbub.mechanisms.sets.psfo import PSFO
from hubbub_papers import reproduce
from hubbub_papers.amplification_claims import limited_amplification
from hubbub_papers.dissertation.chapter_5_amplification import amplified


def test_table_5_1_is_the_papers_entry_for_entry():
    cells = reproduce("wang-2021-analyzing-table-5.1").cells
    assert len(cells) == 30
    assert [round(cell.ours, 2) for cell in cells] == [cell.paper for cell in cells]


def test_the_deployed_integers_spend_what_table_5_1_says_and_no_more():
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        for length in (2, 5, 10, 50):
            psfo = PSFO(epsilon=epsilon, domain=1000, length=length, oracle="GRR")
            assert psfo.inner.effective_epsilon == pytest.approx(amplified(epsilon, length), abs=1e-9)
            assert epsilon - 1e-9 < psfo.effective_epsilon <= epsilon
    notes = {(cell.row, cell.column): cell.note for cell in reproduce("wang-2021-analyzing-table-5.1").cells}
    assert notes["eps = 1", "l = 10"] == "deployed: 2.900477, and a report spends 1.000000000"


def test_amplification_is_undone_by_sampling():
    # One of l items is the truth, the others are not: e^eps is the mean of e^eps' and l - 1 ones.
    for length in (1, 2, 5, 10, 50):
        assert (math.exp(amplified(0.7, length)) + length - 1) / length == pytest.approx(math.exp(0.7))


def test_table_5_2_has_the_prints_and_says_where_they_do_not_follow():
    cells = reproduce("wang-2021-analyzing-table-5.2").cells
    printed = [float(cell.paper) for cell in cells if cell.paper is not None]
    assert len(printed) == len(cells) == 60
    rounded = {(cell.row, cell.column): round(cell.ours, 2) for cell in cells}
    off = {place: ours for (place, ours), entry in zip(rounded.items(), printed, strict=True) if ours != entry}
    assert {(cell.row, cell.column) for cell in cells if "does not follow" in cell.note} == set(off)
    assert len(off) == 13
    assert off["delta = 0.001, eps = 4", "l = 5"] == 4.91
    assert off["delta = 0.001, eps = 1", "l = 20"] == 1.42
    assert off["delta = 0.001, eps = 4", "l = 100"] == 7.49
    assert off["delta = 1e-09, eps = 2", "l = 10"] == 2.09
    # Where the print differs it is on the safe side: it says less than the theorem allows.
    assert all(cell.ours >= entry - 0.005 for cell, entry in zip(cells, printed, strict=True))


def test_theorem_5_5_1_allows_no_more_than_its_inequality():
    for epsilon, length, delta in ((0.5, 20, 1e-3), (2.0, 10, 1e-9), (4.0, 100, 1e-3)):
        budget = limited_amplification(epsilon, length, delta)
        assert budget.delta <= delta
        fewer = budget.together - 1
        bins = math.ceil(length / fewer * math.expm1(epsilon) + 2)
        assert math.comb(length, budget.together) / bins**fewer > delta


@pytest.mark.parametrize("name", ["wang-2021-analyzing-figure-5.1", "wang-2021-analyzing-figure-5.5"])
def test_what_the_text_says_of_amplification_holds(name: str):
    claims = [cell for cell in reproduce(name).cells if cell.column == "claim"]
    assert len(claims) >= 2
    assert all(cell.note.startswith("holds") for cell in claims)
