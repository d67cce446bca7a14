"""Figures 3 and 4: the error of every method on every stream, as epsilon and as the window grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import NEEDS, Source, real, synthetic
from hubbub_papers.ldp_ids.style import draw, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import (
    METHODS,
    MRE,
    MSE,
    PAIRS,
    SPREAD,
    MethodSetting,
    Runs,
    error_cells,
    mean,
    sweep,
    theory,
    verdicts,
)

STEPS = 400
SHORT = 190  # steps of the real streams with many devices
EPSILONS = (0.5, 1.0, 2.0, 4.0)
WINDOWS = (10, 20, 30, 50)
Settings = Mapping[float, MethodSetting]  # by what the horizontal axis shows
Claims = Callable[[Runs, Sequence[Source], Settings], list[Claim]]


def _measure(context: Context, settings: Settings, axis: str, steps: int, claims: Claims) -> Reproduced:
    sources = [*synthetic(context, steps), *real(context, steps=steps, resampled_steps=min(steps, SHORT))]
    runs = sweep(context, [(source, setting) for source in sources for setting in settings.values()])
    figure, panels = panels_of([source.name for source in sources])
    cells = []
    for source in sources:
        errors = {m: [mean(runs, source.name, m, setting, MRE) for setting in settings.values()] for m in METHODS}
        draw(panels[source.name], list(settings), errors, x=axis, y="MRE", title=source.title)
        remark = source.remark(f"runs: {context.repeats}", steps=steps)
        for setting in settings.values():
            cells += error_cells(runs, source, setting, METHODS, row=f"{source.name}, {setting}", remark=remark)
    return cells + verdicts(lambda some: claims(some, sources, settings), runs), with_legend(figure)


@reproduction("ldp-ids-figure-3", title="MRE of all methods, eps 0.5 to 4, w = 20", repeats=1, needs=NEEDS)
def figure_3(context: Context, steps: int = STEPS) -> Reproduced:
    """Every stream at the paper's window."""
    settings = {epsilon: MethodSetting(epsilon, 20) for epsilon in EPSILONS}
    return _measure(context, settings, "$\\epsilon$", steps, _claims_of_3)


@reproduction("ldp-ids-figure-4", title="MRE of all methods, w 10 to 50, eps = 1", repeats=1, needs=NEEDS)
def figure_4(context: Context, steps: int = STEPS) -> Reproduced:
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
