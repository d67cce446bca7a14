"""Mechanisms for sparse ternary vectors, compared: the common part of the figures of CoCo and SaO2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.signs import capped_signs, clip_means
from hubbub.core.errors import InvalidValue
from hubbub.data.synthetic import sparse_vectors
from hubbub.mechanisms.ternary.coco import CoCo
from hubbub.mechanisms.ternary.collision import Collision
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.mechanisms.ternary.net_sub import NetSub
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect
from hubbub_papers.baselines.ddrm import DDRM
from hubbub_papers.baselines.efmrtt import EFMRTT
from hubbub_papers.baselines.future_rand import FutureRand
from hubbub_papers.baselines.kvue import KVUE
from hubbub_papers.baselines.pckv_agrr import PCKVAGRR
from hubbub_papers.baselines.pckv_grr import PCKVGRR
from hubbub_papers.baselines.pckv_ue import PCKVUE
from hubbub_papers.baselines.priv_kv import PrivKV
from hubbub_papers.baselines.succinct import PublishedSuccinct, Succinct
from hubbub_papers.baselines.topl import ToPLClipped
from hubbub_papers.harness import Context, RunScores
from hubbub_papers.study import Panel

Floats = NDArray[np.float64]


class Errors(NamedTuple):
    """The errors of means and of the frequencies of signs: total variation, maximum, squared.

    TVE is the sum of the absolute errors and MAE the largest of them, over d positions for means and over 2 d signs for
    frequencies. Fields that end in `_possible` are errors after post-processing: answers are projected onto the capped
    simplex, or, if a mechanism estimates no frequencies, clipped to -1 to 1. Squared errors are sums, without
    post-processing. Errors of what a mechanism does not estimate are NaN.
    """

    mean_tve: float
    mean_mae: float
    mean_tve_possible: float
    mean_mae_possible: float
    mean_squared: float
    sign_tve: float = np.nan
    sign_mae: float = np.nan
    sign_tve_possible: float = np.nan
    sign_mae_possible: float = np.nan
    sign_squared: float = np.nan
    frequency_squared: float = np.nan


def errors(mean: Floats, frequency: Floats | None, possible: tuple[Floats, Floats | None], people: Ternary) -> Errors:
    """The errors of estimated means and frequencies (if there are any), and of both after post-processing."""
    true_mean, true_frequency = people.means(), people.frequencies()
    possible_mean, possible_frequency = possible
    raw, processed = mean - true_mean, possible_mean - true_mean
    of_means = Errors(*_tve_and_mae(raw), *_tve_and_mae(processed), float((raw**2).sum()))
    if frequency is None or possible_frequency is None:
        return of_means
    raw_signs = _signs(raw, frequency - true_frequency)
    processed_signs = _signs(processed, possible_frequency - true_frequency)
    tve, mae = _tve_and_mae(raw_signs)
    tve_possible, mae_possible = _tve_and_mae(processed_signs)
    return of_means._replace(
        sign_tve=tve,
        sign_mae=mae,
        sign_tve_possible=tve_possible,
        sign_mae_possible=mae_possible,
        sign_squared=float((raw_signs**2).sum()),
        frequency_squared=float(((frequency - true_frequency) ** 2).sum()),
    )


Vectors: TypeAlias = "TernaryMechanism | PublishedSuccinct"
"""What is compared: mechanisms, and one that is known as it was published only."""


def measure(mechanism: Vectors, people: Ternary, rng: Random, *, exactly: bool = True) -> Errors:
    """Collect from these people and measure the errors.

    `exactly` says whether it is known that everyone holds exactly `sparsity` entries, or only at most as many.
    """
    if isinstance(mechanism, PublishedSuccinct):
        estimated = mechanism.means(people, rng)
        return errors(estimated, None, (np.clip(estimated, -1, 1), None), people)
    sketch = collect(mechanism, people, rng)
    mean = mechanism.estimate(sketch)
    if "frequency" not in mechanism.answers:
        return errors(mean.value, None, (clip_means(mean).value, None), people)
    frequency = mechanism.estimate(sketch, of="frequency")
    possible = capped_signs(mean, frequency, mechanism.sparsity, exactly=exactly)
    return errors(mean.value, frequency.value, (possible[0].value, possible[1].value), people)


def _signs(mean: Floats, frequency: Floats) -> Floats:
    """The shares of +1 and of -1 from means and frequencies; likewise their errors."""
    return np.concatenate([frequency + mean, frequency - mean]) / 2


def _tve_and_mae(differences: Floats) -> tuple[float, float]:
    return float(np.abs(differences).sum()), float(np.abs(differences).max())


Build = Callable[[float, int, int, int], Vectors]
"""From epsilon, the dimension, the sparsity, and the number of people."""


@dataclass(frozen=True)
class NamedMechanism:
    """A mechanism under a paper's name.

    The note says how it differs from what the papers ran.
    """

    name: str
    build: Build
    colour: str
    marker: str
    note: str = ""


def _best(kind: Callable[..., TernaryMechanism]) -> Build:
    """With the parameters of the smallest error of the mean."""
    return lambda epsilon, dimension, sparsity, n: kind(epsilon=epsilon, dimension=dimension, sparsity=sparsity)


def _succinct(epsilon: float, dimension: int, sparsity: int, n: int) -> PublishedSuccinct:
    return PublishedSuccinct(epsilon=epsilon, sparsity=sparsity, n=n)


def _printed_exsub(epsilon: float, dimension: int, sparsity: int, n: int) -> ExSub:
    m = printed_m(epsilon, dimension + sparsity, sparsity)
    return ExSub(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=m)


def printed_m(epsilon: float, positions: int, sparsity: int, of: Literal["mean", "frequency"] = "mean") -> int:
    """The m that S. Wang, Li, Xin et al., 2023, print for the least error of a mean or a frequency; d' is all."""
    more = sparsity + 2 if of == "mean" else 2 * sparsity + 1
    return math.ceil(positions / (math.exp(epsilon) * sparsity + more))


