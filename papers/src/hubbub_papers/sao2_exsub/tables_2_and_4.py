"""Figures 1 and 2, Tables 2 and 4."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from hubbub.mechanisms.ternary.exsub import ExSub, best_size
from hubbub.privacy.amplify import amplify
from hubbub_papers.amplification_claims import collaborative_clones
from hubbub_papers.baselines.future_rand import FutureRand, authors_gap
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish
from hubbub_papers.result import Claim, joined, judged
from hubbub_papers.sparse import METHODS, Place, Runs, average, expected_mae, expected_tve, printed_m, sweep

POSITIONS_1, S_1, EPSILON_1 = 512, 4, 0.5
SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256)
RATES = {"p_t": ("p_true", "#0072b2"), "p_r": ("p_reverse", "#d55e00"), "p_f": ("p_false", "#009e73")}
QUANTITIES: tuple[Literal["mean", "frequency"], ...] = ("mean", "frequency")
STUBS = "d' = 512 positions in all, 4 of them stubs"


@reproduction("wang-2023-sao2-figure-1", title="Rates and squared errors of ExSub by m, d' = 512, s = 4, eps = 0.5")
def figure_1(context: Context) -> Reproduced:
    """Exact, for one report; nothing is drawn at random."""
    mechanisms = {m: _exsub(m) for m in SIZES}
    figure, (left, right) = canvas(1, 2)
    cells = []
    for label, (field, colour) in RATES.items():
        values = [float(getattr(mechanism, field)) for mechanism in mechanisms.values()]
        left.plot(SIZES, values, color=colour, marker="o", markersize=4, label=f"${label}$")
        cells += [Cell(f"m = {m}", label, None, value, STUBS) for m, value in zip(SIZES, values, strict=True)]
    for of, colour in zip(QUANTITIES, ("#0072b2", "#d55e00"), strict=True):
        errors = [math.log(_error(mechanism, of)) for mechanism in mechanisms.values()]
        right.plot(SIZES, errors, color=colour, marker="o", markersize=4, label="value" if of == "mean" else of)
        cells += [
            Cell(f"m = {m}", f"ln MSE of {of}", None, value, STUBS) for m, value in zip(SIZES, errors, strict=True)
        ]
    finish(left, "m", "rate", f"d' = {POSITIONS_1}, s = {S_1}, $\\epsilon$ = {EPSILON_1:g}", log="")
    finish(right, "m", "ln MSE", "n = 1", log="x")
    left.legend(frameon=False)
    right.legend(frameon=False)
    return cells + [claim.cell() for claim in _claims_1()], figure


def _exsub(m: int) -> ExSub:
    return ExSub(epsilon=EPSILON_1, dimension=POSITIONS_1 - S_1, sparsity=S_1, m=m)


def _error(mechanism: ExSub, of: Literal["mean", "frequency"]) -> float:
    return mechanism.mse(of=of, positions=POSITIONS_1)


def _claims_1() -> list[Claim]:
    claims = []
    for of in QUANTITIES:
        m, best = printed_m(EPSILON_1, POSITIONS_1, S_1, of), best_size(EPSILON_1, POSITIONS_1, S_1, of=of)
        cost = _error(_exsub(m), of) / _error(_exsub(best), of) - 1
        note = f"m = {m} as printed, {best} by search"
        statement = f"the printed m nearly minimises the MSE of the {of}: it costs"
        claims.append(Claim(statement, cost, paper="approximately minimized", below=0.02, note=note))
    reverse = max(float(_exsub(m).p_reverse / _exsub(m).p_false) for m in SIZES[1:])
    note = "m of at least 2: a single position is as often the reverse of what is held as of nothing"
    claims.append(Claim("p_r is below p_f, the largest ratio", reverse, below=1, note=note))
    falls = np.diff([float(_exsub(m).p_true / _exsub(m).p_reverse) for m in SIZES])
    claims.append(Claim("p_t to p_r falls as m grows, its largest step", float(falls.max()), below=0))
    return claims


POSITIONS_2, S_2, EPSILON_2, M, DELTA = 1000, 20, 1.0, 2, 1e-5
PEOPLE = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_LINES = {
    "whole reports, Lemma 3.4": ("#0072b2", "o"),
    "online, Theorem 6.2 (claimed)": ("#d55e00", "x"),
    "whole reports, the blanket": ("#009e73", "s"),
}


@reproduction(
    "wang-2023-sao2-figure-2", title="Online shuffling of ExSub (d' = 1000, s = 20, m = 2, eps = 1): claimed and valid"
)
def figure_2(context: Context) -> Reproduced:
    """Formulas and a numerical bound; nothing is drawn at random."""
    exsub = ExSub(epsilon=EPSILON_2, dimension=POSITIONS_2 - S_2, sparsity=S_2, m=M)
    clones: dict[str, list[float]] = {name: [] for name in list(_LINES)[:2]}
    epsilons: dict[str, list[float]] = {name: [] for name in _LINES}
    for n in PEOPLE:
        for name, online in zip(clones, (False, True), strict=True):
            count, amplified = collaborative_clones(
                epsilon=EPSILON_2, positions=POSITIONS_2, sparsity=S_2, n=n, delta=DELTA, online=online
            )
            clones[name].append(count)
            epsilons[name].append(amplified.epsilon)
        epsilons["whole reports, the blanket"].append(amplify(exsub, n=n, delta=DELTA).epsilon)
    figure, (left, right) = canvas(1, 2)
    for panel, lines in ((left, clones), (right, epsilons)):
        for name, values in lines.items():
            colour, marker = _LINES[name]
            panel.plot(PEOPLE, values, color=colour, marker=marker, markersize=4, label=name)
    finish(left, "n", "clones, at least", "", log="xy")
    finish(right, "n", "$\\epsilon_c$", f"$\\delta$ = {DELTA:g}", log="xy")
    right.legend(fontsize=8, frameon=False)
    cells = [
        Cell(f"n = {n:,}", f"{what} {name}", None, value)
        for what, lines in (("clones,", clones), ("epsilon,", epsilons))
        for name, values in lines.items()
        for n, value in zip(PEOPLE, values, strict=True)
    ]
    return cells + [claim.cell() for claim in _claims_2(clones, epsilons)], figure


def _claims_2(clones: dict[str, list[float]], epsilons: dict[str, list[float]]) -> list[Claim]:
    (_, whole), (_, online) = clones.items()
    more = online[-1] / whole[-1] - 1
    whole_eps, online_eps, valid = (values[-1] for values in epsilons.values())
    note = "as claimed; its Lemma D.1 is false, and nothing beyond whole reports is proved"
    better = "the valid bound of whole reports to the claim for online ones, at a million"
    return [
        Claim("online shuffling offers more effective clones, by", more, paper="more than 20%", above=0.2, note=note),
        Claim(
            "and saves privacy budget, by",
            1 - online_eps / whole_eps,
            paper="about 10%",
            above=0.05,
            below=0.15,
            note=note,
        ),
        Claim(better, valid / online_eps, below=1, note="what is proved is better than what is claimed"),
    ]


EPSILONS = (0.001, 0.01, 1.0, 3.0, 5.0)
ROWS = ("FutureRand", "FutureRand, best", "Collision", "SUCCINCT", "SUCCINCT, unbiased", "CoCo", "ExSub", "NetSub")
TABLE_2, TABLE_4 = Place(50_000, 128, 8), Place(50_000, 512, 100)
Printed = Mapping[tuple[str, str], tuple[float, ...]]
PRINTED_2: Printed = {
    ("TVE", "FutureRand"): (3.4e4, 3493.8, 32.3, 10.1, 6.78),
    ("TVE", "Collision"): (4.6e3, 463.7, 4.13, 1.15, 0.54),
    ("TVE", "SUCCINCT"): (4.7e3, 479.6, 5.10, 2.66, 2.48),
    ("TVE", "ExSub"): (4.0e3, 393.9, 3.64, 0.84, 0.33),
    ("MAE", "FutureRand"): (1025.8, 97.0, 0.90, 0.31, 0.24),
    ("MAE", "Collision"): (128.1, 12.6, 0.11, 0.034, 0.021),
    ("MAE", "SUCCINCT"): (131.7, 13.7, 0.14, 0.077, 0.077),
    ("MAE", "ExSub"): (113.7, 10.5, 0.094, 0.026, 0.014),
}
PRINTED_4: Printed = {
    ("TVE", "FutureRand"): (3.7e5, 3.6e4, 341.8, 117.2, 84.2),
    ("TVE", "Collision"): (6.7e4, 6.8e3, 61.9, 17.0, 10.4),
    ("TVE", "SUCCINCT"): (6.7e4, 6.8e3, 85.6, 54.9, 43.2),
    ("TVE", "ExSub"): (5.4e4, 5.5e3, 49.8, 11.3, 6.91),
    ("MAE", "FutureRand"): (3161.1, 300.4, 2.71, 0.90, 0.72),
    ("MAE", "Collision"): (526.4, 55.6, 0.47, 0.17, 0.14),
    ("MAE", "SUCCINCT"): (555.4, 55.3, 0.66, 0.41, 0.35),
    ("MAE", "ExSub"): (426.3, 45.2, 0.41, 0.14, 0.11),
}
"""As printed, in the order of `EPSILONS`."""
NEAR = 0.05
BOUNDS = {"TVE": NEAR, "MAE": 2 * NEAR}  # a largest error varies more from run to run than a sum


@reproduction(
    "wang-2023-sao2-table-2", title="Errors of means under very small and large budgets, d = 128, s = 8", repeats=60
)
def table_2(context: Context) -> Reproduced:
    """Means without post-processing, of 50,000 people: the caption's 10,000 reproduces no number of the table."""
    return _table(context, TABLE_2, PRINTED_2, "n = 50,000, not the caption's 10,000")


