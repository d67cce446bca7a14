"""Figure 4: how often a report supports a sign that is held, its opposite, and one where nothing is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.mechanisms.ternary.coco import CoCo
from hubbub.mechanisms.ternary.collision import Collision
from hubbub.reproduce.claims import Claim
from hubbub.reproduce.dissertation.style import canvas, finish
from hubbub.reproduce.harness import Cell, Context, reproduction
from hubbub.reproduce.sparse.methods import look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BUCKETS", "EPSILON", "D", "S", "figure_4"]

D, S, EPSILON = 128, 8, 0.5
BUCKETS = tuple(range(2 * S + 2, 82, 2))
RATES = {"P_t": ("p_true", "-"), "P_o": ("p_reverse", ":"), "P_f": ("p_false", "--")}
UNSTATED = f"eps = {EPSILON:g}, as in Figure 5: the figure's own is not stated"


@reproduction("coco-figure-4", title=f"P_t, P_o and P_f by the number of buckets t, d = {D}, s = {S}")
def figure_4(context: Context) -> tuple[list[Cell], Figure]:
    """The exact rates of the deployed integers; nothing is drawn at random."""
    made = {
        kind.__name__: {t: kind(epsilon=EPSILON, dimension=D, sparsity=S, buckets=t) for t in BUCKETS}
        for kind in (Collision, CoCo)
    }
    rates: dict[tuple[str, str], dict[int, float]] = {}
    figure, (panel,) = canvas(width=6.4, height=4.6)
    for name, by_t in made.items():
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
    def largest(above: tuple[str, str], below: tuple[str, str]) -> tuple[float, int]:
        return max((rates[above][t] / rates[below][t], t) for t in BUCKETS)

    own, at = largest(("CoCo", "P_o"), ("CoCo", "P_f"))
    other, where = largest(("CoCo", "P_o"), ("Collision", "P_o"))
    same, _ = largest(("Collision", "P_o"), ("Collision", "P_f"))
    least = min(
        (1 - rates["CoCo", "P_o"][t] / rates["CoCo", "P_t"][t])
        / (1 - rates["CoCo", "P_f"][t] / rates["CoCo", "P_t"][t])
        for t in BUCKETS
    )
    return [
        Claim("CoCo: P_o is smaller than P_f, the largest ratio", own, below=1, note=f"at t = {at}"),
        Claim(
            "P_o is significantly lower in CoCo than in Collision, the largest ratio",
            other,
            below=1,
            note=f"at t = {where}",
        ),
        Claim("Collision: P_o is P_f, their ratio", same, paper=1.0, above=1 - 1e-12, below=1 + 1e-12),
        Claim("CoCo: the gap P_t - P_o to the gap P_t - P_f, the least", least, above=1),
    ]
