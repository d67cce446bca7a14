"""Figures 7.8 and 7.9: relative errors of HIO over two ordinal and two categorical dimensions, by kind of query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.range_people import MANY, OTHER_DATA, QUERIES, answers, census_people
from hubbub_papers.dissertation.selective_queries import KINDS, relative_errors, selective_queries
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish

EPSILONS = (2.0, 5.0)
SELECTIVITIES = (0.02, 0.05, 0.1, 0.2)
DOMAINS = (25, 125, 625)
DEFAULT = 625
KINDS_OF_ANSWER = ("SUM", "COUNT", "AVG")
SUM, COUNT, AVG = range(3)
Key = tuple[str, float, float]  # kind of query; selectivity or domain size; epsilon
Runs = RunScores[Key]


@reproduction(
    "dissertation-figure-7.8",
    title="Relative error of HIO on 2 + 2 dimensions, by selectivity",
    repeats=3,
    needs=("census",),
)
def figure_7_8(context: Context) -> Reproduced:
    """MRE of up to 30 random queries a kind and selectivity: SUM, COUNT and AVG."""
    people = census_people(context, [DEFAULT] * 2, words=2, n=MANY)

    def run_once(epsilon: float, run: int) -> dict[Key, NDArray[np.float64]]:
        rng = context.rng.child("figure 7.8", str(epsilon), run)
        groups = {
            (kind, share): selective_queries(people, kind, share, QUERIES, rng.child(kind, str(share)))
            for kind in KINDS
            for share in SELECTIVITIES
        }
        errors = relative_errors(people, epsilon, groups, rng.child("reports"))
        return {(kind, share, epsilon): row for (kind, share), row in errors.items()}

    runs = context.measure(EPSILONS, run_once, "eps = {:g}".format)
    note = f"runs averaged: {context.repeats}, up to {QUERIES} queries each; {OTHER_DATA}"
    cells = [
        Cell(f"{kind}, selectivity {share:g}, eps = {epsilon:g}", f"{name}, MRE", None, float(mean), note)
        for (kind, share, epsilon), scores in runs.items()
        for name, mean in zip(KINDS_OF_ANSWER, scores.mean(axis=0), strict=True)
    ]
    figure, panels = canvas(2, 2)
    for place, epsilon in enumerate(EPSILONS):
        for offset, column in ((0, SUM), (2, AVG)):
            panel = panels[place + offset]
            for kind in KINDS:
                heights = [runs[kind, share, epsilon][:, column].mean() for share in SELECTIVITIES]
                panel.plot(SELECTIVITIES, heights, marker="o", label=kind)
            title = f"{KINDS_OF_ANSWER[column]}, $\\epsilon$ = {epsilon:g}"
            finish(panel, "selectivity", "MRE", title, log="xy")
            panel.legend(frameon=False)
    return cells + judged(_claims, runs), figure


def _claims(runs: Runs) -> list[Claim]:
    def mean(kind: str, share: float, column: int) -> float:
        return float(np.mean([runs[kind, share, epsilon][:, column].mean() for epsilon in EPSILONS]))

    falls = "decreases with increasing selectivity"
    claims = []
    for kind in KINDS:
        for column in (SUM, AVG):
            less = ratio(mean(kind, SELECTIVITIES[-1], column), mean(kind, SELECTIVITIES[0], column))
            claims.append(
                Claim(f"{kind}, {KINDS_OF_ANSWER[column]}: MRE at selectivity 0.2 to 0.02", less, falls, below=1)
            )
    alike = ratio(mean("2+0", 0.1, COUNT), mean("2+0", 0.1, SUM))
    claims.append(Claim("2+0, selectivity 0.1: MRE, COUNT to SUM", alike, "very similar trends", above=0.5, below=2))
    return claims


@reproduction(
    "dissertation-figure-7.9",
    title="Relative error of SUM by HIO on 2 + 2 dimensions, by domain size and kind of query, selectivity 0.1",
    repeats=3,
    needs=("census",),
)
def figure_7_9(context: Context) -> Reproduced:
    """MRE of up to 30 random queries; SC beside HIO where numbers have 625 values."""
    errors_of_sc: dict[str, list[float]] = {kind: [] for kind in KINDS}

    def run_once(setting: tuple[int, float], run: int) -> dict[Key, NDArray[np.float64]]:
        domain, epsilon = setting
        people = census_people(context, [domain] * 2, words=2, n=MANY)
        rng = context.rng.child("figure 7.9", domain, str(epsilon), run)
        groups = {kind: selective_queries(people, kind, 0.1, QUERIES, rng.child(kind)) for kind in KINDS}
        errors = relative_errors(people, epsilon, groups, rng.child("reports"))
        if domain == DEFAULT and epsilon == EPSILONS[0]:
            few = {kind: group[:3] for kind, group in groups.items()}
            queries = [query for group in few.values() for query in group]
            estimates = answers(people, "SC", epsilon, queries, rng.child("SC"))
            truth = np.array([people.measure[people.within(query)].sum() for query in queries])
            kinds = [kind for kind, group in few.items() for _ in group]
            for kind, error in zip(kinds, np.abs(estimates / truth - 1), strict=True):
                errors_of_sc[kind].append(float(error))
        return {(kind, float(domain), epsilon): row for kind, row in errors.items()}

    runs = context.measure(
        [(domain, epsilon) for domain in DOMAINS for epsilon in EPSILONS], run_once, "m, eps = {0[0]}, {0[1]}".format
    )
    note = f"runs averaged: {context.repeats}, up to {QUERIES} queries each; {OTHER_DATA}"
    cells = [
        Cell(f"{kind}, m = {domain:g}, eps = {epsilon:g}", "HIO, MRE", None, float(scores[:, SUM].mean()), note)
        for (kind, domain, epsilon), scores in runs.items()
    ]
    cells += [
        Cell(
            f"{kind}, m = {DEFAULT}, eps = {EPSILONS[0]:g}",
            "SC, MRE",
            None,
            float(np.mean(errors)),
            f"3 queries a run; {OTHER_DATA}",
        )
        for kind, errors in errors_of_sc.items()
        if errors
    ]
    figure, panels = canvas(1, 2)
    for panel, epsilon in zip(panels, EPSILONS, strict=True):
        for kind in KINDS:
            heights = [runs[kind, float(domain), epsilon][:, SUM].mean() for domain in DOMAINS]
            panel.plot(DOMAINS, heights, marker="o", label=kind)
        finish(panel, "m", "MRE", f"$\\epsilon$ = {epsilon:g}", log="xy")
        panel.legend(frameon=False)
    return cells + judged(_claims_of_domains, runs), figure


def _claims_of_domains(runs: Runs) -> list[Claim]:
    def mean(kind: str, domain: float) -> float:
        return float(np.mean([runs[kind, domain, epsilon][:, SUM].mean() for epsilon in EPSILONS]))

    claims = []
    for kind in KINDS:
        grows = ratio(mean(kind, float(DOMAINS[-1])), mean(kind, float(DOMAINS[0])))
        claims.append(Claim(f"{kind}: MRE at m = 625 to m = 25", grows, "larger when the domains are larger", above=1))
    for kind in ("1+0", "1+1"):
        for more in ("2+0", "2+2"):
            better = ratio(mean(more, float(DEFAULT)), mean(kind, float(DEFAULT)))
            claims.append(Claim(f"m = 625: MRE, {more} to {kind}", better, "more accurately", above=1))
    return claims
