"""Figure 1: the query of the threshold search, beside the error that it approximates."""

from __future__ import annotations

import numpy as np

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish, legend_below
from hubbub_papers.tops_topl.methods import height_of, search_of
from hubbub_papers.tops_topl.setting import dns_stream, holdout, reach_of
from hubbub_papers.tops_topl.streams import HOW

EPSILON = 0.1


@reproduction("tops-figure-1", title="The threshold search's query and the true squared error, DNS, eps = 0.1")
def tops_figure_1(context: Context) -> Reproduced:
    """Equation 6 and equation 4 of every theta, and where each is smallest."""
    stream = dns_stream(context)
    m = holdout(stream)
    reach = reach_of(stream, m)
    search = search_of(stream, EPSILON, reach, m).search
    query = -search.scores(search.count(stream.values[:m])) / search.cells
    theta, height = search.thresholds, height_of(reach)
    ordered = np.sort(stream.values[m:])
    places = np.searchsorted(ordered, theta, side="right")
    tail = np.concatenate([np.cumsum(ordered[::-1])[::-1], [0.0]])
    excess = (tail[places] - (ordered.size - places) * theta) / ordered.size
    noise = 2 * 15 * height**3 * theta**2 / EPSILON**2
    error = noise + (reach / 3 * excess) ** 2
    best_query, best_error = float(theta[np.argmin(query)]), float(theta[np.argmin(error)])
    figure, (panel,) = canvas()
    scale = np.sqrt(error.min()) / query.min()
    panel.plot(theta, query * scale, color="#0072b2", label="Eq 6, scaled")
    panel.plot(theta, np.sqrt(error), color="#d55e00", label="root of Eq 4")
    panel.plot(theta, np.sqrt(noise), color="#808080", linestyle=":", label="noise")
    panel.set_xlim(0, 6 * best_error)
    finish(panel, "$\\theta$", "error", "DNS, eps = 0.1")
    legend_below(figure, [panel], columns=3)
    cost = float(error[np.argmin(query)] / error.min())
    cells = [
        Cell("theta_q, the smallest query", "theta", None, best_query, HOW),
        Cell("theta_t, the smallest error", "theta", None, best_error, HOW),
    ]
    note = "the paper shows the two in a figure, and prints no number; the bound is ours"
    claim = Claim("theta_q is close to theta_t: squared error at theta_q to the smallest", cost, below=4, note=note)
    return [*cells, claim.cell()], figure
