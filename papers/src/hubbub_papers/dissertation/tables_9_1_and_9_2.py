"""Tables 9.1 and 9.2: amplification formulas in numbers, and how accurate SOLH is by its number of buckets."""

from __future__ import annotations

import math

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.planning.shuffled import choose_shuffled
from hubbub.privacy.amplify import bounds
from hubbub_papers.harness import Cell, Context, reproduction

N, DELTA, DOMAIN = 990_002, 1e-9, 42_178
CENTRAL = (0.2, 0.4, 0.6, 0.8)
BUCKETS = (45, 177, 397, 705)
UTILITY = {
    "SOLH": (5.27e-8, 1.30e-8, 5.76e-9, 3.24e-9),
    "d' = 10": (1.31e-7, 1.17e-7, 1.14e-7, 1.13e-7),
    "d' = 100": (1.73e-7, 1.55e-8, 1.22e-8, 1.22e-8),
    "d' = 1000": (1.02e-4, 2.60e-5, 4.02e-8, 3.66e-9),
    "RAP_R": (7.82e-9, 1.92e-9, 8.53e-10, 4.78e-10),
}
_AMPLIFIED = ("EFMRTT19", "BBGN19", "FMT21", "clones", "stronger clones", "blanket")


@reproduction("dissertation-table-9.1", title="Amplification of GRR by shuffling, in numbers")
def table_9_1(context: Context) -> tuple[list[Cell], None]:
    """The table prints formulas; here are their numbers at two settings, with the bounds that came later."""
    cells = []
    for epsilon, domain, n in ((0.4, 2, 100_000), (2.0, 100, 1_000_000)):
        known = {bound.method: bound for bound in bounds(GRR(epsilon=epsilon, domain=domain), n=n, delta=DELTA)}
        binary = math.sqrt(32 * math.log(4 / DELTA) * (math.exp(epsilon) + 1) / n)
        if domain == 2 and math.sqrt(192 / n * math.log(4 / DELTA)) < binary < 1:
            note = "the paper's second row, for two values"
            cells.append(Cell(f"eps = {epsilon:g}, d = {domain}, n = {n:,}", "CSUZZ19", None, binary, note))
        for method in _AMPLIFIED:
            if method in known:
                row = f"eps = {epsilon:g}, d = {domain}, n = {n:,}"
                cells.append(Cell(row, method, None, known[method].epsilon, f"delta = {DELTA:g}"))
    return cells, None


@reproduction("dissertation-table-9.2", title="SOLH and RAP_R on Kosarak's size: d' and the variance of a share")
def table_9_2(context: Context) -> tuple[list[Cell], None]:
    """The formulas as printed; beside them, what the valid numerical bounds make of the same central epsilon."""
    cells = []
    for index, central in enumerate(CENTRAL):
        row = f"eps_c = {central:g}"
        room = central**2 * (N - 1) / (14 * math.log(2 / DELTA))
        best = round((room + 2) / 3)
        cells.append(Cell(row, "d'", BUCKETS[index], best, "(M+2)/3, rounded"))
        fixed = {"SOLH": best, "d' = 10": 10, "d' = 100": 100, "d' = 1000": 1000}
        for name, buckets in fixed.items():
            cells.append(Cell(row, name, UTILITY[name][index], _variance(room, buckets, central), _note(room, buckets)))
        doubled = (2 * central) ** 2 * (N - 1) / (56 * math.log(4 / DELTA))
        rap = (doubled - 1) / (N * (doubled - 2) ** 2)
        cells.append(
            Cell(
                row,
                "RAP_R",
                UTILITY["RAP_R"][index],
                rap,
                "RAP's Prop 9.3.4 at twice the epsilon, which holds for sums of bits alone",
            )
        )
        for choice in choose_shuffled(domain=DOMAIN, n=N, epsilon=central, delta=DELTA)[:1]:
            note = (
                f"{type(choice.mechanism).__name__}, local epsilon {choice.mechanism.epsilon:.3g}, by the blanket; ours"
            )
            cells.append(Cell(row, "best by valid bounds", None, choice.variance, note))
    return cells, None


def _variance(room: float, buckets: int, central: float) -> float:
    """Prop 9.3.5; where so many leave nothing to amplify, two buckets at the central epsilon itself (Eq 9.3)."""
    if room <= buckets:
        power = math.exp(central)
        return (power + 1) ** 2 / (N * (power - 1) ** 2)
    return room**2 / (N * (room - buckets) ** 2 * (buckets - 1))


def _note(room: float, buckets: int) -> str:
    return (
        "Prop 9.3.5"
        if room > buckets
        else "nothing to amplify with so many buckets: two of them without shuffling, which is what the table has"
    )
