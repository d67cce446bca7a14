"""Figure 8.4: the error of every value of the domain, as epsilon grows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hubbub.reproduce.claims import Claim, judged
from hubbub.reproduce.dissertation.postprocessing import (
    EPSILONS,
    KEYS,
    OTHER_DATA,
    draw_rows,
    emoji_population,
    estimated,
    full_domain,
    zipf_population,
)
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas

Setting = tuple[str, str, float]  # population, method, epsilon


@reproduction(
    "dissertation-figure-8.4",
    title="MSE of full-domain estimation, eps 0.2 to 4, Zipf and Emoji",
    repeats=10,
    needs=("emoji",),
)
def figure_8_4(context: Context) -> Reproduced:
    """The mean over the domain of the squared error of a share."""
    both = (zipf_population(context), emoji_population(context))
    steps = [(people, epsilon, run) for people in both for epsilon in EPSILONS for run in range(context.repeats)]
    measured: dict[Setting, list[float]] = {}
    for people, epsilon, run in context.track(steps, lambda s: f"{s[0].name}, eps = {s[1]:g}, run {s[2] + 1}"):
        estimate = estimated(people, epsilon, context.rng.child("figure 8.4", people.name, str(epsilon), run))
        for method, shares in full_domain(estimate).items():
            error = float(((shares - people.truth) ** 2).mean())
            measured.setdefault((people.name, method, epsilon), []).append(error)
    errors = {key: np.array(runs) for key, runs in measured.items()}
    figure, panels = canvas(2, 2)
    draw_rows(
        figure,
        panels,
        EPSILONS,
        {p.name: lambda m, p=p: [errors[p.name, m, e] for e in EPSILONS] for p in both},  # type: ignore[misc]
        labels=("$\\epsilon$", "MSE"),
    )
    runs = f"runs averaged: {context.repeats} (the paper: 30)"
    cells = [
        Cell(f"{name}, eps = {e:g}", m, None, float(row.mean()), runs if name == "Zipf" else f"{runs}; {OTHER_DATA}")
        for (name, m, e), row in errors.items()
    ]
    return cells + judged(_claims, errors), figure


def _claims(errors: Mapping[Setting, NDArray[np.float64]]) -> list[Claim]:
    claims = []
    for name, factor in (("Zipf", 10.0), ("Emoji", 100.0)):
        logs = {m: np.log([errors[name, m, e].mean() for e in EPSILONS]) for m in KEYS}

        def relative(a: str, b: str, logs: dict[str, NDArray[np.float64]] = logs) -> float:
            """The error of a to that of b, geometric mean over eps."""
            return float(np.exp((logs[a] - logs[b]).mean()))

        over = "geometric mean over eps" + ("" if name == "Zipf" else f"; {OTHER_DATA}")
        at_1 = np.exp((logs["Base"] - logs["Norm-Sub"])[EPSILONS.index(1.0)])
        gain, note = relative("Base", "Norm-Sub"), f"{at_1:.3g} at eps = 1; {over}"
        rival = min((m for m in KEYS if m != "PowerNS"), key=lambda m: logs[m].mean())
        fall = {m: np.exp(logs[m][0] - logs[m][-1]) for m in ("Norm-Mul", "Base")}
        alike = {m: relative(m, "Norm-Sub") for m in ("MLE-Apx", "Power", "PowerNS", "Base-Cut")}
        claims += [
            Claim(f"{name}: MSE, Base to Norm-Sub", gain, paper=factor, above=factor / 2, below=factor * 2, note=note),
            Claim(
                f"{name}: MSE, Norm to Base", relative("Norm", "Base"), paper="about 1", above=0.9, below=1.1, note=over
            ),
            Claim(
                f"{name}: MSE, Base-Pos to Base",
                relative("Base-Pos", "Base"),
                paper=0.5,
                above=0.4,
                below=0.6,
                note=over,
            ),
            Claim(f"{name}: MSE, MLE-Apx to Norm-Sub", alike["MLE-Apx"], paper=1.0, above=0.9, below=1.1, note=over),
            Claim(
                f"{name}: MSE, PowerNS to the next best", relative("PowerNS", rival), below=1, note=f"{rival}; {over}"
            ),
            Claim(f"{name}: MSE falls slower with eps, Norm-Mul to Base", fall["Norm-Mul"] / fall["Base"], below=1),
        ]
        for method in ("Power", "PowerNS", "Base-Cut"):
            statement = f"{name}: MSE, {method} to Norm-Sub"
            claims.append(Claim(statement, alike[method], paper="about 1", above=0.5, below=2, note=over))
    return claims
