"""CALM: each person reports their cell of one of a few marginals; other marginals are reconstructed from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hubbub.consistency.marginals import Attributes, cell_of, check_attributes, check_rows, check_sizes
from hubbub.consistency.normalise import norm
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.subset import SubsetSelection
from hubbub.protocols.marginals.plan import THETA, plan_marginals
from hubbub.protocols.marginals.synopsis import Synopsis
from hubbub.random.source import Random

MOST_SUBSET_CELLS = 64
"""With more cells, subset selection and OUE differ little, and OUE's reports are faster to make."""
OracleChoice = Literal["adaptive", "best"]
"""The text's choice, GRR or OUE by variance; or the best of these and subset selection, which errs less than both where
cells are few and epsilon is small."""


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """The sketch of the reports on each marginal: all that the server stores."""

    sketches: Mapping[Attributes, Sketch]

    def __add__(self, other: MarginalCounts) -> MarginalCounts:
        if set(self.sketches) != set(other.sketches):
            raise InvalidValue("sketches", sorted(other.sketches), "sketches of the same marginals")
        return MarginalCounts({view: sketch + other.sketches[view] for view, sketch in self.sketches.items()})

    @property
    def n(self) -> int:
        """How many people reported."""
        return sum(sketch.n for sketch in self.sketches.values())


@dataclass(frozen=True)
class CALM:
    """Consistent adaptive local marginals.

    A person is assigned one of the marginals at random and reports their cell of it with the whole budget, by the
    frequency oracle with the least error for that number of cells. The server makes the marginals consistent.

    `marginals`: the attributes of each marginal that people report on; every attribute is in at least one. `planned`
    chooses them. `choice`: from which oracles the one of each marginal is chosen: "best" or "adaptive".

    References
    ----------
    Zhang et al., 2018; T. Wang, 2021, section 6.2.
    """

    epsilon: float
    sizes: tuple[int, ...]
    marginals: tuple[Attributes, ...]
    choice: OracleChoice = "best"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", check_sizes(self.sizes))
        units_of(self.epsilon)
        if self.choice not in get_args(OracleChoice):
            raise InvalidValue("choice", self.choice, f"one of {', '.join(get_args(OracleChoice))}")
        views = tuple(check_attributes(view, self.sizes) for view in self.marginals)
        if len(set(views)) < len(views):
            raise InvalidValue("marginals", self.marginals, "marginals that differ")
        missing = sorted(set(range(len(self.sizes))).difference(*views))
        if missing:
            raise InvalidValue("marginals", self.marginals, f"marginals that cover every attribute, also {missing}")
        object.__setattr__(self, "marginals", views)

    @classmethod
    def planned(
        cls,
        epsilon: float,
        sizes: Sequence[int],
        *,
        n: int,
        k: int,
        theta: float = THETA,
        choice: OracleChoice = "best",
    ) -> CALM:
        """With the marginals that Algorithm 2 chooses for n people and k-way marginals; see `plan_marginals`."""
        return cls(epsilon, tuple(sizes), plan_marginals(n, sizes, epsilon, k=k, theta=theta).marginals, choice)

    def oracle(self, marginal: Attributes) -> FrequencyOracle:
        """The oracle of a marginal: the one with the least variance for its number of cells."""
        return marginal_oracle(self.epsilon, prod(self.sizes[column] for column in marginal), self.choice)

    def randomize(self, records: ArrayLike, rng: Random) -> dict[Attributes, Reports]:
        """The reports of people whose records (rows) have a code for each attribute, by the marginal they are on."""
        codes = check_rows(records, self.sizes)
        chosen = rng.below(len(self.marginals), len(codes))
        return {
            view: self.oracle(view).randomize(cell_of(codes[chosen == place], view, self.sizes), rng)
            for place, view in enumerate(self.marginals)
        }

    def accumulate(self, reports: Mapping[Attributes, Reports]) -> MarginalCounts:
        """The sketches of reports."""
        unknown = sorted(set(reports) - set(self.marginals))
        if unknown:
            raise InvalidValue("reports", unknown, "reports on the marginals that were asked for")
        return MarginalCounts(
            {
                view: self.oracle(view).accumulate(reports[view]) if view in reports else self.oracle(view).empty()
                for view in self.marginals
            }
        )

    def estimate(self, counts: MarginalCounts) -> Synopsis:
        """The synopsis, which gives any marginal; reported marginals without a report are left out."""
        return Synopsis(self.unbiased(counts), self.sizes)

    def unbiased(self, counts: MarginalCounts) -> dict[Attributes, Estimate]:
        """The unbiased estimate of each marginal from its own reports, with the variance of noise and sampling."""
        sketches = {view: sketch for view, sketch in counts.sketches.items() if sketch.n}
        missing = sorted(set(range(len(self.sizes))).difference(*sketches))
        if missing:
            raise InvalidValue("counts", f"{counts.n} reports", f"reports on every attribute: none are on {missing}")
        return {view: self.oracle(view).estimate(sketch).of_population(counts.n) for view, sketch in sketches.items()}


