"""Figure 1: the rates of ExSub and its squared errors by the size m of a set, and the best m."""

from __future__ import annotations

import math

import numpy as np

from hubbub.mechanisms.ternary.exsub import ExSub, best_size
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish

POSITIONS, S, EPSILON = 512, 4, 0.5
SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256)
RATES = {"p_t": ("p_true", "#0072b2"), "p_r": ("p_reverse", "#d55e00"), "p_f": ("p_false", "#009e73")}
STUBS = "d' = 512 positions in all, 4 of them stubs"


@reproduction("sao2-figure-1", title="Rates and squared errors of ExSub by m, d' = 512, s = 4, eps = 0.5")
def figure_1(context: Context) -> Reproduced:
    """Exact, for one report; nothing is drawn at random."""
    mechanisms = {m: _exsub(m) for m in SIZES}
    figure, (left, right) = canvas(1, 2)
    cells = []
    for label, (field, colour) in RATES.items():
        values = [float(getattr(mechanism, field)) for mechanism in mechanisms.values()]
        left.plot(SIZES, values, color=colour, marker="o", markersize=4, label=f"${label}$")
        cells += [Cell(f"m = {m}", label, None, value, STUBS) for m, value in zip(SIZES, values, strict=True)]
    for of, colour in (("mean", "#0072b2"), ("frequency", "#d55e00")):
        errors = [math.log(_error(mechanism, of)) for mechanism in mechanisms.values()]
        right.plot(SIZES, errors, color=colour, marker="o", markersize=4, label="value" if of == "mean" else of)
        cells += [
            Cell(f"m = {m}", f"ln MSE of {of}", None, value, STUBS) for m, value in zip(SIZES, errors, strict=True)
        ]
    finish(left, "m", "rate", f"d' = {POSITIONS}, s = {S}, $\\epsilon$ = {EPSILON:g}", log="")
    finish(right, "m", "ln MSE", "n = 1", log="x")
    left.legend(frameon=False)
    right.legend(frameon=False)
    return cells + [claim.cell() for claim in _claims()], figure


def _exsub(m: int) -> ExSub:
    return ExSub(epsilon=EPSILON, dimension=POSITIONS - S, sparsity=S, m=m)


def _error(mechanism: ExSub, of: str) -> float:
    return mechanism.mse(of="mean" if of == "mean" else "frequency", positions=POSITIONS)


def _claims() -> list[Claim]:
    power = math.exp(EPSILON)
    printed = {
        "mean": math.ceil(POSITIONS / (power * S + S + 2)),
        "frequency": math.ceil(POSITIONS / (power * S + 2 * S + 1)),
    }
    claims = []
    for of, m in printed.items():
        best = best_size(EPSILON, POSITIONS, S, of="mean" if of == "mean" else "frequency")
        cost = _error(_exsub(m), of) / _error(_exsub(best), of) - 1
        note = f"m = {m} as printed, {best} by search; the bound is ours"
        statement = f"the printed m nearly minimises the MSE of the {of}: it costs"
        claims.append(Claim(statement, cost, paper="approximately 0", below=0.02, note=note))
    reverse = max(float(_exsub(m).p_reverse / _exsub(m).p_false) for m in SIZES[1:])
    note = "m of at least 2: a single position is as often the reverse of what is held as of nothing"
    claims.append(Claim("p_r is below p_f, the largest ratio", reverse, below=1, note=note))
    falls = np.diff([float(_exsub(m).p_true / _exsub(m).p_reverse) for m in SIZES])
    claims.append(Claim("p_t to p_r falls as m grows, its largest step", float(falls.max()), below=0))
    return claims
