"""Figures 6 to 11: frequencies of signs, by epsilon and sparsity, as the vectors grow longer and the people fewer."""

import math

import numpy as np

from hubbub_papers.coco.setting import CocoStudy, compare
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.result import Claim
from hubbub_papers.sparse import Runs

METHODS = ("PrivKV", "PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "Collision")
OTHERS = METHODS[:-1]
N, D = 100_000, 256
TVE, MAE = ("sign_tve_possible", "TVE"), ("sign_mae_possible", "MAE")


@reproduction("wang-2023-vectors-figure-6", title="TVE of frequencies, n = 100,000, d = 256", repeats=3)
def figure_6(context: Context) -> Reproduced:
    """The sum of the absolute errors of the frequencies of 2 d signs, projected onto the capped simplex."""
    return _by_sparsity(context, CocoStudy(N, D, METHODS, *TVE))


@reproduction("wang-2023-vectors-figure-7", title="MAE of frequencies, n = 100,000, d = 256", repeats=3)
def figure_7(context: Context) -> Reproduced:
    """The largest of the same errors."""
    return _by_sparsity(context, CocoStudy(N, D, METHODS, *MAE))


@reproduction("wang-2023-vectors-figure-8", title="TVE of frequencies, n = 100,000, d = 512", repeats=3)
def figure_8(context: Context) -> Reproduced:
    """Vectors of twice the length, compared with figure 6."""
    return _grown(context, CocoStudy(N, 2 * D, METHODS, *TVE, reference=(N, D)), "sqrt(d)", math.sqrt(2))


@reproduction("wang-2023-vectors-figure-9", title="MAE of frequencies, n = 100,000, d = 512", repeats=3)
def figure_9(context: Context) -> Reproduced:
    """Vectors of twice the length, compared with figure 7."""
    return _grown(context, CocoStudy(N, 2 * D, METHODS, *MAE, reference=(N, D)), "sqrt(d)", math.sqrt(2))


@reproduction("wang-2023-vectors-figure-10", title="TVE of frequencies, n = 10,000, d = 256", repeats=5)
def figure_10(context: Context) -> Reproduced:
    """A tenth of the people, compared with figure 6."""
    return _grown(context, CocoStudy(N // 10, D, METHODS, *TVE, reference=(N, D)), "sqrt(n)", math.sqrt(10))


@reproduction("wang-2023-vectors-figure-11", title="MAE of frequencies, n = 10,000, d = 256", repeats=5)
def figure_11(context: Context) -> Reproduced:
    """A tenth of the people, compared with figure 7."""
    return _grown(context, CocoStudy(N // 10, D, METHODS, *MAE, reference=(N, D)), "sqrt(n)", math.sqrt(10))


def _by_sparsity(context: Context, study: CocoStudy) -> Reproduced:
    return compare(context, study, lambda runs: _claims(study, runs))


def _grown(context: Context, study: CocoStudy, factor: str, size: float) -> Reproduced:
    def claims(runs: Runs) -> list[Claim]:
        return _claims(study, runs) + study.growth_claims(runs, "Collision", factor, size)

    return compare(context, study, claims, of_reference=("Collision",))


def _claims(study: CocoStudy, runs: Runs) -> list[Claim]:
    drowned = "where noise drowns all, answers made possible are alike"
    claims = []
    for shown, words, why in ((study, "", drowned), (study.plain, ", without post-processing", "")):
        leads = shown.leads(runs, "Collision", OTHERS)
        reductions = [1 - 1 / quotient for other in OTHERS for quotient in shown.quotients(runs, other, "Collision")]
        claims += [
            Claim(
                f"Collision beats all others in almost all settings{words}, the share of them",
                float(np.mean(np.array(leads) > 0)),
                paper="almost all",
                above=0.9,
                note="; ".join(filter(None, ["s = 4 to 32, all eps", why])),
            ),
            Claim(
                f"Collision reduces errors by more than 60% on average{words}",
                float(np.mean(reductions)),
                paper=0.6,
                above=0.6,
                note="; ".join(filter(None, ["over s, eps and the others", why])),
            ),
        ]
    sparse, dense = (study.ratio(runs, "PCKV-UE", "PrivKV", s) for s in (4, 32))
    first, last = (study.ratio(runs, "PCKV-AGRR", "Collision", s, at=(2.0,)) for s in (4, 32))
    return [
        *claims,
        Claim("PCKV-UE improves on PrivKV where vectors are very sparse, s = 4, the ratio", sparse, below=1),
        Claim(
            "PCKV-UE and PrivKV are similar at s = 32, the ratio",
            dense,
            paper="similar",
            above=0.8,
            below=1.25,
        ),
        Claim(
            "PCKV-AGRR comes nearer to Collision as s grows, eps = 2, its lag at s = 32 to that at s = 4",
            last / first,
            below=1,
            note=f"to Collision: {first:.3g} at s = 4, {last:.3g} at s = 32",
        ),
    ]