def release_marginals(
    records: ArrayLike,
    sizes: Sequence[int],
    epsilon: float,
    *,
    k: int,
    rng: Random,
    theta: float = THETA,
    choice: OracleChoice = "best",
) -> Synopsis:
    """Run CALM on a batch of records: plan, reports, sketches and estimates in one call.

    Parameters
    ----------
    records
        A row for each person, with a code for each attribute.
    k
        The number of attributes of the marginals that the error is minimised for; others can be estimated too.
    theta
        As of `plan_marginals`.
    choice
        As of `CALM`.
    """
    codes = check_rows(records, check_sizes(sizes))
    if not len(codes):
        raise InvalidValue("records", codes.shape, "at least one")
    calm = CALM.planned(epsilon, sizes, n=len(codes), k=k, theta=theta, choice=choice)
    return calm.estimate(calm.accumulate(calm.randomize(codes, rng)))


@lru_cache(maxsize=1 << 12)
def marginal_oracle(epsilon: float, cells: int, choice: OracleChoice = "best") -> FrequencyOracle:
    """The text's oracle; or, if it is to be the best, the one with the least variance of shares that are normalised."""
    oracles: list[FrequencyOracle] = [adaptive(epsilon=epsilon, domain=cells)]
    if choice == "best" and cells <= MOST_SUBSET_CELLS:
        oracles.append(SubsetSelection(epsilon=epsilon, domain=cells))
    shares = np.full(1, 1 / cells)
    return min(oracles, key=lambda oracle: float(oracle.noise(1).centred(cells, 1.0).variance(shares)[0]))


@dataclass(frozen=True)
class ReconstructionError:
    """The sum of squared errors of a reconstructed marginal, averaged over the marginals that were left out.

    Parameters
    ----------
    squared
        The mean, without the noise and sampling of the left-out marginals themselves: unbiased, and so sometimes below
        0. It is for marginals with as many attributes as people reported on; larger marginals may have larger errors.
    stderr
        The standard error of the mean, from how the marginals differ; infinite for a single marginal.
    """

    squared: float
    stderr: float
    marginals: int


def measured_reconstruction(
    estimates: Mapping[Attributes, Estimate], sizes: Sequence[int], *, most: int = 16
) -> ReconstructionError:
    """Leave out one marginal at a time, reconstruct it from the others, and compare it with its own unbiased estimate.

    The groups of people are disjoint, so that the two are independent: the expected squared difference is the squared
    error of the reconstruction plus the known variance of the left-out estimate.

    `estimates`: unbiased estimates by attributes, as `CALM.unbiased` gives.
    """
    known = check_sizes(sizes)
    differences: list[float] = []
    for view, estimate in estimates.items():
        others = {other: unbiased for other, unbiased in estimates.items() if other != view}
        covered = set().union(*others) if others else set()
        if len(differences) == most or not set(view) <= covered or any(set(view) <= set(other) for other in others):
            continue
        direct = norm(estimate)
        reconstructed = Synopsis(others, known).table(view).ravel()
        differences.append(float(((reconstructed - direct.value) ** 2).sum() - direct.variance.sum()))
    if not differences:
        raise InvalidValue(
            "estimates", sorted(estimates), "a marginal whose attributes are in other marginals, but not in one of them"
        )
    number = len(differences)
    spread = float(np.std(differences, ddof=1)) / number**0.5 if number > 1 else np.inf
    return ReconstructionError(float(np.mean(differences)), spread, number)
