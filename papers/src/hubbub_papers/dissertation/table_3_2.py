"""Table 3.2: the variances as numbers."""

from __future__ import annotations

from typing import NamedTuple

from hubbub_papers.dissertation.oracles import ORACLES, describe
from hubbub_papers.harness import Cell, Context, reproduction

__all__ = ["COLUMNS", "table_3_2"]


class PrintedColumn(NamedTuple):
    """A column: the protocol, its domain size, and the entries as printed, at eps 0.5, 1, 2 and 4."""

    name: str
    domain: int
    printed: tuple[float, float, float, float]


EPSILONS = (0.5, 1.0, 2.0, 4.0)
COLUMNS = {
    "DE (d = 2)": PrintedColumn("DE", 2, (3.92, 0.92, 0.18, 0.02)),
    "DE (d = 32)": PrintedColumn("DE", 32, (75.20, 11.08, 0.92, 0.03)),
    "DE (d = 2^10)": PrintedColumn("DE", 1024, (2432.40, 347.07, 25.22, 0.37)),
    "SHE": PrintedColumn("SHE", 1024, (32.00, 8.00, 2.00, 0.50)),
    "THE (theta = 1)": PrintedColumn("THE", 1024, (19.44, 5.46, 1.50, 0.34)),
    "SUE": PrintedColumn("SUE", 1024, (15.92, 3.92, 0.92, 0.18)),
    "OUE": PrintedColumn("OUE", 1024, (15.67, 3.68, 0.72, 0.08)),
    "BLH": PrintedColumn("BLH", 1024, (16.67, 4.68, 1.72, 1.08)),
    "OLH": PrintedColumn("OLH", 1024, (15.67, 3.68, 0.72, 0.08)),
}


@reproduction("dissertation-table-3.2", title="Numerical values of Var[c(i)]/n")
def table_3_2(context: Context) -> tuple[list[Cell], None]:
    """Eq 3.3 at real-valued parameters, as the paper; the note says what the deployed integers give."""
    cells = []
    for index, epsilon in enumerate(EPSILONS):
        for heading, column in COLUMNS.items():
            oracle = ORACLES[column.name]
            mechanism = oracle.deploy(epsilon, column.domain)
            note = f"deployed ({describe(mechanism)}): {mechanism.variance(1):.4f}"
            ours = oracle.closed(epsilon, column.domain)
            cells.append(Cell(f"eps = {epsilon:g}", heading, column.printed[index], ours, note))
    return cells, None