PUBLISHED = "SUCCINCT as published: biased by clipping to sqrt(s ln n)/2.5"
# Okabe and Ito's colours, which colour-blind readers can tell apart, and some of our own.
_ALL = (
    NamedMechanism("PrivKV", _best(PrivKV), "#7f4f24", "v", "PrivKV spends all of eps, the published one less"),
    NamedMechanism("KVUE", _best(KVUE), "#b8a800", "<"),
    NamedMechanism("PCKV-GRR", _best(PCKVGRR), "#e69f00", "s"),
    NamedMechanism("PCKV-AGRR", _best(PCKVAGRR), "#56b4e9", "^"),
    NamedMechanism("PCKV-UE", _best(PCKVUE), "#cc79a7", "X"),
    NamedMechanism("SUCCINCT", _succinct, "#009e73", "P", PUBLISHED),
    NamedMechanism(
        "SUCCINCT, unbiased", _best(Succinct), "#6fc9a9", "P", "SUCCINCT, bias undone, clipped where it is best: ours"
    ),
    NamedMechanism(
        "FutureRand",
        _best(FutureRand.published),
        "#808080",
        "h",
        "FutureRand with its published constants, divided by its exact gap",
    ),
    NamedMechanism("FutureRand, best", _best(FutureRand), "#b0b0b0", "h", "FutureRand that spends all of eps: ours"),
    NamedMechanism(
        "EFMRTT", _best(EFMRTT), "#332288", "*", "EFMRTT spends all of eps on a position, the published one half"
    ),
    NamedMechanism(
        "ToPL",
        _best(ToPLClipped),
        "#a05195",
        ">",
        "ToPL rounds stochastically, with the threshold 1 and no search for it",
    ),
    NamedMechanism(
        "DDRM",
        _best(DDRM),
        "#2f4b7c",
        "p",
        "DDRM's probabilities and number of entries are ours: they spend eps exactly",
    ),
    NamedMechanism("Collision", _best(Collision), "#0072b2", "o", "Collision's number of buckets by search: ours"),
    NamedMechanism("CoCo", _best(CoCo), "#d55e00", "D"),
    NamedMechanism("ExSub, printed m", _printed_exsub, "#777777", "d", "ExSub's m by the text's formula"),
    NamedMechanism(
        "ExSub", _best(ExSub), "#000000", "d", "ExSub's m by search, as in its authors' code, not by the text's formula"
    ),
    NamedMechanism("NetSub", _best(NetSub), "#e7298a", "8", "NetSub, the net rule: ours, in neither paper"),
)
METHODS: dict[str, NamedMechanism] = {method.name: method for method in _ALL}
"""Every mechanism that the two papers compare, by the papers' names; and NetSub, which is ours."""


@lru_cache(maxsize=256)  # the same in every run
def mechanism(name: str, epsilon: float, dimension: int, sparsity: int, n: int) -> Vectors:
    """The mechanism of that name, for n people."""
    if name not in METHODS:
        raise InvalidValue("name", name, f"one of {', '.join(METHODS)}")
    return METHODS[name].build(epsilon, dimension, sparsity, n)


def look(name: str) -> dict[str, Any]:
    """The plotting options of a method's line."""
    method = METHODS[name]
    return {
        "color": method.colour,
        "marker": method.marker,
        "label": method.name,
        "markersize": 5,
        "linewidth": 1.3,
        "markerfacecolor": "none" if name == "PCKV-AGRR" else method.colour,
    }


THREADS = 2
"""Runs made at the same time: numpy's loops let another thread run."""


class Place(NamedTuple):
    """A population: n people with vectors of length d, of which s entries are not 0."""

    n: int
    d: int
    s: int

    def scaled(self, context: Context) -> Place:
        """The same with the number of people scaled as the context says."""
        return self._replace(n=context.size(self.n))

    def __str__(self) -> str:
        return f"n = {self.n:,}, d = {self.d}, s = {self.s}"


