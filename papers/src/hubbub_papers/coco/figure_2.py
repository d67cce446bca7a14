"""Figure 2: amplification of Collision's epsilon by shuffling: the paper's claim, a valid bound, and others' bounds."""

from __future__ import annotations

import math
from itertools import product

from hubbub.mechanisms.ternary.collision import Collision
from hubbub.privacy.amplify import bounds
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish
from hubbub_papers.shuffle_claims import variation_claim

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
SETTINGS = tuple(product((10_000, 100_000), (4, 64)))
DELTA = 1e-6
CLAIM = "Theorem 5, claimed"
_LOOKS = {
    "blanket": ("#0072b2", "o"),
    CLAIM: ("#d55e00", "x"),
    "stronger clones": ("#009e73", "s"),
    "clones": ("#cc79a7", "^"),
    "EFMRTT19": ("#999999", "v"),
}
_NOTE = "log2 of epsilon over the amplified one; delta = 1e-6, which the figure does not state"


@reproduction(
    "coco-figure-2", title="Amplification of Collision by shuffling: the valid bound beside the paper's claim"
)
def figure_2(context: Context) -> Reproduced:
    """Numerical bounds; nothing is drawn at random."""
    cells: list[Cell] = []
    ratios: list[float] = []
    figure, panels = canvas(2, 2)
    for panel, (n, sparsity) in zip(panels, SETTINGS, strict=True):
        lines: dict[str, dict[float, float]] = {name: {} for name in _LOOKS}
        for epsilon in EPSILONS:
            for name, amplified in _amplified(epsilon, n, sparsity).items():
                lines[name][epsilon] = math.log2(epsilon / amplified)
            ratios.append(2 ** (lines[CLAIM][epsilon] - lines["blanket"][epsilon]))
        for name, line in lines.items():
            colour, marker = _LOOKS[name]
            panel.plot(list(line), list(line.values()), color=colour, marker=marker, markersize=4, label=name)
            cells += [
                Cell(f"n = {n:,}, s = {sparsity}, eps = {epsilon:g}", name, None, gain, _NOTE)
                for epsilon, gain in line.items()
            ]
        finish(panel, "$\\epsilon$", "log2 of the ratio", f"n = {n:,}, s = {sparsity}", log="")
    panels[0].legend(fontsize=8, frameon=False)
    return cells + [claim.cell() for claim in _claims(ratios)], figure


def _amplified(epsilon: float, n: int, sparsity: int) -> dict[str, float]:
    collision = Collision(
        epsilon=epsilon, dimension=max(128, sparsity), sparsity=sparsity, buckets=_buckets(epsilon, sparsity)
    )
    known = {bound.method: bound.epsilon for bound in bounds(collision, n=n, delta=DELTA) if bound.method in _LOOKS}
    return known | {CLAIM: variation_claim(collision, n=n, delta=DELTA).epsilon}


def _buckets(epsilon: float, sparsity: int) -> int:
    return max(sparsity + 1, math.floor(sparsity * math.exp(epsilon) + 2 * sparsity - 1))


def _claims(ratios: list[float]) -> list[Claim]:
    note = "the claim is no upper bound: see docs/shuffle.md; above 1 it promises more than is proved"
    return [
        Claim("the claimed epsilon is at most the valid one, the smallest ratio", min(ratios), above=0.999, note=note),
        Claim(
            "and not much below it, the largest ratio",
            max(ratios),
            below=1.1,
            note="so little is lost by the valid bound",
        ),
    ]
