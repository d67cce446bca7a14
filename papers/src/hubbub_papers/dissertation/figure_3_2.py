"""Figure 3.2: measured squared errors against the variances on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.data.synthetic import zipf
from hubbub.simulate.conversation import collect
from hubbub_papers.claims import Claim, judged
from hubbub_papers.dissertation.oracles import ORACLES
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_runs, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["figure_3_2"]

N = 10_000
EXPONENT = 1.1
BITS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
PANELS = (("DE", "SHE", "THE", "BLH"), ("SUE", "OUE", "OLH", "BLH"))


class FigurePoint(NamedTuple):
    """A point of the figure: a protocol, a domain size and an epsilon."""

    name: str
    domain: int
    epsilon: float


Errors = RunScores[FigurePoint]


@reproduction(
    "dissertation-figure-3.2",
    title="Empirical and analytical variance, Zipf s = 1.1, n = 10,000",
    repeats=10,
)
def figure_3_2(context: Context) -> Reproduced:
    """The mean over the domain of the squared error of c(i), mean and standard deviation of the runs."""
    by_domain = [FigurePoint(name, 1 << bits, 4.0) for name in ORACLES for bits in BITS]
    by_epsilon = [FigurePoint(name, 1024, epsilon) for name in ORACLES for epsilon in EPSILONS]
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
    return cells + judged(lambda runs: _claims(runs, n), errors), figure


def _squared_error(setting: FigurePoint, n: int, run: int, context: Context) -> float:
    rng = context.rng.child("figure 3.2", setting.name, setting.domain, str(setting.epsilon), run)
    values = zipf(n, setting.domain, EXPONENT, rng)
    mechanism = ORACLES[setting.name].deploy(setting.epsilon, setting.domain)
    counts = mechanism.estimate(collect(mechanism, values, rng)).counts()
    return float(((counts - np.bincount(values, minlength=setting.domain)) ** 2).mean())


def _analytical(setting: FigurePoint, n: int) -> float:
    return n * ORACLES[setting.name].closed(setting.epsilon, setting.domain)


def _exact(setting: FigurePoint, n: int) -> float:
    """Eq 3.2 of the deployed integers, averaged over the domain: shares of mean 1/d."""
    deployed = ORACLES[setting.name].deploy(setting.epsilon, setting.domain)
    return n * deployed.variance(1, 1 / setting.domain)


def _draw(
    panel: Axes,
    names: tuple[str, ...],
    settings: list[FigurePoint],
    errors: Errors,
    n: int,
    along: str,
) -> None:
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


def _claims(errors: Errors, n: int) -> list[Claim]:
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
