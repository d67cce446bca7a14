"""Figures 3, 4, 5 and 11: means of random sparse vectors, by their length, by the number of people, by sparsity."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.result import Claim, joined
from hubbub_papers.sparse import METHODS as KNOWN
from hubbub_papers.sparse import Place, Runs, average, errors_by_epsilon, exact_leads, logs, look, sweep
from hubbub_papers.study import Study

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
OFFLINE = ("PrivKV", "KVUE", "PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "SUCCINCT", "Collision")
PAPER = (*OFFLINE, "EFMRTT", "ToPL", "DDRM", "ExSub")
METHODS = (*PAPER, "NetSub")
OPTIMAL = ("Collision", "SUCCINCT")
AMPLIFIED = ("PCKV-GRR", "PCKV-AGRR")
"""PCKV-GRR without and with amplification by sampling: the text names the first, but its statements fit the second."""
UNSTATED = "the figure's own epsilons are not stated"
LENGTHS = tuple(Place(10_000, d, 8) for d in (64, 128, 256, 512))
CROWDS = tuple(Place(n, 128, 8) for n in (2_000, 5_000, 10_000, 50_000))
SPARSITIES = tuple(Place(10_000, 256, s) for s in (1, 4, 16, 64))
Claims = Callable[[Runs], Sequence[Claim]]


@reproduction(
    "wang-2023-sao2-figure-3",
    title="Errors of means without post-processing by the length d', n = 10,000, s = 8",
    repeats=5,
)
def figure_3(context: Context) -> Reproduced:
    """Total variation and largest errors, without post-processing."""
    places, metrics = LENGTHS, (("mean_tve", "TVE"), ("mean_mae", "MAE"))

    def claims(runs: Runs) -> list[Claim]:
        claims = _dominates(runs, places, metrics)
        for method in (*AMPLIFIED, "PrivKV", "KVUE"):
            first, last = (_ratio(runs, places[end], method, "mean_tve") for end in (0, -1))
            statement = f"{method} falls behind ExSub as d' grows, TVE, its lag at 512 to that at 64"
            claims.append(Claim(statement, last / first, above=1, note=f"to ExSub: {first:.3g}, then {last:.3g}"))
        for method in AMPLIFIED:
            close = _ratio(runs, places[0], method, "mean_tve") / _ratio(runs, places[0], "Collision", "mean_tve")
            statement = f"{method} is close to the optimal ones at d' = 64, TVE, to Collision's"
            claims.append(Claim(statement, close, above=0.7, below=1.5, note="mean over eps"))
        return [*claims, _net_rule(runs, places)]

    return _compare(context, places, metrics, claims)


@reproduction(
    "wang-2023-sao2-figure-4",
    title="MAE of means with post-processing by the number of people, d' = 128, s = 8",
    repeats=5,
)
def figure_4(context: Context) -> Reproduced:
    """Largest errors of means from projected frequencies; means without frequencies are clipped to -1 to 1."""
    places, metrics = CROWDS, (("mean_mae_possible", "MAE"),)

    def claims(runs: Runs) -> list[Claim]:
        first, last = (_leads(runs, [places[end]], OFFLINE, "mean_mae_possible") for end in (0, -1))
        statement = "ExSub's lead over the best offline one grows with the people, at 50,000 less at 2,000"
        return [
            *_dominates(runs, places, metrics),
            Claim(statement, float(np.mean(last) - np.mean(first)), above=0, note="mean over eps"),
        ]

    return _compare(context, places, metrics, claims)


@reproduction(
    "wang-2023-sao2-figure-5",
    title="Errors of means without post-processing by sparsity, n = 10,000, d' = 256",
    repeats=4,
)
def figure_5(context: Context) -> Reproduced:
    """Total variation and largest errors, without post-processing."""
    metrics = (("mean_tve", "TVE"), ("mean_mae", "MAE"))
    return _compare(context, SPARSITIES, metrics, lambda runs: _by_sparsity(runs, metrics))


@reproduction(
    "wang-2023-sao2-figure-11",
    title="Errors of means with post-processing by sparsity, n = 10,000, d' = 256",
    repeats=4,
)
def figure_11(context: Context) -> Reproduced:
    """The same with post-processing."""
    metrics = (("mean_tve_possible", "TVE"), ("mean_mae_possible", "MAE"))
    return _compare(context, SPARSITIES, metrics, lambda runs: _dominates(runs, SPARSITIES, metrics))


def _compare(
    context: Context, places: Sequence[Place], metrics: Sequence[tuple[str, str]], claims_of: Claims
) -> Reproduced:
    runs = sweep(context, dict.fromkeys(places, METHODS), EPSILONS)
    panels = [
        errors_by_epsilon(runs, str(place.scaled(context)), EPSILONS, place, *metric)
        for metric in metrics
        for place in places
    ]
    runs_note = f"{UNSTATED}; mean of ln, {context.repeats} runs (the paper: 100)"
    cells = [
        Cell(
            f"{place.scaled(context)}, eps = {epsilon:g}: ln {metric}",
            method,
            None,
            logs(runs, (place, epsilon, method), field),
            joined(runs_note, KNOWN[method].note),
        )
        for field, metric in metrics
        for place in places
        for epsilon in EPSILONS
        for method in METHODS
    ]
    rows, size = len(metrics), (3.7, 3.1)
    return Study(runs, cells, METHODS, panels, claims_of, rows, legend=10, size=size, look_of=look).reproduced()


def _leads(runs: Runs, places: Sequence[Place], others: Sequence[str], field: str) -> list[float]:
    """The relative reduction of the best other method's error by ExSub, in every setting."""
    return [
        1 - average(runs, (place, e, "ExSub"), field) / min(average(runs, (place, e, other), field) for other in others)
        for place in places
        for e in EPSILONS
    ]


