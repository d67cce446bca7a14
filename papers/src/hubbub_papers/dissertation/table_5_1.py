"""Table 5.1 and Figure 5.1: with how much GRR may report an item that was sampled from a set."""

from __future__ import annotations

import math

import numpy as np

from hubbub.mechanisms.sets.psfo import PSFO
from hubbub_papers.claims import Claim
from hubbub_papers.dissertation.amplification import LENGTHS, amplified
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish

ITEMS = 1000  # the deployed mechanism needs a number of them
PRINTED = {
    0.1: (0.19, 0.42, 0.72, 1.13, 1.83, 2.44),
    0.5: (0.83, 1.45, 2.01, 2.64, 3.51, 4.19),
    1.0: (1.49, 2.26, 2.90, 3.57, 4.46, 5.15),
    2.0: (2.62, 3.49, 4.17, 4.86, 5.77, 6.46),
    4.0: (4.68, 5.59, 6.29, 6.98, 7.89, 8.59),
}
"""The table as it is printed: an epsilon a row, a length a column."""


@reproduction("dissertation-table-5.1", title="GRR's eps' on an item sampled from a set padded to l")
def table_5_1(context: Context) -> tuple[list[Cell], None]:
    """Theorem 5.2.1 at real-valued parameters, as the paper; the note says what the deployed integers give."""
    cells = []
    for epsilon, row in PRINTED.items():
        for length, printed in zip(LENGTHS, row, strict=True):
            psfo = PSFO(epsilon=epsilon, domain=ITEMS, length=length, oracle="GRR")
            note = f"deployed: {psfo.inner.effective_epsilon:.6f}, and a report spends {psfo.effective_epsilon:.9f}"
            cells.append(Cell(f"eps = {epsilon:g}", f"l = {length}", printed, amplified(epsilon, length), note))
    return cells, None


@reproduction("dissertation-figure-5.1", title="Privacy amplification of GRR for different l")
def figure_5_1(context: Context) -> Reproduced:
    """The same over a range of epsilon."""
    figure, (panel,) = canvas(width=5.6, height=4.2)
    epsilons = np.linspace(0.05, 4.0, 80)
    for length in (1, *LENGTHS):
        panel.plot(epsilons, [amplified(float(epsilon), length) for epsilon in epsilons], label=f"l = {length}")
    finish(panel, "$\\epsilon$", "$\\epsilon'$ of GRR", log="")
    panel.legend(fontsize=8, frameon=False)
    cells = [
        Cell(f"eps = {epsilon:g}", f"l = {length}", None, amplified(epsilon, length), "Theorem 5.2.1")
        for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
        for length in (1, *LENGTHS)
    ]
    return cells + [claim.cell() for claim in _claims()], figure


def _claims() -> list[Claim]:
    parts = [(amplified(4.0, length) - 4.0) / math.log(length) for length in LENGTHS]
    return [
        Claim(
            "eps' - eps at eps = 4 as a part of ln l, least",
            min(parts),
            above=0.9,
            note="a sum, where the text says 'amplified by a factor of ln l'",
        ),
        Claim("eps' - eps at eps = 4 as a part of ln l, largest", max(parts), below=1.0),
        Claim("eps' at l = 1 as a part of eps, eps = 2", amplified(2.0, 1) / 2.0, above=1 - 1e-9, below=1 + 1e-9),
    ]