@reproduction("wang-2023-sao2-table-4", title="Errors of means in dense vectors, 512 positions, s = 100", repeats=8)
def table_4(context: Context) -> Reproduced:
    """Means without post-processing. The caption's d' = 1024 counts both signs of 512 positions."""
    return _table(context, TABLE_4, PRINTED_4, "the caption's d' = 1024 counts both signs: 512 positions")


def theory(metric: str, name: str, epsilon: float, place: Place) -> float:
    """The expected error, by the exact variance of normal errors."""
    return (expected_tve if metric == "TVE" else expected_mae)(name, epsilon, place)


def _table(context: Context, place: Place, printed: Printed, caption: str) -> Reproduced:
    runs = sweep(context, {place: ROWS}, EPSILONS)
    cells = []
    for metric in ("TVE", "MAE"):
        for name in ROWS:
            for epsilon, paper in zip(EPSILONS, printed.get((metric, name), (None,) * len(EPSILONS)), strict=True):
                ours = average(runs, (place, epsilon, name), f"mean_{metric.lower()}")
                on_paper = theory(metric, name, epsilon, place)
                here = f"theory {on_paper * _larger(context, place):.4g}"
                runs_note = f"runs: {context.repeats} (the paper: 100)"
                away = _reproduces(paper, on_paper), _other_form(metric, name, epsilon, place, paper)
                note = joined(here, *away, METHODS[name].note, caption, runs_note)
                cells.append(Cell(f"{metric}, eps = {epsilon:g}", name, paper, ours, note))
    return cells + judged(lambda some: _claims_of_tables(some, place, printed, _larger(context, place)), runs), None


