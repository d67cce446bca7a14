"""Tables 3.1 and 3.2, Figures 3.1 and 3.2: frequency oracles, their variance on paper and measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.data.synthetic import zipf
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import BLH, OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.she import SHE
from hubbub.mechanisms.frequency.unary import OUE, SUE, THE, Unary, best_theta, pass_rates
from hubbub.simulate.conversation import collect
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_runs, finish, legend_below, look
from hubbub_papers.result import Claim, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pure_variance(p: float, q: float) -> float:
    """Var[c(i)]/n of a pure protocol, at share 0 (Eq 3.3)."""
    return q * (1 - q) / (p - q) ** 2


@dataclass(frozen=True)
class Oracle:
    """A protocol on paper and deployed.

    `closed` is Var[c(i)]/n at share 0 for an epsilon and a domain size, with real-valued parameters as the paper
    computes it; `deploy` makes the mechanism, whose parameters are integers.
    """

    name: str
    closed: Callable[[float, int], float]
    deploy: Callable[[float, int], FrequencyOracle]


def _direct(epsilon: float, domain: int) -> float:
    total = math.exp(epsilon) + domain - 1  # Eq 3.4
    return pure_variance(math.exp(epsilon) / total, 1 / total)


def _symmetric(epsilon: float, domain: int) -> float:
    q = 1 / (math.exp(epsilon / 2) + 1)
    return pure_variance(1 - q, q)


def _hashing(epsilon: float, buckets: float) -> float:
    power = math.exp(epsilon)
    return pure_variance(power / (power + buckets - 1), 1 / buckets)


_ALL = (
    Oracle("DE", _direct, lambda epsilon, domain: GRR(epsilon=epsilon, domain=domain)),
    Oracle("SHE", lambda epsilon, _: 8 / epsilon**2, lambda epsilon, domain: SHE(epsilon=epsilon, domain=domain)),
    Oracle(
        "THE",
        lambda epsilon, _: pure_variance(*pass_rates(epsilon, 1.0)),
        lambda epsilon, domain: THE(epsilon=epsilon, domain=domain, theta=1.0),
    ),
    Oracle("SUE", _symmetric, lambda epsilon, domain: SUE(epsilon=epsilon, domain=domain)),
    Oracle(
        "OUE",
        lambda epsilon, _: pure_variance(0.5, 1 / (math.exp(epsilon) + 1)),
        lambda epsilon, domain: OUE(epsilon=epsilon, domain=domain),
    ),
    Oracle("BLH", lambda epsilon, _: _hashing(epsilon, 2), lambda epsilon, domain: BLH(epsilon=epsilon, domain=domain)),
    Oracle(
        "OLH",
        lambda epsilon, _: _hashing(epsilon, math.exp(epsilon) + 1),
        lambda epsilon, domain: OLH(epsilon=epsilon, domain=domain),
    ),
)

ORACLES: dict[str, Oracle] = {oracle.name: oracle for oracle in _ALL}
"""The seven protocols of Table 3.1, by name; THE at theta = 1, as in the tables and figures."""


def describe(mechanism: FrequencyOracle) -> str:
    """The integers that a deployed mechanism chose, in a few words."""
    if isinstance(mechanism, BLH | OLH):
        return f"g = {mechanism.buckets}"
    if isinstance(mechanism, SHE):
        return f"noise on a grid of 1/{mechanism.grid}, clamped at {mechanism.clamp} cells"
    if isinstance(mechanism, Unary):
        return f"{mechanism.width}-bit probabilities"
    return "64-bit probabilities"


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
        "one bit per value: the device cuts at the threshold",
    ),
    "SUE": Printed(
        "O(d)", "e^(eps/2)/(e^(eps/2) - 1)^2", lambda e, d: math.sqrt(e) / (math.sqrt(e) - 1) ** 2, "one bit per value"
    ),
    "OUE": Printed("O(d)", "4 e^eps/(e^eps - 1)^2", lambda e, d: 4 * e / (e - 1) ** 2, "one bit per value"),
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


@reproduction("wang-2021-analyzing-table-3.1", title="Communication cost and variance of the frequency oracles")
def table_3_1(context: Context) -> tuple[list[Cell], None]:
    """Bytes per report, and the variance of the deployed integers next to that of the printed formula."""
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


class PrintedColumn(NamedTuple):
    """A column: the protocol, its domain size, and the entries as printed, at eps 0.5, 1, 2 and 4."""

    name: str
    domain: int
    printed: tuple[float, float, float, float]


TABLE_EPSILONS = (0.5, 1.0, 2.0, 4.0)
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


@reproduction("wang-2021-analyzing-table-3.2", title="Numerical values of Var[c(i)]/n")
def table_3_2(context: Context) -> tuple[list[Cell], None]:
    """Eq 3.3 at real-valued parameters, as the paper; the note says what the deployed integers give."""
    cells = []
    for index, epsilon in enumerate(TABLE_EPSILONS):
        for heading, column in COLUMNS.items():
            oracle = ORACLES[column.name]
            mechanism = oracle.deploy(epsilon, column.domain)
            note = f"deployed ({describe(mechanism)}): {mechanism.variance(1):.4f}"
            ours = oracle.closed(epsilon, column.domain)
            cells.append(Cell(f"eps = {epsilon:g}", heading, column.printed[index], ours, note))
    return cells, None


N = 10_000
EPSILONS_3_1 = np.linspace(0.5, 5.0, 19)
DIRECT = (2, 32, 1024)


@reproduction("wang-2021-analyzing-figure-3.1", title="Numerical values of Var[c(i)] for different methods, n = 10,000")
def figure_3_1(context: Context) -> Reproduced:
    """Eq 3.3 at real-valued parameters."""
    figure, (panel,) = canvas(width=6.4, height=4.6)
    cells = []
    lines = [("DE", size) for size in DIRECT] + [(name, 1024) for name in ORACLES if name != "DE"]
    for name, size in lines:
        label = f"DE (d = {size:,})" if name == "DE" else "THE ($\\theta$ = 1)" if name == "THE" else name
        heading = f"DE (d = {size})" if name == "DE" else name
        curve = [N * ORACLES[name].closed(float(epsilon), size) for epsilon in EPSILONS_3_1]
        style = {**look(name), "label": label, "markevery": 2}
        if name == "DE":
            style["linestyle"] = {2: ":", 32: "--", 1024: "-"}[size]
        elif name == "OLH":  # the same curve as OUE's: let both be seen
            style |= {"linestyle": "--", "markevery": (1, 2)}
        panel.plot(EPSILONS_3_1, curve, **style)
        cells += [
            Cell(f"eps = {epsilon:g}", heading, None, value, "Eq 3.3 times n")
            for epsilon, value in zip(EPSILONS_3_1, curve, strict=True)
            if epsilon in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
        ]
    finish(panel, "$\\epsilon$", "Var[c(i)]", f"n = {N:,}")
    panel.legend(fontsize=8, ncols=2, frameon=False)
    return cells + [claim.cell() for claim in _claims_3_1()], figure


def _claims_3_1() -> list[Claim]:
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
            paper="d < 3 e^eps + 2",
            above=limit - 0.5,
            below=limit + 0.5,
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


EXPONENT = 1.1
BITS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
EPSILONS_3_2 = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
PANELS = (("DE", "SHE", "THE", "BLH"), ("SUE", "OUE", "OLH", "BLH"))


class FigurePoint(NamedTuple):
    """A point of the figure: a protocol, a domain size and an epsilon."""

    name: str
    domain: int
    epsilon: float


Errors = RunScores[FigurePoint]


@reproduction(
    "wang-2021-analyzing-figure-3.2", title="Empirical and analytical variance, Zipf s = 1.1, n = 10,000", repeats=10
)
def figure_3_2(context: Context) -> Reproduced:
    """The mean over the domain of the squared error of c(i), mean and standard deviation of the runs."""
    by_domain = [FigurePoint(name, 1 << bits, 4.0) for name in ORACLES for bits in BITS]
    by_epsilon = [FigurePoint(name, 1024, epsilon) for name in ORACLES for epsilon in EPSILONS_3_2]
    n = context.size(N)
    errors = context.measure(
        dict.fromkeys(by_domain + by_epsilon),
        lambda setting, run: {setting: _squared_error(setting, n, run, context)},
        "{0.name}, d = {0.domain}, eps = {0.epsilon:g}".format,
    )
    figure, panels = canvas(2, 2)
    for column, names in enumerate(PANELS):
        _draw(panels[column], names, by_domain, errors, n, "domain")
        _draw(panels[2 + column], names, by_epsilon, errors, n, "epsilon")
    panels[0].plot([], [], color="#555555", linewidth=1, label="analytical")
    legend_below(figure, panels, columns=8)
    runs = f"runs averaged: {context.repeats} of n = {n:,} (the paper: 10); Eq 3.3 gives"
    cells = [
        Cell(
            f"d = {setting.domain}, eps = {setting.epsilon:g}",
            setting.name,
            None,
            float(error.mean()),
            f"{runs} {_analytical(setting, n):.5g}; sd {error.std():.3g}",
        )
        for setting, error in errors.items()
    ]
    return cells + judged(lambda runs: _claims_3_2(runs, n), errors), figure


def _squared_error(setting: FigurePoint, n: int, run: int, context: Context) -> float:
    rng = context.rng.child("figure 3.2", setting.name, setting.domain, str(setting.epsilon), run)
    values = zipf(n, setting.domain, EXPONENT, rng)
    mechanism = ORACLES[setting.name].deploy(setting.epsilon, setting.domain)
    counts = mechanism.estimate(collect(mechanism, values, rng)).counts().value
    return float(((counts - np.bincount(values, minlength=setting.domain)) ** 2).mean())


def _analytical(setting: FigurePoint, n: int) -> float:
    return n * ORACLES[setting.name].closed(setting.epsilon, setting.domain)


def _exact(setting: FigurePoint, n: int) -> float:
    """Eq 3.2 of the deployed integers, averaged over the domain: shares of mean 1/d."""
    deployed = ORACLES[setting.name].deploy(setting.epsilon, setting.domain)
    return n * deployed.variance(1, 1 / setting.domain)


def _draw(panel: Axes, names: tuple[str, ...], settings: list[FigurePoint], errors: Errors, n: int, along: str) -> None:
    for name in names:
        points = [setting for setting in settings if setting.name == name]
        x = [getattr(setting, along) for setting in points]
        panel.plot(x, [_analytical(setting, n) for setting in points], color="#555555", linewidth=1, zorder=1)
        draw_runs(panel, x, [errors[setting] for setting in points], name, linestyle="none")
    if along == "domain":
        finish(panel, "domain size d", "squared error of c(i)", "$\\epsilon$ = 4")
        panel.set_xscale("log", base=2)
    else:
        finish(panel, "$\\epsilon$", "squared error of c(i)", "d = 1,024")


def _claims_3_2(errors: Errors, n: int) -> list[Claim]:
    claims = []
    for name in ORACLES:
        large = {
            setting: error.mean() for setting, error in errors.items() if setting.name == name and setting.domain >= 64
        }
        plain = [mean / _analytical(setting, n) for setting, mean in large.items()]
        exact = [mean / _exact(setting, n) for setting, mean in large.items()]
        note = f"mean over {len(large)} settings, d of at least 2^6 and eps 0.5 to 5"
        worst = f"{note}; the furthest is off by {max(abs(ratio - 1) for ratio in plain):.0%}"
        claims.append(Claim(f"{name}: measured to Eq 3.3", np.mean(plain), above=0.9, below=1.1, note=worst))
        claims.append(Claim(f"{name}: measured to Eq 3.2", np.mean(exact), above=0.9, below=1.1, note=note))
    for name in ("DE", "OUE", "OLH"):
        setting = FigurePoint(name, 4, 4.0)
        note = "d = 4 and eps = 4; Eq 3.3 leaves out the term in f_i"
        claims.append(
            Claim(f"{name}: measured to Eq 3.3", errors[setting].mean() / _analytical(setting, n), above=1, note=note)
        )
    return claims
