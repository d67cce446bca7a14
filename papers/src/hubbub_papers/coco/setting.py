"""What figures 6 to 16 share: populations, epsilons, a panel for each sparsity, and the ratios that claims use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub_papers.harness import Cell, Context, Reproduced
from hubbub_papers.result import Claim, joined
from hubbub_papers.sparse import METHODS, Place, Runs, average, errors_by_epsilon, logs, look, sweep
from hubbub_papers.study import Study

SPARSITIES = (4, 8, 16, 32)
EPSILONS = (0.001, 0.01, 0.1, 0.2, 0.4, 0.8, 1.0, 1.5, 2.0)
LARGE = (0.8, 1.0, 1.5, 2.0)
"""The epsilons at which post-processed answers still depend much on the reports."""


@dataclass(frozen=True)
class CocoStudy:
    """One figure: the number of people, the length of their vectors, the methods, and the error.

    `field` of `Errors` is called `metric` in the figure. `reference` has the n and d of the figure that this
    one is compared with.
    """

    n: int
    d: int
    methods: tuple[str, ...]
    field: str
    metric: str
    reference: tuple[int, int] | None = None

    def error(self, runs: Runs, s: int, epsilon: float, method: str) -> float:
        """The mean error over the runs."""
        return average(runs, (Place(self.n, self.d, s), epsilon, method), self.field)

    @property
    def plain(self) -> CocoStudy:
        """The same without post-processing."""
        return replace(self, field=self.field.removesuffix("_possible"))

    def leads(self, runs: Runs, ours: str, others: Sequence[str], *, at: Sequence[float] = EPSILONS) -> list[float]:
        """The relative reduction of the best other method's error by `ours`, in every setting."""
        return [
            1 - self.error(runs, s, e, ours) / min(self.error(runs, s, e, other) for other in others)
            for s in SPARSITIES
            for e in at
        ]

    def quotients(self, runs: Runs, above: str, below: str) -> list[float]:
        """The quotient of two methods' errors, in every setting."""
        return [self.error(runs, s, e, above) / self.error(runs, s, e, below) for s in SPARSITIES for e in EPSILONS]

    def ratio(self, runs: Runs, above: str, below: str, s: int, *, at: Sequence[float] = EPSILONS) -> float:
        """The geometric mean over epsilon of the quotient of two methods' errors."""
        steps = [math.log(self.error(runs, s, e, above) / self.error(runs, s, e, below)) for e in at]
        return math.exp(float(np.mean(steps)))

    def growth(self, runs: Runs, method: str, field: str, *, at: Sequence[float] = EPSILONS) -> float:
        """The factor by which an error grows from the reference figure to this one: a geometric mean over settings."""
        assert self.reference is not None
        steps = [
            math.log(average(runs, (Place(self.n, self.d, s), e, method), field))
            - math.log(average(runs, (Place(*self.reference, s), e, method), field))
            for s in SPARSITIES
            for e in at
        ]
        return math.exp(float(np.mean(steps)))

    def growth_claims(self, runs: Runs, method: str, factor: str, size: float) -> list[Claim]:
        """Claims that the error grows by a factor of a size: at all epsilons, at large ones, and unprocessed."""
        cases = [
            (self.field, EPSILONS, "all eps"),
            (self.field, LARGE, "eps of at least 0.8"),
            (self.plain.field, EPSILONS, "without post-processing"),
        ]
        return [
            Claim(
                f"{self.metric} of {method} grows by about {factor}, {words}",
                self.growth(runs, method, field, at=at),
                paper=f"about {factor}",
                above=0.8 * size,
                below=1.25 * size,
                note=f"here {size:.3g}",
            )
            for field, at, words in cases
        ]


def compare(
    context: Context,
    study: CocoStudy,
    claims_of: Callable[[Runs], Sequence[Claim]],
    *,
    of_reference: Sequence[str] = (),
) -> Reproduced:
    """Measure a study, draw a panel for each sparsity, and judge the claims.

    The methods `of_reference` are measured at the n and d of the reference figure too.
    """
    places: dict[Place, Sequence[str]] = {Place(study.n, study.d, s): study.methods for s in SPARSITIES}
    if study.reference is not None:
        places |= {Place(*study.reference, s): of_reference for s in SPARSITIES}
    runs = sweep(context, places, EPSILONS)
    panels = [
        errors_by_epsilon(runs, str(place.scaled(context)), EPSILONS, place, study.field, study.metric)
        for place in list(places)[: len(SPARSITIES)]
    ]
    runs_note = f"mean of ln, {context.repeats} runs (the paper: 100)"
    cells = [
        Cell(
            f"s = {s}, eps = {epsilon:g}: ln {study.metric}",
            method,
            None,
            logs(runs, (Place(study.n, study.d, s), epsilon, method), study.field),
            joined(runs_note, METHODS[method].note),
        )
        for s in SPARSITIES
        for epsilon in EPSILONS
        for method in study.methods
    ]
    return Study(runs, cells, study.methods, panels, claims_of, rows=2, look_of=look).reproduced()
