"""Figure 8.10: the squared error of the k most frequent values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.claims import Claim, judged
from hubbub_papers.dissertation.postprocessing import (
    KEYS,
    OTHER_DATA,
    KnownPeople,
    data_note,
    draw_rows,
    emoji_population,
    estimated,
    full_domain,
    zipf_population,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import joined

EPSILON = 1.0
TOP = tuple(range(2, 33, 2))
Setting = tuple[str, str]  # population, method


@reproduction(
    "dissertation-figure-8.10",
    title="MSE of the k most frequent values, k 2 to 32, eps = 1",
    repeats=30,
    needs=("emoji",),
)
def figure_8_10(context: Context) -> Reproduced:
    """The squared error of the k truly most frequent values, which no method knows."""
    both = (zipf_population(context), emoji_population(context))
    values_kept: dict[str, list[int]] = {people.name: [] for people in both}

    def run_once(people: KnownPeople, run: int) -> dict[Setting, NDArray[np.float64]]:
        shares = full_domain(estimated(people, EPSILON, context.rng.child("figure 8.10", people.name, run)))
        values_kept[people.name].append(int((shares["Base-Cut"] > 0).sum()))
        top, truth = people.ranked[: TOP[-1]], people.truth
        return {
            (people.name, method): np.cumsum((shares[method][top] - truth[top]) ** 2) / np.arange(1, TOP[-1] + 1)
            for method in KEYS
        }

    errors = context.measure(both, run_once, lambda people: people.name)
    rows = {p.name: {m: [errors[p.name, m][:, k - 1] for k in TOP] for m in KEYS} for p in both}
    runs = f"runs averaged: {context.repeats} (the paper: 30)"
    cells = [
        Cell(f"{name}, k = {k}", method, None, float(row[:, k - 1].mean()), joined(runs, data_note(name)))
        for (name, method), row in errors.items()
        for k in TOP
    ]
    cells += [
        Cell(
            f"{name}: values that Base-Cut keeps",
            "all ranks",
            None,
            float(np.mean(number)),
            "of them about 2 by chance",
        )
        for name, number in values_kept.items()
    ]
    return cells + judged(_claims, errors), draw_rows(TOP, rows, labels=("k", "MSE"))


def _claims(errors: RunScores[Setting]) -> list[Claim]:
    """`errors` holds, by population and method, a row a run: the error of the k most frequent for k = 1, 2, ..."""
    return [
        claim
        for name in ("Zipf", "Emoji")
        for claim in _claims_on(name, {m: rows.mean(axis=0) for (n, m), rows in errors.items() if n == name})
    ]


def _claims_on(name: str, mean: dict[str, NDArray[np.float64]]) -> list[Claim]:
    other = OTHER_DATA if name == "Emoji" else "the paper's own distribution"
    over = f"mean over k; {other}"

    def relative(a: str, b: str, least: int = 2) -> float:
        return float((mean[a] / mean[b])[least - 1 :].mean())

    worst = min((mean["Norm-Mul"] / mean[m])[1:].min() for m in KEYS if m != "Norm-Mul")
    reliable = np.flatnonzero(mean["Base-Cut"] <= 1.1 * mean["Base"])
    note = f"the largest k at which Base-Cut's MSE is at most 1.1 times Base's; {other}"
    pair = relative("PowerNS", "Power")
    claims = [
        Claim(f"{name}: MSE, Norm-Mul to any other, least over k", worst, paper="at least 10", above=10, note=other),
        Claim(
            f"{name}: MSE, Norm to Base", relative("Norm", "Base"), paper="about 1", above=0.8, below=1.25, note=over
        ),
        Claim(f"{name}: MSE, Norm-Sub to Base", relative("Norm-Sub", "Base"), above=1, note=over),
        Claim(f"{name}: MSE, Norm-Cut to Base-Cut", relative("Norm-Cut", "Base-Cut"), below=1, note=over),
        Claim(f"{name}, k above 10: MSE, PowerNS to Base-Cut", relative("PowerNS", "Base-Cut", 11), above=1, note=over),
        Claim(f"{name}: MSE, PowerNS to Power", pair, paper="about 1", above=0.5, below=2, note=over),
        Claim(
            f"{name}: values that can be reliably estimated",
            reliable[-1] + 1 if reliable.size else 0,
            paper=10.0,
            above=5,
            below=20,
            note=note,
        ),
    ]
    for method in ("Base-Cut", "Norm-Cut", "Power", "PowerNS"):
        growth = mean[method][31] / mean[method][1]
        claims.append(Claim(f"{name}: {method}, MSE at k = 32 to k = 2", growth, above=1, note=other))
    return claims
