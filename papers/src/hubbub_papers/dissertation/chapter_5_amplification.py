"""Tables 5.1 and 5.2, Figures 5.1 and 5.5: amplification by sampling an item of a padded set."""

import math

import numpy as np

from hubbub.core.errors import check_integer
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub_papers.amplification_claims import hashing_delta, limited_amplification
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish
from hubbub_papers.result import Claim

LENGTHS = (2, 5, 10, 20, 50, 100)
"""The lengths to which sets are padded in the tables of chapter 5."""


def amplified(epsilon: float, length: int) -> float:
    """The budget eps' of GRR that spends epsilon on a set padded to this length (Theorem 5.2.1)."""
    check_integer("length", length, 1)
    return math.log1p(length * math.expm1(epsilon))


ITEMS = 1000  # the deployed mechanism needs a number of them
PRINTED_5_1 = {
    0.1: (0.19, 0.42, 0.72, 1.13, 1.83, 2.44),
    0.5: (0.83, 1.45, 2.01, 2.64, 3.51, 4.19),
    1.0: (1.49, 2.26, 2.90, 3.57, 4.46, 5.15),
    2.0: (2.62, 3.49, 4.17, 4.86, 5.77, 6.46),
    4.0: (4.68, 5.59, 6.29, 6.98, 7.89, 8.59),
}
"""The table as it is printed: one epsilon per row, one length per column."""


@reproduction("wang-2021-analyzing-table-5.1", title="GRR's eps' on an item sampled from a set padded to l")
def table_5_1(context: Context) -> tuple[list[Cell], None]:
    """Theorem 5.2.1 at real-valued parameters, as the paper; the note says what the deployed integers give."""
    cells = []
    for epsilon, row in PRINTED_5_1.items():
        for length, printed in zip(LENGTHS, row, strict=True):
            psfo = PSFO(epsilon=epsilon, domain=ITEMS, length=length, oracle="GRR")
            note = f"deployed: {psfo.inner.effective_epsilon:.6f}, and a report spends {psfo.effective_epsilon:.9f}"
            cells.append(Cell(f"eps = {epsilon:g}", f"l = {length}", printed, amplified(epsilon, length), note))
    return cells, None


@reproduction("wang-2021-analyzing-figure-5.1", title="Privacy amplification of GRR for different l")
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
    return cells + [claim.cell() for claim in _claims_5_1()], figure


def _claims_5_1() -> list[Claim]:
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


PRINTED_5_2 = {
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
"""The table as it is printed, by delta: one epsilon per row, one length per column."""


@reproduction(
    "wang-2021-analyzing-table-5.2", title="OLH's eps' on an item sampled from a set padded to l, (eps, delta)"
)
def table_5_2(context: Context) -> tuple[list[Cell], None]:
    """Theorem 5.5.1 at real-valued parameters; where the print differs, it has a larger l' than the theorem needs."""
    cells = []
    for delta, rows in PRINTED_5_2.items():
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


@reproduction("wang-2021-analyzing-figure-5.5", title="Privacy amplification of OLH for different l, (eps, delta)")
def figure_5_5(context: Context) -> Reproduced:
    """The same over a range of epsilon."""
    figure, panels = canvas(1, 2)
    epsilons = np.linspace(0.05, 4.0, 80)
    cells = []
    for panel, delta in zip(panels, PRINTED_5_2, strict=True):
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
    return cells + [claim.cell() for claim in _claims_5_2()], figure


def _claims_5_2() -> list[Claim]:
    settings = [
        (delta, epsilon, length) for delta, rows in PRINTED_5_2.items() for epsilon in rows for length in LENGTHS
    ]
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
