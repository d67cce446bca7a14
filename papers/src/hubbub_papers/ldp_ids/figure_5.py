"""Figure 5: how well releases detect the steps above a threshold, and the statements of section 7.2.2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.simulate.conversation import StreamRun
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import NEEDS, STEPS, Source, binary, real, sine, synthetic
from hubbub_papers.ldp_ids.style import look, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import FILTERED, MethodSetting, Runs, sweep, verdicts
from hubbub_papers.plots import finish
from hubbub_papers.roc import auc, event_threshold, roc

SHORT = 400  # steps of the real streams with many devices
METHODS = ("LBA", "LSP", "LPU", "LPD", "LPA")
OURS = tuple(method + FILTERED for method in ("LPD", "LPA"))
FAST = "Sin, b = 0.05"
SETTING = MethodSetting(1.0, 20)
WATCHED = "watched: the share of 1, or of the devices with any event (the mean of a histogram of shares is always 1/d)"
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


@reproduction(
    "ldp-ids-figure-5",
    title="ROC curves of detecting above-threshold steps, eps = 1, w = 20",
    repeats=3,
    needs=NEEDS,
)
def figure_5(context: Context, steps: int = STEPS) -> Reproduced:
    """The area under the curve, mean of the runs; the curves drawn are the first run's."""
    lns, sin, log = synthetic(context, steps)
    sources = [
        lns,
        sin,
        binary(context, FAST, sine(steps, b=0.05)),
        log,
        *real(context, steps=steps, resampled_steps=min(steps, SHORT)),
    ]
    curves: dict[tuple[str, str], Curve] = {}

    def area(source: Source, method: str, setting: MethodSetting, run: StreamRun) -> list[float]:
        watched, truth = (table @ np.array(source.events) for table in (run.values, run.truth))
        if truth.max() == truth.min():  # no events, as happens in a population scaled down to a few devices
            return [np.nan]
        curve = roc(watched, truth, event_threshold(truth))
        curves.setdefault((source.name, method), curve)
        return [auc(*curve)]

    runs = sweep(context, [(source, SETTING) for source in sources], methods=METHODS + OURS, score=area)
    figure, panels = panels_of([source.name for source in sources], columns=3)
    cells = []
    for source in sources:
        panel = panels[source.name]
        panel.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=0.8, linestyle=":")
        for method in METHODS + OURS:
            if method in METHODS:
                panel.plot(*curves.get((source.name, method), ([], [])), **{**look(method), "marker": ""})
            score = float(runs[source.name, method, SETTING].mean())
            remark = source.remark(f"runs: {context.repeats}, {SETTING}", WATCHED, steps=steps)
            cells.append(Cell(f"{source.name}: AUC", method, None, score, remark))
        finish(panel, "false alarms", "true alarms", source.title, log="")
    return cells + verdicts(_claims, runs), with_legend(figure)


def _claims(runs: Runs) -> list[Claim]:
    area = {(source, method): float(rows.mean()) for (source, method, _), rows in runs.items()}
    names = list(dict.fromkeys(source for source, _ in area))
    claims = []
    for name in names:
        population = min(area[name, method] for method in ("LPU", "LPD", "LPA"))
        claims.append(
            Claim(f"{name}: AUC, the least of LPU, LPD, LPA less LBA's", population - area[name, "LBA"], above=0)
        )
    for name in names:
        for method in OURS:
            lead = area[name, method] - area[name, method.removesuffix(FILTERED)]
            claims.append(Claim(f"{name}: AUC, {method} less as printed", lead, above=0))
        for method in ("LPD", "LPA"):
            claims += [
                Claim(f"{name}: AUC, {method} less LSP", area[name, method] - area[name, "LSP"], above=0),
                Claim(f"{name}: AUC, {method} less LPU", area[name, method] - area[name, "LPU"], above=0),
            ]
    return claims
