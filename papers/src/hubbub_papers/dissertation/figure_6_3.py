"""Figure 6.3: the noise error of marginals of s attributes, and the t and s that Algorithm 2 chooses."""

from __future__ import annotations

from hubbub.protocols.marginals.plan import THETA, covering_design, noise_error, plan_marginals, sampling_error
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish, legend_below

N, M, K = 2**16, 8, 3
EPSILONS = tuple(round(0.2 * step, 1) for step in range(1, 11))
SIZES = (2,) * M


@reproduction("dissertation-figure-6.3", title="Noise errors times k, n = 2^16, m = 8, k = 3, and what is chosen")
def figure_6_3(context: Context) -> Reproduced:
    """k NE by Eq 6.4 for every s, the numbers of the text's example, and t and s by Algorithm 2."""
    errors = {(s, e): K * noise_error(N, SIZES, e, s) for s in range(1, M + 1) for e in EPSILONS}
    cells = [Cell(f"eps = {e:g}", f"s = {s}", None, error, "Eq 6.4") for (s, e), error in errors.items()]
    cells += [
        Cell("eps = 2, s = 3", "k NE", 0.00032, errors[3, 2.0], "Eq 6.4"),
        Cell("eps = 2, s = 4", "k NE", 0.00076, errors[4, 2.0], "Eq 6.4; printed without rounding up"),
        Cell("s = 3, t = 56", "SE", 0.00085, sampling_error(N, 56), "Eq 6.5"),
        Cell("s = 4, t = 14", "SE", 0.00021, sampling_error(N, 14), "Eq 6.5"),
        Cell("marginals of 4 that cover 3 of 8", "t", 14, float(len(covering_design(M, K, 4, 1000) or ())), ""),
    ]
    chosen = {e: plan_marginals(N, SIZES, e, k=K) for e in EPSILONS}
    for e, plan in chosen.items():
        cells += [
            Cell(f"eps = {e:g}", name, None, float(x), "Algorithm 2") for name, x in (("t", plan.t), ("s", plan.s))
        ]
    small = max(plan.s for e, plan in chosen.items() if e <= 1.4)
    cells += [
        Claim("eps up to 1.4: the largest s chosen", small, paper="only s = 2", above=1.5, below=2.5).cell(),
        Claim("eps = 2: s", chosen[2.0].s, paper=4, above=3.5, below=4.5).cell(),
        Claim("eps = 2: t", chosen[2.0].t, paper=14, above=13.5, below=14.5).cell(),
    ]
    figure, (panel,) = canvas(width=6, height=4.4)
    for s in range(1, M + 1):
        panel.plot(EPSILONS, [errors[s, e] for e in EPSILONS], marker="o", markersize=3, label=f"s = {s}")
    panel.axhline(THETA, color="#808080", linewidth=0.8)
    finish(panel, "$\\epsilon$", "k NE", "n = $2^{16}$, m = 8, k = 3")
    legend_below(figure, [panel], columns=4)
    return cells, figure
