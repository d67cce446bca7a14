"""Figure 8.4: the error of every value of the domain, as epsilon grows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.claims import Claim, judged, means
from hubbub_papers.dissertation.postprocessing import (
    EPSILONS,
    KEYS,
    KnownPeople,
    data_note,
    draw_rows,
    emoji_population,
    estimated,
    full_domain,
    squared_error,
    zipf_population,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import joined

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

    def run_once(setting: tuple[KnownPeople, float], run: int) -> dict[Setting, float]:
        people, epsilon = setting
        estimate = estimated(people, epsilon, context.rng.child("figure 8.4", people.name, str(epsilon), run))
        shares = full_domain(estimate)
        return {(people.name, method, epsilon): squared_error(shares[method], people.truth) for method in KEYS}

    settings = [(people, epsilon) for people in both for epsilon in EPSILONS]
    errors = context.measure(settings, run_once, lambda setting: f"{setting[0].name}, eps = {setting[1]:g}")
    rows = {p.name: {m: [errors[p.name, m, e] for e in EPSILONS] for m in KEYS} for p in both}
    runs = f"runs averaged: {context.repeats} (the paper: 30)"
    cells = [
        Cell(f"{name}, eps = {e:g}", method, None, mean, joined(runs, data_note(name)))
        for (name, method, e), mean in means(errors).items()
    ]
    return cells + judged(_claims, errors), draw_rows(EPSILONS, rows, labels=("$\\epsilon$", "MSE"))


def _claims(errors: RunScores[Setting]) -> list[Claim]:
    claims = []
    for name, factor in (("Zipf", 10.0), ("Emoji", 100.0)):
        logs = {m: np.log([errors[name, m, e].mean() for e in EPSILONS]) for m in KEYS}

        def relative(a: str, b: str, logs: dict[str, NDArray[np.float64]] = logs) -> float:
            """The error of a to that of b, geometric mean over eps."""
            return float(np.exp((logs[a] - logs[b]).mean()))

        over = joined("geometric mean over eps", data_note(name))
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
