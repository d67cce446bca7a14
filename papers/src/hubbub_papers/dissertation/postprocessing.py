"""What the figures of chapter 8 share: two populations, estimates of them by OLH, and the eleven methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency import METHODS, answer
from hubbub.core.estimate import Estimate
from hubbub.data.counts import emoji
from hubbub.data.synthetic import zipf
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect
from hubbub_papers.harness import Context
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

KEYS = {
    "Base": "base",
    "Base-Pos": "base-pos",
    "Post-Pos": "post-pos",
    "Norm": "norm",
    "Norm-Mul": "norm-mul",
    "Norm-Sub": "norm-sub",
    "MLE-Apx": "mle-apx",
    "Base-Cut": "base-cut",
    "Norm-Cut": "norm-cut",
    "Power": "power",
    "PowerNS": "power-ns",
}
"""The chapter's names of the methods, and their names in `hubbub.consistency.METHODS`."""

LEFT = ("Base", "Base-Pos", "Post-Pos", "Norm", "Norm-Mul", "Norm-Sub")
RIGHT = ("Norm-Sub", "MLE-Apx", "Base-Cut", "Norm-Cut", "Power", "PowerNS")
EPSILONS = (0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
OTHER_DATA = "other data: 969 emoji, 156,941 uses in tweets, for the paper's 1,573 and 884,427"


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """People whose values are known.

    Parameters
    ----------
    name
        "Zipf" or "Emoji".
    values
        The code of each person.
    domain
        The number of codes.
    groups
        The category of each code, if there are categories.
    """

    name: str
    values: NDArray[np.int64]
    domain: int
    groups: NDArray[np.str_] | None = None

    @property
    def truth(self) -> Floats:
        """The true share of each code."""
        return np.bincount(self.values, minlength=self.domain) / self.values.size

    @property
    def ranked(self) -> NDArray[np.int64]:
        """The codes, most frequent first."""
        return np.argsort(-self.truth, kind="stable")


def zipf_population(context: Context, n: int = 1_000_000) -> KnownPeople:
    """The chapter's synthetic data: Zipf with s = 1.5, d = 1,024, n people; drawn once, not once a run."""
    size = context.size(n, least=1000)
    return KnownPeople("Zipf", zipf(size, 1024, 1.5, context.rng.child("Zipf population", n)), 1024)


def emoji_population(context: Context) -> KnownPeople:
    """Our emoji instead of the chapter's; scaled down, a sample of their uses."""
    uses = emoji()
    n = context.size(uses.n, least=1000)
    values = np.repeat(np.arange(len(uses)), uses.counts)
    if n < uses.n:
        values = values[context.rng.child("part of the emoji").permutation(uses.n)[:n]]
    return KnownPeople("Emoji", values, len(uses), uses.groups)


def estimated(population: KnownPeople, epsilon: float, rng: Random) -> Estimate:
    """The estimate of the population from one collection by OLH."""
    olh = OLH(epsilon=epsilon, domain=population.domain)
    return olh.estimate(collect(olh, population.values, rng))


def full_domain(estimate: Estimate) -> dict[str, Floats]:
    """The share of each value on its own, under each method."""
    return {name: METHODS[key].apply(estimate).value for name, key in KEYS.items()}


def answers(estimate: Estimate, queries: Floats) -> dict[str, Floats]:
    """The share of each set (a row of zeros and ones), under each method."""
    return {name: answer(estimate, queries, method=key).value for name, key in KEYS.items()}


def squared_error(shares: Floats, truth: Floats) -> float:
    """The mean squared error of estimated shares."""
    return float(((shares - truth) ** 2).mean())


def data_note(population: str) -> str:
    """What differs from the paper's data: nothing of the Zipf population."""
    return "" if population == "Zipf" else OTHER_DATA


def draw_rows(
    xs: Sequence[float],
    rows: Mapping[str, Mapping[str, Sequence[Floats]]],
    *,
    labels: tuple[str, str],
    log: str = "y",
    width: float = 4.6,
) -> Figure:
    """The chapter's layout: a row of two panels for each population, six methods in each panel.

    `rows` holds, by population and method, the runs at each x: their mean and standard deviation are drawn.
    """
    figure, panels = canvas(len(rows), 2, width=width)
    for panel, (name, methods) in zip(panels, product(rows, (LEFT, RIGHT)), strict=True):
        draw_methods(panel, xs, {method: rows[name][method] for method in methods})
        finish(panel, *labels, name, log=log)
    legend_below(figure, panels, columns=6)
    return figure
