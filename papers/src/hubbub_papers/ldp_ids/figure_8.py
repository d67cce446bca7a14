"""Figure 8: which part of a window's resources should measure the distance, and which part should publish."""

from __future__ import annotations

from hubbub.simulate.devices import RESAMPLED
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import replay, synthetic
from hubbub_papers.ldp_ids.style import draw, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import MRE, MethodSetting, Runs, error_cells, mean, sweep, verdicts
from hubbub_papers.real_streams import taxi_stream

STEPS = 300
SHORT = 190
BETAS = (0.1, 0.3, 0.5, 0.7, 0.9)
METHODS = ("LBD", "LBA", "LPD", "LPA")
SETTINGS = {beta: MethodSetting(1.0, 20, beta) for beta in BETAS}


@reproduction(
    "ldp-ids-figure-8", title="MRE by the portion beta that measures, eps = 1, w = 20", repeats=3, needs=("taxi",)
)
def figure_8(context: Context, steps: int = STEPS) -> Reproduced:
    """The four methods that measure before they publish."""
    trips = taxi_stream().resampled().first(min(steps, SHORT))
    lns, sin, _ = synthetic(context, steps)
    sources = [lns, sin, replay(context, f"NYC taxi, {RESAMPLED:,}", trips)]
    runs = sweep(context, [(source, setting) for source in sources for setting in SETTINGS.values()], methods=METHODS)
    figure, panels = panels_of([source.name for source in sources])
    cells = []
    for source in sources:
        errors = {m: [mean(runs, source.name, m, setting, MRE) for setting in SETTINGS.values()] for m in METHODS}
        draw(panels[source.name], BETAS, errors, x="$\\beta$", y="MRE", title=source.title, log="y")
        remark = source.remark(f"runs: {context.repeats}", steps=steps)
        for setting in SETTINGS.values():
            cells += error_cells(runs, source, setting, METHODS, row=f"{source.name}, {setting}", remark=remark)
    return cells + verdicts(_claims, runs), with_legend(figure)


def _claims(runs: Runs) -> list[Claim]:
    claims = []
    for name in dict.fromkeys(source for source, _, _ in runs):
        for method in METHODS:
            error = {beta: mean(runs, name, method, setting, MRE) for beta, setting in SETTINGS.items()}
            if method in ("LBD", "LPD"):
                best = min(error, key=lambda beta: error[beta])
                claims.append(
                    Claim(
                        f"{name}: MRE of {method}, beta = 0.5 to the best",
                        error[0.5] / error[best],
                        paper="about 1",
                        below=1.25,
                        note=f"best at {best:g}",
                    )
                )
            else:
                claims += [
                    Claim(f"{name}: MRE of {method} grows with beta, 0.9 to 0.1", error[0.9] / error[0.1], above=1),
                    Claim(
                        f"{name}: MRE of {method}, beta = 0.1 to 0.5",
                        error[0.1] / error[0.5],
                        paper="close to 1",
                        above=0.5,
                        below=1.5,
                    ),
                ]
    return claims
