"""Figures 3 to 5: the error of every method on every stream, and the detection of events."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.simulate.conversation import StreamRun
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import NEEDS, STEPS, Source, binary, real, sine, synthetic
from hubbub_papers.ldp_ids.sweep import (
    FILTERED,
    METHODS,
    MRE,
    MSE,
    PAIRS,
    SPREAD,
    MethodSetting,
    Runs,
    StreamPanel,
    StreamStudy,
    cells_of_runs,
    look,
    mean,
    panels_of,
    sweep,
    theory,
    verdicts,
    with_legend,
)
from hubbub_papers.plots import finish
from hubbub_papers.result import Claim
from hubbub_papers.roc import auc, event_threshold, roc

STEPS_3 = 400
SHORT_3 = 190  # steps of the real streams with many devices
EPSILONS = (0.5, 1.0, 2.0, 4.0)
WINDOWS = (10, 20, 30, 50)
Settings = Mapping[float, MethodSetting]  # by what the horizontal axis shows
Claims = Callable[[Runs, Sequence[Source], Settings], list[Claim]]


def _measure(context: Context, settings: Settings, axis: str, steps: int, claims: Claims) -> Reproduced:
    sources = [*synthetic(context, steps), *real(context, steps=steps, resampled_steps=min(steps, SHORT_3))]
    panels = [StreamPanel(s.title, axis, {x: (s, setting) for x, setting in settings.items()}) for s in sources]
    return StreamStudy(panels, lambda some: claims(some, sources, settings), cells_of_runs(context, steps)).run(context)


@reproduction("ren-2022-ldpids-figure-3", title="MRE of all methods, eps 0.5 to 4, w = 20", repeats=3, needs=NEEDS)
def figure_3(context: Context, steps: int = STEPS_3) -> Reproduced:
    """Every stream at the paper's window."""
    settings = {epsilon: MethodSetting(epsilon, 20) for epsilon in EPSILONS}
    return _measure(context, settings, "$\\epsilon$", steps, _claims_of_3)


@reproduction("ren-2022-ldpids-figure-4", title="MRE of all methods, w 10 to 50, eps = 1", repeats=3, needs=NEEDS)
def figure_4(context: Context, steps: int = STEPS_3) -> Reproduced:
    """Every stream at the paper's epsilon."""
    return _measure(context, {float(w): MethodSetting(1.0, w) for w in WINDOWS}, "w", steps, _claims_of_4)


def _claims_of_3(runs: Runs, sources: Sequence[Source], settings: Settings) -> list[Claim]:
    claims = []
    first, last = settings[EPSILONS[0]], settings[EPSILONS[-1]]
    for source in sources:
        name, over = source.name, "geometric mean over eps"

        def relative(method: str, rival: str, column: int, name: str = name) -> list[float]:
            return [mean(runs, name, method, s, column) / mean(runs, name, rival, s, column) for s in settings.values()]

        fall = {m: mean(runs, name, m, last, MRE) / mean(runs, name, m, first, MRE) for m in METHODS}
        least = max(fall, key=lambda m: fall[m])
        statement = f"{name}: error falls with eps, MRE at {EPSILONS[-1]:g} to {EPSILONS[0]:g}"
        claims.append(Claim(statement, fall[least], below=1, note=f"the largest of all methods: {least}"))
        for population, budget in PAIRS:
            for column, what in ((MSE, "MSE"), (MRE, "MRE")):
                ratios = relative(population, budget, column)
                statement = f"{name}: population beats budget, {what}, {population} to {budget}"
                claims.append(Claim(statement, max(ratios), below=1, note="the largest over eps"))
        for method in ("LBD", "LBA"):
            ratio = _geometric(relative(method, "LBU", MRE))
            claims.append(Claim(f"{name}: MRE, {method} to LBU", ratio, below=1, note=over))
        lead = _geometric(
            [min(both) for both in zip(relative("LPD", "LSP", MRE), relative("LPA", "LSP", MRE), strict=True)]
        )
        claims.append(Claim(f"{name}: MRE, LSP to the better of LPD and LPA", 1 / lead, below=1, note=over))
        for method, formula in (("LBU", "V(eps/w, n)"), ("LPU", "V(eps, n/w) and the sample's f(1-f)w/n (1 - 1/w)")):
            on_paper = [
                mean(runs, name, method, s, MSE)
                / theory(method, source.question, s, source.n, mean(runs, name, method, s, SPREAD))
                for s in settings.values()
            ]
            statement = f"{name}: MSE of {method} to the formula's"
            claims.append(Claim(statement, float(np.mean(on_paper)), above=0.9, below=1.1, note=formula))
    return claims


def _claims_of_4(runs: Runs, sources: Sequence[Source], settings: Settings) -> list[Claim]:
    claims = []
    short, long = settings[WINDOWS[0]], settings[WINDOWS[-1]]
    for source in sources:
        name = source.name
        widest = {m: mean(runs, name, m, long, MRE) for m in METHODS}
        rise = {m: widest[m] / mean(runs, name, m, short, MRE) for m in METHODS}
        least = min(rise, key=lambda m: rise[m])
        statement = f"{name}: error grows with w, MRE at {WINDOWS[-1]} to {WINDOWS[0]}"
        claims += [
            Claim(statement, rise[least], above=1, note=f"the least of all methods: {least}"),
            Claim(f"{name}, w = {WINDOWS[-1]}: MRE, LBD to LBA", widest["LBD"] / widest["LBA"], above=1),
            Claim(f"{name}, w = {WINDOWS[-1]}: MRE, LPD to LPU", widest["LPD"] / widest["LPU"], below=1),
            Claim(f"{name}, w = {WINDOWS[-1]}: MRE, LPA to LPD", widest["LPA"] / widest["LPD"], below=1),
        ]
        for population, budget in PAIRS:
            ratios = [
                mean(runs, name, population, s, MSE) / mean(runs, name, budget, s, MSE) for s in settings.values()
            ]
            statement = f"{name}: population beats budget, MSE, {population} to {budget}"
            claims.append(Claim(statement, max(ratios), below=1, note="the largest over w"))
    return claims


def _geometric(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


SHORT_5 = 400  # steps of the real streams with many devices
METHODS_5 = ("LBA", "LSP", "LPU", "LPD", "LPA")
OURS = tuple(method + FILTERED for method in ("LPD", "LPA"))
FAST = "Sin, b = 0.05"
SETTING = MethodSetting(1.0, 20)
WATCHED = "watched: the share of 1, or of the devices with any event (the mean of a histogram of shares is always 1/d)"
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


@reproduction(
    "ren-2022-ldpids-figure-5",
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
        *real(context, steps=steps, resampled_steps=min(steps, SHORT_5)),
    ]
    curves: dict[tuple[str, str], Curve] = {}

    def area(source: Source, method: str, setting: MethodSetting, run: StreamRun) -> list[float]:
        watched, truth = (table @ np.array(source.events) for table in (run.values, run.truth))
        if truth.max() == truth.min():  # no events, as happens in a population scaled down to a few devices
            return [np.nan]
        curve = roc(watched, truth, event_threshold(truth))
        curves.setdefault((source.name, method), curve)
        return [auc(*curve)]

    runs = sweep(context, [(source, SETTING) for source in sources], methods=METHODS_5 + OURS, score=area)
    figure, panels = panels_of([source.name for source in sources], columns=3)
    cells = []
    for source in sources:
        panel = panels[source.name]
        panel.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=0.8, linestyle=":")
        for method in METHODS_5 + OURS:
            if method in METHODS_5:
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
