"""Table 5.2 and Figure 5.5: what OLH gains from sampling where a failure of delta is allowed."""

from __future__ import annotations

import numpy as np

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub_papers.claims import Claim
from hubbub_papers.dissertation.amplification import LENGTHS, amplified
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.limited_amplification import hashing_delta, limited_amplification
from hubbub_papers.plots import canvas, finish

PRINTED = {
    1e-3: {
        0.1: (0.10, 0.10, 0.11, 0.13, 0.15, 0.15),
        0.5: (0.50, 0.50, 0.54, 0.62, 0.68, 0.80),
        1.0: (1.00, 1.00, 1.24, 1.35, 1.59, 1.73),
        2.0: (2.00, 2.20, 2.62, 3.10, 3.71, 4.28),
        4.0: (4.00, 4.50, 5.19, 5.88, 6.80, 7.20),
    },
    1e-9: {
        0.1: (0.10, 0.10, 0.10, 0.10, 0.12, 0.14),
        0.5: (0.50, 0.50, 0.50, 0.52, 0.59, 0.65),
        1.0: (1.00, 1.00, 1.00, 1.07, 1.30, 1.51),
        2.0: (2.00, 2.00, 2.00, 2.38, 2.93, 3.49),
        4.0: (4.00, 4.00, 4.50, 5.04, 5.82, 6.51),
    },
}
"""The table as it is printed, by delta: an epsilon a row, a length a column."""


@reproduction("dissertation-table-5.2", title="OLH's eps' on an item sampled from a set padded to l, (eps, delta)")
def table_5_2(context: Context) -> tuple[list[Cell], None]:
    """Theorem 5.5.1 at real-valued parameters; where the print differs, it has a larger l' than the theorem needs."""
    cells = []
    for delta, rows in PRINTED.items():
        for epsilon, row in rows.items():
            for length, printed in zip(LENGTHS, row, strict=True):
                budget = limited_amplification(epsilon, length, delta)
                note = (
                    f"Theorem 5.5.1, sets of at most l items: l' = {budget.together}, delta at most {budget.delta:.1e}"
                )
                if round(budget.epsilon, 2) != printed:
                    olh = OLH(epsilon=budget.epsilon, domain=1000, buckets=budget.buckets)
                    exact = hashing_delta(olh, length, epsilon)
                    note += f"; the print does not follow from the theorem; the exact delta of ours is {exact:.1e}"
                cells.append(
                    Cell(f"delta = {delta:g}, eps = {epsilon:g}", f"l = {length}", printed, budget.epsilon, note)
                )
    return cells, None


@reproduction("dissertation-figure-5.5", title="Privacy amplification of OLH for different l, (eps, delta)")
def figure_5_5(context: Context) -> Reproduced:
    """The same over a range of epsilon."""
    figure, panels = canvas(1, 2)
    epsilons = np.linspace(0.05, 4.0, 80)
    cells = []
    for panel, delta in zip(panels, PRINTED, strict=True):
        for length in (1, *LENGTHS):
            curve = [limited_amplification(float(epsilon), length, delta).epsilon for epsilon in epsilons]
            panel.plot(epsilons, curve, label=f"l = {length}")
            cells += [
                Cell(
                    f"delta = {delta:g}, eps = {epsilon:g}",
                    f"l = {length}",
                    None,
                    limited_amplification(epsilon, length, delta).epsilon,
                    "Theorem 5.5.1",
                )
                for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
            ]
        finish(panel, "$\\epsilon$", "$\\epsilon'$ of OLH", f"$\\delta$ = {delta:g}", log="")
        panel.legend(fontsize=8, frameon=False)
    return cells + [claim.cell() for claim in _claims()], figure


def _claims() -> list[Claim]:
    settings = [(delta, epsilon, length) for delta, rows in PRINTED.items() for epsilon in rows for length in LENGTHS]
    gains = [limited_amplification(epsilon, length, delta).epsilon / epsilon for delta, epsilon, length in settings]
    parts = [
        limited_amplification(epsilon, length, delta).epsilon / amplified(epsilon, length)
        for delta, epsilon, length in settings
    ]
    where = "over the settings of Table 5.2"
    return [
        Claim("OLH's eps' to eps, least", min(gains), above=1 - 1e-9, note=where),
        Claim("OLH's eps' to GRR's, largest", max(parts), below=1, note=where),
    ]
