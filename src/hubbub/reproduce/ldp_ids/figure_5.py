"""Figure 5: how well releases tell the steps that are above a threshold, and what section 7.2.2 says of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.reproduce.claims import Claim
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.ldp_ids.sources import NEEDS, STEPS, Source, binary, length, linear, logistic, real, sine
from hubbub.reproduce.ldp_ids.style import finished, look, panels_of
from hubbub.reproduce.ldp_ids.sweep import FILTERED, MethodSetting, Runs, sweep, verdicts
from hubbub.reproduce.plots import finish
from hubbub.simulate.conversation import StreamRun
from hubbub.simulate.roc import auc, event_threshold, roc

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
    sources = [
        binary(context, "LNS", linear(context, steps)),
        binary(context, "Sin", sine(steps)),
        binary(context, FAST, sine(steps, b=0.05)),
        binary(context, "Log", logistic(steps)),
        *real(context, steps=steps, resampled_steps=min(steps, SHORT)),
    ]
    curves: dict[tuple[str, str], Curve] = {}

    def area(source: Source, method: str, setting: MethodSetting, run: StreamRun) -> list[float]:
        watched, truth = (table @ np.array(source.events) for table in (run.values, run.truth))
        if truth.max() == truth.min():  # as may be in a population scaled down to very few: there are no events
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
            made = "" if source.note else length(steps)
            remark = source.remark(made, f"runs: {context.repeats}, {SETTING}", WATCHED)
            cells.append(Cell(f"{source.name}: AUC", method, None, score, remark))
        finish(panel, "false alarms", "true alarms", source.title, log="")
    return cells + verdicts(_claims, runs), finished(figure)


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