def _ratio(runs: Runs, place: Place, method: str, field: str) -> float:
    """The quotient of a method's error and ExSub's, geometric mean over epsilon."""
    steps = [logs(runs, (place, e, method), field) - logs(runs, (place, e, "ExSub"), field) for e in EPSILONS]
    return float(np.exp(np.mean(steps)))


def _dominates(runs: Runs, places: Sequence[Place], metrics: Sequence[tuple[str, str]]) -> list[Claim]:
    """ExSub against all others: on paper, where answers are not post-processed, and measured where they are."""
    rivals, claims = tuple(name for name in PAPER if name != "ExSub"), []
    for field, metric in metrics:
        leads, optimal = (np.array(_leads(runs, places, others, field)) for others in (rivals, OPTIMAL))
        note, more = f"leads from {leads.min():.0%} to {leads.max():.0%}", ""
        least, bounds = 0.95, (0.05, 0.35)
        if not field.endswith("_possible"):
            note, more = f"exact; measured {np.mean(leads > 0):.0%}", f"exact; measured {optimal.mean():.1%}"
            leads, optimal = (exact_leads("ExSub", others, places, EPSILONS) for others in (rivals, OPTIMAL))
            at = zip(product(places, EPSILONS), leads, strict=True)
            note = joined(note, *(f"{place}, eps = {e:g}: {gain:.1%}" for (place, e), gain in at if gain <= 0))
            least, bounds = 0.999, (0.1, 0.3)
        statement = f"ExSub beats all others in every setting, {metric}, the share of settings"
        claims.append(Claim(statement, float(np.mean(leads > 0)), "every setting", above=least, note=note))
        statement = f"ExSub beats Collision and SUCCINCT by 10% to 30%, {metric}, mean over the settings"
        claims.append(Claim(statement, float(optimal.mean()), "10% to 30%", *bounds, more))
    return claims


def _net_rule(runs: Runs, places: Sequence[Place]) -> Claim:
    leads = [
        1 - average(runs, (place, e, "NetSub"), "mean_tve") / average(runs, (place, e, "ExSub"), "mean_tve")
        for place in places
        for e in EPSILONS
    ]
    note = f"not in the paper; from {min(leads):.0%} to {max(leads):.0%}"
    return Claim("the net rule cuts ExSub's TVE, mean over the settings, by", float(np.mean(leads)), above=0, note=note)


def _by_sparsity(runs: Runs, metrics: Sequence[tuple[str, str]]) -> list[Claim]:
    claims = _dominates(runs, SPARSITIES, metrics)
    groups = ((*AMPLIFIED, "PrivKV", "KVUE"), False), (("PCKV-UE", "EFMRTT", "ToPL", "DDRM"), True)
    for methods, grows in groups:
        for method in methods:
            first, last = (_ratio(runs, SPARSITIES[end], method, "mean_tve") for end in (0, -1))
            words = "falls behind" if grows else "comes nearer to"
            statement = f"{method} {words} ExSub as s grows, TVE, its lag at s = 64 to that at s = 1"
            bound = {"above": 1.0} if grows else {"below": 1.0}
            claims.append(Claim(statement, last / first, **bound, note=f"to ExSub: {first:.3g}, then {last:.3g}"))
    return [*claims, _net_rule(runs, SPARSITIES)]
