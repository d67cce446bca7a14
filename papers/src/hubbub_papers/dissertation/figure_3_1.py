"""Figure 3.1: the variances on paper, as epsilon grows; and what section 3.4 says of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hubbub.mechanisms.frequency.unary import best_theta, pass_rates
from hubbub_papers.claims import Claim
from hubbub_papers.dissertation.oracles import ORACLES, pure_variance
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish, look

N = 10_000
EPSILONS = np.linspace(0.5, 5.0, 19)
DIRECT = (2, 32, 1024)


@reproduction("dissertation-figure-3.1", title="Numerical values of Var[c(i)] for different methods, n = 10,000")
def figure_3_1(context: Context) -> Reproduced:
    """Eq 3.3 at real-valued parameters."""
    figure, (panel,) = canvas(width=6.4, height=4.6)
    cells = []
    lines = [("DE", size) for size in DIRECT] + [(name, 1024) for name in ORACLES if name != "DE"]
    for name, size in lines:
        label = f"DE (d = {size:,})" if name == "DE" else "THE ($\\theta$ = 1)" if name == "THE" else name
        heading = f"DE (d = {size})" if name == "DE" else name
        curve = [N * ORACLES[name].closed(float(epsilon), size) for epsilon in EPSILONS]
        style = {**look(name), "label": label, "markevery": 2}
        if name == "DE":
            style["linestyle"] = {2: ":", 32: "--", 1024: "-"}[size]
        elif name == "OLH":  # the same curve as OUE's: let both be seen
            style |= {"linestyle": "--", "markevery": (1, 2)}
        panel.plot(EPSILONS, curve, **style)
        cells += [
            Cell(f"eps = {epsilon:g}", heading, None, value, "Eq 3.3 times n")
            for epsilon, value in zip(EPSILONS, curve, strict=True)
            if epsilon in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
        ]
    finish(panel, "$\\epsilon$", "Var[c(i)]", f"n = {N:,}")
    panel.legend(fontsize=8, ncols=2, frameon=False)
    return cells + [claim.cell() for claim in _claims()], figure


def _claims() -> list[Claim]:
    closed = {name: oracle.closed for name, oracle in ORACLES.items()}
    crossing = _root(lambda epsilon: closed["SHE"](epsilon, 2) - closed["BLH"](epsilon, 2), 0.5, 5.0)
    grid = [float(epsilon) for epsilon in np.linspace(0.05, 10, 200)]
    thetas = [best_theta(epsilon) for epsilon in grid]
    ratios = [pure_variance(*pass_rates(e, theta)) / closed["SHE"](e, 2) for e, theta in zip(grid, thetas, strict=True)]
    over = "eps from 0.05 to 10"
    limit = math.floor(3 * math.e + 2)
    best = max(d for d in range(2, 100) if closed["DE"](1.0, d) < closed["OUE"](1.0, d))
    quarter = max(closed["DE"](e, 2) / closed["OUE"](e, 2) for e in grid)
    split = min(closed["OLH"](e / 2, 2) / (2 * closed["OLH"](e, 2)) for e in grid)
    return [
        Claim("SHE is better than BLH above this eps", crossing, paper=2.5, below=2.5, note="the curves cross here"),
        Claim("BLH's Var/n as eps goes to infinity", closed["BLH"](50.0, 2), paper=1.0, above=0.999, below=1.001),
        Claim(
            "DE at d = 2 as a part of OUE, largest over eps", quarter, paper=0.25, above=0.25 - 1e-9, below=0.25 + 1e-9
        ),
        Claim(
            "largest d at which DE is best, eps = 1",
            best,
            paper=limit,
            above=limit - 0.5,
            below=limit + 0.5,
            note="the rule d < 3 e^eps + 2",
        ),
        Claim("THE at its best theta to SHE, largest over eps", max(ratios), below=1, note=over),
        Claim("smallest best theta of THE", min(thetas), above=0.5, below=1, note=over),
        Claim("largest best theta of THE", max(thetas), above=0.5, below=1, note=over),
        Claim(
            "two questions: OLH's variance, splitting eps to partitioning users, least over eps",
            split,
            above=1,
            note=f"section 3.4.2; {over}",
        ),
    ]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0."""
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2