def _larger(context: Context, place: Place) -> float:
    """The factor by which errors are larger because the population is scaled down."""
    return math.sqrt(place.n / context.size(place.n))


def _reproduces(paper: float | None, on_paper: float) -> str:
    if paper is None:
        return ""
    difference = paper / on_paper - 1
    if abs(difference) <= NEAR:
        return ""
    return f"the paper's does not reproduce: {abs(difference):.0%} {'above' if difference > 0 else 'below'} the theory"


def _other_form(metric: str, name: str, epsilon: float, place: Place, paper: float | None) -> str:
    """The theory of a method as its authors' code has it, or as the text has it, where that is another one."""
    if name == "ExSub":
        return f"with the printed m: {theory(metric, 'ExSub, printed m', epsilon, place):.4g}"
    on_paper = theory(metric, name, epsilon, place)
    if name == "FutureRand":
        exact = FutureRand.published(epsilon=epsilon, dimension=place.d, sparsity=place.s)
        on_paper *= float(exact.gap("mean")) / authors_gap(epsilon, place.s)
    away = paper is not None and abs(paper / on_paper - 1) > 2 * NEAR
    if name == "FutureRand":
        beyond = "; what the print has beyond that is unexplained" if away else ""
        return f"divided as in the authors' code, by too little: {on_paper:.4g}{beyond}"
    if name == "SUCCINCT" and away:
        return "unexplained: were all signs alike, the authors' code, which cuts reports to integers, would err more"
    return ""


