"""Figure 4: how often a report supports a sign that is held, its opposite, and one where nothing is held."""

from __future__ import annotations

from hubbub.mechanisms.ternary.coco import CoCo, coco_buckets
from hubbub.mechanisms.ternary.collision import Collision
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish
from hubbub_papers.sparse.methods import look

D, S, EPSILON = 128, 8, 0.5
BUCKETS = tuple(range(2 * S + 2, 82, 2))
RATES = {"P_t": ("p_true", "-"), "P_o": ("p_reverse", ":"), "P_f": ("p_false", "--")}
UNSTATED = f"eps = {EPSILON:g}, as in Figure 5: the figure's own is not stated"


@reproduction("coco-figure-4", title=f"P_t, P_o and P_f by the number of buckets t, d = {D}, s = {S}")
def figure_4(context: Context) -> Reproduced:
    """The exact rates of the deployed integers; nothing is drawn at random."""
    mechanisms = {
        kind.__name__: {t: kind(epsilon=EPSILON, dimension=D, sparsity=S, buckets=t) for t in BUCKETS}
        for kind in (Collision, CoCo)
    }
    rates: dict[tuple[str, str], dict[int, float]] = {}
    figure, (panel,) = canvas(width=6.4, height=4.6)
    for name, by_t in mechanisms.items():
        for label, (field, dashes) in RATES.items():
            rates[name, label] = {t: float(getattr(mechanism, field)) for t, mechanism in by_t.items()}
            style = {**look(name), "linestyle": dashes, "label": f"{name}, ${label}$", "markevery": 4}
            panel.plot(BUCKETS, list(rates[name, label].values()), **style)
    finish(panel, "number of buckets t", "rate", f"d = {D}, s = {S}, $\\epsilon$ = {EPSILON:g}", log="")
    panel.legend(fontsize=8, ncols=2, frameon=False)
    cells = [
        Cell(f"t = {t}", f"{name} {label}", None, value, UNSTATED)
        for (name, label), values in rates.items()
        for t, value in values.items()
        if t % 8 == 0 or t == BUCKETS[0]
    ]
    return cells + [claim.cell() for claim in _claims(rates)], figure


def _claims(rates: dict[tuple[str, str], dict[int, float]]) -> list[Claim]:
    """No claim compares P_o with P_f: that they are equal in Collision, and P_o smaller in CoCo, is by definition."""
    best = coco_buckets(EPSILON, D, S)
    statement = "P_o is significantly lower in CoCo than in Collision, the ratio"
    claims = []
    for t, words in ((max(BUCKETS, key=lambda t: _ratio(rates, t)), "the largest"), (best, "CoCo's best t")):
        note = f"at t = {t}, {words}; a tenth lower is what we take for significant"
        claims.append(Claim(statement, _ratio(rates, t), paper="significantly lower", below=0.9, note=note))
    return claims


def _ratio(rates: dict[tuple[str, str], dict[int, float]], t: int) -> float:
    return rates["CoCo", "P_o"][t] / rates["Collision", "P_o"][t]