Key = tuple[Place, float, str]
"""A place, epsilon, and a method."""
Runs = RunScores[Key]
PeopleKey = tuple[str, float, str]
"""The name of real people, epsilon, and a method."""
AnyKey = TypeVar("AnyKey")
Of = Literal["mean", "sign"]


def sweep(
    context: Context, places: Mapping[Place, Sequence[str]], epsilons: Sequence[float]
) -> dict[Key, NDArray[np.float64]]:
    """Measure the methods of every place at every epsilon: an array of `Errors`, one row per run.

    In one run, all methods have the same people. The randomness of a run depends on nothing but its own setting, so
    that figures that share settings share numbers.
    """

    @lru_cache(maxsize=2)
    def people(place: Place, run: int) -> Ternary:
        rng = context.rng.child("sparse vectors", *place, run)
        return sparse_vectors(context.size(place.n), place.d, place.s, rng)

    def run_step(step: tuple[Place, int, float, str]) -> dict[Key, Errors]:
        place, run, epsilon, method = step
        rng = context.rng.child("sparse", *place, str(epsilon), method, run)
        built = mechanism(method, epsilon, place.d, place.s, place.n)
        return {(place, epsilon, method): measure(built, people(place, run), rng)}

    runs = range(context.repeats)
    steps = [(place, run, e, m) for place, methods in places.items() for run in runs for e in epsilons for m in methods]
    return context.gather(steps, run_step, lambda s: f"{s[0]}, eps = {s[2]:g}, {s[3]}, run {s[1] + 1}", threads=THREADS)


def sweep_people(
    context: Context,
    name: str,
    people: Mapping[str, tuple[Ternary, int]],
    epsilons: Sequence[float],
    methods: Sequence[str],
) -> dict[PeopleKey, NDArray[np.float64]]:
    """Measure every method at every epsilon on real people, given by name as vectors and the number s of entries."""

    def run_once(key: PeopleKey, run: int) -> dict[PeopleKey, Errors]:
        who, epsilon, method = key
        vectors, sparsity = people[who]
        built = mechanism(method, epsilon, vectors.dimension, sparsity, len(vectors))
        rng = context.rng.child(name, who, str(epsilon), method, run)
        return {key: measure(built, vectors, rng, exactly=False)}

    settings = [(who, epsilon, method) for who in people for epsilon in epsilons for method in methods]
    return context.measure(settings, run_once, "{0[0]}, eps = {0[1]:g}, {0[2]}".format)


def average(runs: RunScores[AnyKey], key: AnyKey, field: str) -> float:
    """The mean over the runs of one of the `Errors`, by name."""
    return float(runs[key][:, Errors._fields.index(field)].mean())


def logs(runs: Runs, key: Key, field: str) -> float:
    """The mean over the runs of the natural logarithm of one of the `Errors`, which is what the papers draw."""
    return float(np.log(runs[key][:, Errors._fields.index(field)]).mean())


def errors_by_epsilon(
    runs: Runs, title: str, epsilons: Sequence[float], place: Place, field: str, metric: str
) -> Panel:
    """A panel with the error of each method of a place; errors on a logarithmic axis."""

    def height(method: str, epsilon: float) -> float:
        return math.exp(logs(runs, (place, epsilon, method), field))

    return Panel(title, epsilons, height, y=metric, log="xy")


def expected_tve(name: str, epsilon: float, place: Place, of: Of = "mean") -> float:
    """The expected TVE without post-processing: a sum of mean absolute normal errors, sqrt(2 variance/pi) each."""
    positions, deviation = _normal(name, epsilon, place, of)
    return positions * math.sqrt(2 / math.pi) * deviation


def expected_mae(name: str, epsilon: float, place: Place, of: Of = "mean") -> float:
    """The expected MAE without post-processing: the mean of the largest of as many independent normal errors."""
    positions, deviation = _normal(name, epsilon, place, of)
    x = np.linspace(0.0, 10.0, 4001)
    below = np.array([math.erf(number / math.sqrt(2)) for number in x])  # the chance that one error is no larger
    return float(np.trapezoid(1 - below**positions, x)) * deviation


def exact_leads(ours: str, others: Sequence[str], places: Sequence[Place], epsilons: Sequence[float]) -> Floats:
    """The relative reduction, in every setting, of the best other method's expected error of means.

    Without post-processing, sums of errors and largest errors are reduced alike.
    """
    return np.array(
        [
            1 - expected_tve(ours, e, place) / min(expected_tve(other, e, place) for other in others)
            for place in places
            for e in epsilons
        ]
    )


def _normal(name: str, epsilon: float, place: Place, of: Of) -> tuple[int, float]:
    """The number of errors, and the deviation of each, where everyone holds s of d positions: a share of s/d each."""
    built = mechanism(name, epsilon, place.d, place.s, place.n)
    share = place.s / place.d
    mean, frequency = (
        share * held + (1 - share) * missing
        for held, missing in (built.variances("mean"), built.variances("frequency"))
    )
    variance, positions = (mean, place.d) if of == "mean" else ((mean + frequency) / 4, 2 * place.d)
    return positions, math.sqrt(variance / place.n)