def _claims_of_tables(runs: Runs, place: Place, printed: Printed, larger: float) -> list[Claim]:
    def error(metric: str, epsilon: float, name: str) -> float:
        return average(runs, (place, epsilon, name), f"mean_{metric.lower()}")

    def on_paper(metric: str, epsilon: float, name: str) -> float:
        return theory(metric, name, epsilon, place)

    claims = []
    for metric in ("TVE", "MAE"):
        for name in ROWS:
            ratios = [error(metric, e, name) / larger / theory(metric, name, e, place) for e in EPSILONS]
            note = f"mean over eps, from {min(ratios):.3f} to {max(ratios):.3f}"
            near, off = BOUNDS[metric], float(np.mean(ratios))
            claims.append(Claim(f"{metric} of {name} to the theory", off, above=1 - near, below=1 + near, note=note))
    for metric in ("TVE", "MAE"):
        leads = _leads(metric, ("Collision", "SUCCINCT"), on_paper)
        measured_leads = _leads(metric, ("Collision", "SUCCINCT"), error)
        note = f"exact, to {max(leads):.0%}; measured {min(measured_leads):.0%} to {max(measured_leads):.0%}"
        statement = f"ExSub beats Collision and SUCCINCT in every setting, {metric}, its least lead"
        claims.append(Claim(statement, min(leads), "10%-30%", above=0.095, note=note))
        behind = min(error(metric, e, "FutureRand") / error(metric, e, "ExSub") for e in EPSILONS)
        least = float(np.divide(printed[metric, "FutureRand"], printed[metric, "ExSub"]).min())
        statement = f"FutureRand's {metric} is an order more than ExSub's, the least ratio"
        note = f"its published constants, divided by its exact gap; {least:.1f} in the table"
        claims.append(Claim(statement, behind, paper="an order more", above=10, note=note))
    ours = ("FutureRand, best", "SUCCINCT, unbiased", "CoCo", "Collision")
    exact = _leads("TVE", ours, on_paper)
    note = f"exact, from {min(exact):.1%} to {max(exact):.1%}"
    statement = "ExSub beats CoCo and our own best forms of the others too, TVE, its least lead"
    claims.append(Claim(statement, min(exact), above=0, note=note))
    net = [1 - theory("TVE", "NetSub", e, place) / theory("TVE", "ExSub", e, place) for e in EPSILONS]
    note = f"not in the paper; exact, from {min(net):.1%} to {max(net):.1%}"
    return [
        *claims,
        Claim("the net rule cuts ExSub's TVE, at the epsilon of its largest lead, by", max(net), above=0, note=note),
    ]


def _leads(metric: str, others: Sequence[str], error: Callable[[str, float, str], float]) -> list[float]:
    return [1 - error(metric, e, "ExSub") / min(error(metric, e, other) for other in others) for e in EPSILONS]
