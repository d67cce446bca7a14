"""Figure 2: the DNS stream, ToPS and PAK, each run once."""

from __future__ import annotations

import numpy as np

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas
from hubbub_papers.tops_topl.methods import answer_errors
from hubbub_papers.tops_topl.setting import dns_stream, holdout, reach_of
from hubbub_papers.tops_topl.streams import HOW

POINTS = 120
PANELS = (("ToPS", 0.01), ("ToPS", 0.05), ("PAK", 0.05), ("PAK", 0.1))


@reproduction("tops-figure-2", title="The DNS stream in 120 intervals, ToPS and PAK")
def tops_figure_2(context: Context) -> Reproduced:
    """The mean of each interval, released and in truth."""
    stream = dns_stream(context)
    m = holdout(stream)
    reach, rest = reach_of(stream, m), stream.values[m:]
    cuts = np.linspace(0, min(rest.size, reach), POINTS + 1).astype(np.int64)
    intervals = np.stack([cuts[:-1], cuts[1:]], axis=1)
    truth = np.diff(np.concatenate([[0.0], np.cumsum(rest)])[cuts]) / np.diff(cuts)
    figure, panels = canvas(2, 2)
    cells, distance = [], {}
    for panel, (method, epsilon) in zip(panels, PANELS, strict=True):
        rng = context.rng.child("tops-figure-2", method, str(epsilon))
        errors = answer_errors(method, stream, m, reach, epsilon, intervals, rng) / np.diff(cuts)
        panel.plot(truth, color="#d55e00", linewidth=1.2, label="truth")
        panel.plot(truth + errors, color="#0072b2", linewidth=1.2, label=method)
        panel.set_title(f"{method}, eps = {epsilon:g}", fontsize=10)
        panel.legend(frameon=False, fontsize=8)
        distance[method, epsilon] = float(np.abs(errors).mean())
        row = f"{method}, eps = {epsilon:g}"
        cells.append(Cell(row, "mean distance from the truth", None, distance[method, epsilon], HOW))
    share = distance["ToPS", 0.01] / float(truth.mean())
    note = "mean distance from the truth, to the mean of the stream; the bound is ours"
    close = Claim("ToPS at eps = 0.01 is pretty close to the ground truth", share, below=0.25, note=note)
    times = distance["PAK", 0.1] / distance["ToPS", 0.01]
    noisier = Claim("PAK at eps = 0.1 is noisier than ToPS at 0.01, by", times, above=1)
    return [*cells, close.cell(), noisier.cell()], figure
