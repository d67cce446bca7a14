"""Figure 6: the error as the population grows, and as the stream moves faster."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import Source, binary, linear, sine
from hubbub_papers.ldp_ids.style import draw, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import (
    FILTERED,
    METHODS,
    MRE,
    MSE,
    MethodSetting,
    Runs,
    error_cells,
    mean,
    sweep,
    verdicts,
)

STEPS = 300
SIZES = (25_000, 50_000, 100_000, 200_000)
DEVIATIONS = (0.001, 0.002, 0.004, 0.008)
SPEEDS = (0.005, 0.01, 0.02, 0.05)
SETTING = MethodSetting(1.0, 20)
OURS = tuple(method + FILTERED for method in ("LBD", "LBA", "LPD", "LPA"))
MOVED = ("LSP", "LBD", "LBA", "LPD", "LPA")
"""The methods whose squared error depends on how the stream moves."""
Panels = Mapping[str, Mapping[float, Source]]


@reproduction(
    "ldp-ids-figure-6", title="MRE by population and by how fast the stream moves, eps = 1, w = 20", repeats=3
)
def figure_6(context: Context, steps: int = STEPS) -> Reproduced:
    """LNS and Sin; the population changes, the process does not."""
    panels: Panels = {
        "LNS, n": {n: binary(context, f"LNS, n = {n:,}", linear(context, steps), n) for n in SIZES},
        "Sin, n": {n: binary(context, f"Sin, n = {n:,}", sine(steps), n) for n in SIZES},
        "LNS, sqrt Q": {q: binary(context, f"LNS, sqrt Q = {q:g}", linear(context, steps, q)) for q in DEVIATIONS},
        "Sin, b": {b: binary(context, f"Sin, b = {b:g}", sine(steps, b)) for b in SPEEDS},
    }
    runs = sweep(
        context, [(source, SETTING) for panel in panels.values() for source in panel.values()], methods=METHODS + OURS
    )
    figure, axes = panels_of(list(panels), columns=2)
    cells = []
    for title, sources in panels.items():
        name, changed = title.split(", ")
        errors = {m: [mean(runs, source.name, m, SETTING, MRE) for source in sources.values()] for m in METHODS}
        axis = changed.replace("sqrt Q", "$\\sqrt{Q}$")
        draw(axes[title], list(sources), errors, x=axis, y="MRE", title=name)
        for source in sources.values():
            remark = source.remark(f"runs: {context.repeats}, {SETTING}", steps=steps)
            cells += error_cells(runs, source, SETTING, METHODS + OURS, row=source.name, remark=remark)
    return cells + verdicts(lambda some: _claims(some, panels), runs), with_legend(figure)


def _claims(runs: Runs, panels: Panels) -> list[Claim]:
    def error(title: str, x: float, method: str, column: int = MRE) -> float:
        return mean(runs, panels[title][x].name, method, SETTING, column)

    claims = []
    for title in ("LNS, n", "Sin, n"):
        fall = {m: error(title, SIZES[-1], m) / error(title, SIZES[0], m) for m in METHODS}
        worst = max(fall, key=lambda m: fall[m])
        statement = f"{title.split(', ')[0]}: error falls with n, MRE at {SIZES[-1]:,} to {SIZES[0]:,}"
        claims.append(Claim(statement, fall[worst], below=1, note=f"the largest of all methods: {worst}"))
    for title, xs, slow in (("LNS, sqrt Q", DEVIATIONS, DEVIATIONS[:2]), ("Sin, b", SPEEDS, SPEEDS[:2])):
        name, what = title.split(", ")
        for column, measure, methods in ((MRE, "MRE", METHODS), (MSE, "MSE", MOVED)):
            rise = {m: error(title, xs[-1], m, column) / error(title, xs[0], m, column) for m in methods}
            least = min(rise, key=rise.__getitem__)
            statement = f"{name}: error grows with {what}, {measure} at {xs[-1]:g} to {xs[0]:g}"
            claims.append(Claim(statement, rise[least], above=1, note=f"the least of {', '.join(methods)}: {least}"))
        for x in slow:
            best = min(error(title, x, m) for m in METHODS if m != "LSP")
            claims.append(
                Claim(f"{name}, {what} = {x:g}: MRE, LSP to the best other", error(title, x, "LSP") / best, below=1)
            )
        fast = xs[-1]
        for method in ("LPD", "LPA"):
            lead = error(title, fast, "LSP") / error(title, fast, method)
            claims.append(Claim(f"{name}, {what} = {fast:g}: MRE, LSP to {method}", lead, above=1))
            ratio = max(error(title, x, method + FILTERED, MSE) / error(title, x, "LPU", MSE) for x in xs)
            claims.append(Claim(f"{name}: MSE, {method}{FILTERED} to LPU, the largest", ratio, below=1.3))
            for x, bound in ((xs[0], {"below": 1.0}), (fast, {"above": 1.0})):
                for column, measure in ((MRE, "MRE"), (MSE, "MSE")):
                    ratio = error(title, x, method, column) / error(title, x, "LPU", column)
                    statement = f"{name}, {what} = {x:g}: {measure}, {method} to LPU"
                    claims.append(Claim(statement, ratio, **bound))  # type: ignore[arg-type]
    return claims
