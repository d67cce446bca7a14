"""Figures 12 to 16: means, as they are and made possible, by epsilon and sparsity."""

import math

import numpy as np

from hubbub_papers.coco.setting import EPSILONS, LARGE, SPARSITIES, CocoStudy, compare
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.result import Claim
from hubbub_papers.sparse import Place, Runs, exact_leads, expected_mae

METHODS = ("PrivKV", "PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "SUCCINCT", "Collision", "CoCo")
OTHERS = METHODS[:-2]
N, D = 100_000, 256
PLAIN = ("mean_mae", "MAE")
MAE, TVE = ("mean_mae_possible", "MAE"), ("mean_tve_possible", "TVE")


@reproduction(
    "wang-2023-vectors-figure-12", title="MAE of means without post-processing, n = 100,000, d = 256", repeats=3
)
def figure_12(context: Context) -> Reproduced:
    """The largest error of d means, as they are."""
    study = CocoStudy(N, D, (*METHODS, "ExSub", "NetSub"), *PLAIN)  # the last two are not in the paper's figure
    return compare(context, study, lambda runs: _claims(study, runs) + _succinct(study, runs))


@reproduction("wang-2023-vectors-figure-13", title="MAE of means with post-processing, n = 100,000, d = 256", repeats=3)
def figure_13(context: Context) -> Reproduced:
    """The same of means from projected frequencies of signs; SUCCINCT's are cut at -1 and 1."""
    study = CocoStudy(N, D, METHODS, *MAE)
    return compare(context, study, lambda runs: _claims(study, runs))


@reproduction("wang-2023-vectors-figure-14", title="TVE of means with post-processing, n = 100,000, d = 256", repeats=3)
def figure_14(context: Context) -> Reproduced:
    """The sum of the absolute errors of d means, made possible."""
    study = CocoStudy(N, D, METHODS, *TVE)
    return compare(context, study, lambda runs: _claims(study, runs) + _denser(study, runs))


@reproduction("wang-2023-vectors-figure-15", title="TVE of means with post-processing, n = 100,000, d = 512", repeats=3)
def figure_15(context: Context) -> Reproduced:
    """Vectors of twice the length, compared with figure 14."""
    study = CocoStudy(N, 2 * D, METHODS, *TVE, reference=(N, D))

    def claims(runs: Runs) -> list[Claim]:
        grown = study.growth_claims(runs, "CoCo", "sqrt(d)", math.sqrt(2))
        return _claims(study, runs) + _denser(study, runs) + grown

    return compare(context, study, claims, of_reference=("CoCo",))


@reproduction("wang-2023-vectors-figure-16", title="TVE of means with post-processing, n = 10,000, d = 256", repeats=5)
def figure_16(context: Context) -> Reproduced:
    """A tenth of the people, compared with figure 14."""
    study = CocoStudy(N // 10, D, METHODS, *TVE, reference=(N, D))

    def claims(runs: Runs) -> list[Claim]:
        return _claims(study, runs) + study.growth_claims(runs, "CoCo", "sqrt(n)", math.sqrt(10))

    return compare(context, study, claims, of_reference=("CoCo",))


def _claims(study: CocoStudy, runs: Runs) -> list[Claim]:
    existing = np.array(study.leads(runs, "Collision", OTHERS, at=LARGE))
    note, places = "mean over s, and eps of at least 0.8", [Place(study.n, study.d, s) for s in SPARSITIES]
    how = f"it leads in {np.mean(existing > 0):.0%} of these settings"
    if not study.field.endswith("_possible"):
        how, existing = f"exact; measured {existing.mean():.1%}", exact_leads("Collision", OTHERS, places, LARGE)
    lead, how = float(existing.mean()), f"{note}; {how}"
    statement = "Collision beats the best of the others by about 30%"
    claims = [Claim(statement, lead, "about 30%", above=0.25, below=0.35, note=how)]
    statement = "CoCo reduces the error of Collision by more than 15%"
    for shown, at, words in ((study, LARGE, note), (study.plain, EPSILONS, "without post-processing, all eps")):
        further = shown.leads(runs, "CoCo", ("Collision",), at=at)
        claims.append(Claim(f"{statement}; {words}", float(np.mean(further)), paper=0.15, above=0.15))
    exact = exact_leads("CoCo", ("Collision",), places, EPSILONS)
    words = f"from {exact.min():.1%} to {exact.max():.1%}"
    claims.append(Claim(f"{statement}; exact TVE, all eps", float(np.mean(exact)), paper=0.15, above=0.15, note=words))
    return claims


def _succinct(study: CocoStudy, runs: Runs) -> list[Claim]:
    """SUCCINCT's lag behind Collision as eps and s grow, on paper, with the bias of clipping."""
    claims = []
    for words, first, last in (
        ("s = 8, at eps = 2 to at eps = 0.1", (8, 0.1), (8, 2.0)),
        ("eps = 1, at s = 32 to at s = 4", (4, 1.0), (32, 1.0)),
    ):
        small, large = (
            expected_mae("SUCCINCT", e, Place(study.n, study.d, s))
            / expected_mae("Collision", e, Place(study.n, study.d, s))
            for s, e in (first, last)
        )
        before, after = (study.ratio(runs, "SUCCINCT", "Collision", s, at=(e,)) for s, e in (first, last))
        note = f"exact, of random signs, which hide most of the bias; measured {after / before:.2f}"
        claims.append(Claim(f"SUCCINCT to Collision, {words}: worse", large / small, "worse", above=1, note=note))
    return claims


def _denser(study: CocoStudy, runs: Runs) -> list[Claim]:
    first, last = (study.ratio(runs, "PCKV-AGRR", "Collision", s, at=(2.0,)) for s in (4, 32))
    statement = (
        "PCKV-AGRR comes nearer to Collision as vectors grow denser, eps = 2, its lag at s = 32 to that at s = 4"
    )
    return [Claim(statement, last / first, below=1, note=f"to Collision: {first:.3g} at s = 4, {last:.3g} at s = 32")]
