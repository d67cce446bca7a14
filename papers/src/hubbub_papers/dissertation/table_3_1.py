"""Table 3.1: what a report costs to send, and the variance it buys."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hubbub_papers.dissertation.oracles import ORACLES, describe
from hubbub_papers.harness import Cell, Context, reproduction

DOMAIN = 1024
EPSILON = 1.0


class Printed(NamedTuple):
    """A column of the table as it is printed."""

    cost: str
    words: str
    formula: Callable[[float, float], float]  # of e^eps and the domain size
    cost_here: str


PRINTED = {
    "DE": Printed("O(log d)", "(d - 2 + e^eps)/(e^eps - 1)^2", lambda e, d: (d - 2 + e) / (e - 1) ** 2, "a code"),
    "SHE": Printed("O(d)", "8/eps^2", lambda e, d: 8 / math.log(e) ** 2, "a noisy count a value, 2 bytes each"),
    "THE": Printed(
        "O(d)",
        "(2 e^(eps/2) - 1)/(e^(eps/2) - 1)^2",
        lambda e, d: (2 * math.sqrt(e) - 1) / (math.sqrt(e) - 1) ** 2,
        "a bit a value: the device cuts at the threshold",
    ),
    "SUE": Printed(
        "O(d)",
        "e^(eps/2)/(e^(eps/2) - 1)^2",
        lambda e, d: math.sqrt(e) / (math.sqrt(e) - 1) ** 2,
        "a bit a value",
    ),
    "OUE": Printed("O(d)", "4 e^eps/(e^eps - 1)^2", lambda e, d: 4 * e / (e - 1) ** 2, "a bit a value"),
    "BLH": Printed(
        "O(log n)",
        "(e^eps + 1)^2/(e^eps - 1)^2",
        lambda e, d: (e + 1) ** 2 / (e - 1) ** 2,
        "a 64-bit seed and a bit, in a byte",
    ),
    "OLH": Printed(
        "O(log n)", "4 e^eps/(e^eps - 1)^2", lambda e, d: 4 * e / (e - 1) ** 2, "a 64-bit seed and a bucket, in a byte"
    ),
}


@reproduction("dissertation-table-3.1", title="Communication cost and variance of the frequency oracles")
def table_3_1(context: Context) -> tuple[list[Cell], None]:
    """Bytes a report, and the variance of the deployed integers beside the printed formula's."""
    cells = []
    for name, printed in PRINTED.items():
        mechanism = ORACLES[name].deploy(EPSILON, DOMAIN)
        cost = f"{printed.cost_here}; bytes on the wire at d = {DOMAIN:,}, before framing"
        cells.append(Cell(name, "communication cost", printed.cost, float(mechanism.report_bytes), cost))
        formula = printed.formula(math.exp(EPSILON), DOMAIN)
        where = f"{printed.words} at eps = {EPSILON:g}" + (f", d = {DOMAIN:,}" if name == "DE" else "")
        note = f"paper: {where}; ours: the deployed integers' ({describe(mechanism)})"
        cells.append(Cell(name, "Var[c(i)]/n", formula, mechanism.variance(1), note))
    return cells, None
