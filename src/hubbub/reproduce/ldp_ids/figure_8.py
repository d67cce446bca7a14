"""Figure 8: how much of the window should measure the distance, and how much publish."""

from __future__ import annotations

from hubbub.reproduce.claims import Claim
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.ldp_ids.sources import FLOOR, binary, length, linear, replay, sine
from hubbub.reproduce.ldp_ids.style import draw, finished, panels_of
from hubbub.reproduce.ldp_ids.sweep import MRE, MSE, MethodSetting, Runs, mean, sweep, verdicts
from hubbub.simulate.event_stream import RESAMPLED
from hubbub.simulate.real_streams import taxi_stream

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
    sources = [
        binary(context, "LNS", linear(context, steps)),
        binary(context, "Sin", sine(steps)),
        replay(context, f"NYC taxi, {RESAMPLED:,}", trips),
    ]
    runs = sweep(context, [(source, setting) for source in sources for setting in SETTINGS.values()], methods=METHODS)
    figure, panels = panels_of([source.name for source in sources])
    cells = []
    for source in sources:
        draw(
            panels[source.name],
            METHODS,
            BETAS,
            lambda method, beta, name=source.name: mean(runs, name, method, SETTINGS[beta], MRE),  # type: ignore[misc]
            x="$\\beta$",
            y="MRE",
            title=source.title,
            log="y",
        )
        made = "" if source.note else length(steps)
        remark = source.remark(made, f"runs: {context.repeats}")
        for setting in SETTINGS.values():
            for method in METHODS:
                relative, squared = (mean(runs, source.name, method, setting, column) for column in (MRE, MSE))
                floored = f"{remark}; shares below {FLOOR:g} count as {FLOOR:g}"
                cells.append(Cell(f"{source.name}, {setting}: MRE", method, None, relative, floored))
                cells.append(Cell(f"{source.name}, {setting}: MSE", method, None, squared, remark))
    return cells + verdicts(_claims, runs), finished(figure)


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
