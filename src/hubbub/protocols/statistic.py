"""Statistics (the shares of a domain's values, the mean of a number, its distribution), and the steady streams of them.

In a steady stream every device is asked the same at every step; of a table, its cell at one level.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from hubbub.core.domain import Domain, Values, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.bundle import Bundle
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.ask import Arc, Ask, equal_arcs
from hubbub.protocols.driver import MAIN, Protocol, Release, ask_all, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.views.basic import Clipped, View, Whole
from hubbub.statistics.distribution import Distribution


class Statistic(ABC):
    """Something that can be estimated from reports at any epsilon."""

    size: int
    """How many numbers its estimate has."""
    view: View
    """What devices look at of their value."""
    kind: ClassVar[Literal["share", "quantity"]] = "share"
    """Whether the numbers are shares of the population or quantities."""

    @abstractmethod
    def mechanism(self, units: int) -> ReportFormat:
        """The mechanism that spends at most a given number of units of 1e-12 epsilon."""

    @abstractmethod
    def error(self, units: int, n: float, like: Floats) -> float:
        """The mean variance of an estimate from n reports, if the truth is near `like` (Eq 4 of LDP-IDS)."""

    def spread(self, like: Floats) -> float:
        """The mean variance of the values themselves: divided by n, the sampling variance of a random sample of n."""
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        """The estimate from a sketch of the mechanism's reports; `candidates` are needed for open domains.

        The fake reports that shufflers added are subtracted, and their variance is part of the estimate's.
        """
        if sketch.fakes and candidates is None:
            from hubbub.privacy.fakes import estimate_without_fakes

            if isinstance(mechanism, FrequencyOracle):
                return estimate_without_fakes(mechanism, sketch.with_fakes(0), sketch.fakes)
        return mechanism.estimate(sketch, candidates)

    def answers(
        self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None, groups: int = 1
    ) -> Mapping[str, Estimate]:
        """All estimates from a sketch, by name, the main one first.

        If one of several equal `groups` of people was asked, variances include that of the sample.
        """
        return {MAIN: self.read(mechanism, sketch, candidates).of_groups(groups)}


@dataclass(frozen=True)
class Frequencies(Statistic):
    """The share of each value, by GRR or OUE, whichever is better (the paper's Ada)."""

    domain: DomainLike
    view: View = Whole()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        domain = as_domain("domain", self.domain)
        if domain.size is None:
            raise InvalidValue("domain", domain, "a domain with a size")
        object.__setattr__(self, "domain", domain)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many values there are."""
        size = as_domain("domain", self.domain).size
        assert size is not None
        return size

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(units, as_domain("domain", self.domain))

    def error(self, units: int, n: float, like: Floats) -> float:
        # Shares sum to 1, so the mean of the frequency term needs no guess: it carries 1/d.
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope / self.size) / n


@dataclass(frozen=True)
class Means(Statistic):
    """The mean of a number between low and high, by the hybrid mechanism; the device clips other values."""

    low: float
    high: float
    size = 1
    kind = "quantity"

    @property
    def view(self) -> View:  # type: ignore[override]
        """Clip to the range."""
        return Clipped(self.low, self.high)

    def mechanism(self, units: int) -> Hybrid:
        return _hybrid(units, self.low, self.high)

    def error(self, units: int, n: float, like: Floats) -> float:
        return self.mechanism(units).variance(1, float(np.clip(like[0], self.low, self.high))) / n

    def spread(self, like: Floats) -> float:
        return 0.0  # the variance of the mechanism at the mean already includes it


@lru_cache(maxsize=4096)
def _oracle(units: int, domain: Domain) -> FrequencyOracle:
    return adaptive(epsilon=epsilon_of(units), domain=domain, most_bytes=1 << 16)


@lru_cache(maxsize=4096)
def _hybrid(units: int, low: float, high: float) -> Hybrid:
    return Hybrid(epsilon=epsilon_of(units), low=low, high=high)


QUANTILES, MEAN = "Quantiles", "Mean"
SPREAD_ARITHMETIC = 1
"""The version of what a distribution releases, with its intervals: it rises with every change, and a new era begins."""
MOST_CELLS = 1024
_PEOPLE = 100_000  # the forecast's error is computed for this number of people, and scaled to the actual number


@dataclass(frozen=True)
class Spread(Statistic):
    """The distribution of a number between low and high, by the square wave mechanism; the device clips other values.

    Parameters
    ----------
    low, high
        The range.
    cells
        How many cells of equal width the histogram has.
    quantiles
        The shares whose quantiles are released.
    """

    low: float
    high: float
    cells: int
    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.95)

    def __post_init__(self) -> None:
        if not 2 <= self.cells <= MOST_CELLS:
            raise InvalidValue("cells", self.cells, f"from 2 to {MOST_CELLS} cells, for a distribution")
        if not self.quantiles or not all(isinstance(p, float) and 0 < p < 1 for p in self.quantiles):
            raise InvalidValue("quantiles", self.quantiles, "at least one number between 0 and 1")

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return self.cells

    @property
    def view(self) -> View:  # type: ignore[override]
        """Clip to the range."""
        return Clipped(self.low, self.high)

    def mechanism(self, units: int) -> SquareWave:
        return _wave(units, self.low, self.high, 255 if self.cells <= 256 else MOST_CELLS - 1)

    def error(self, units: int, n: float, like: Floats) -> float:
        # The mean variance of a cell for uniform values: the noise depends little on the truth.
        return (
            float(np.mean(_of_uniform(self.mechanism(units)).coarser(self.cells, atoms=False).variance)) * _PEOPLE / n
        )

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        return self.answers(mechanism, sketch)[MAIN]

    def answers(
        self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None, groups: int = 1
    ) -> Mapping[str, Estimate]:
        estimate = mechanism.estimate(sketch).of_groups(groups)
        assert isinstance(estimate, Distribution)
        mean = replace(estimate.mean(), labels=("mean",))
        quantiles = replace(estimate.quantile(self.quantiles), labels=tuple(map(_name, self.quantiles)))
        return {MAIN: estimate.coarser(self.cells), QUANTILES: quantiles, MEAN: mean}


def _name(p: float) -> str:
    return "median" if p == 0.5 else f"{100 * p:g}% are below"


@lru_cache(maxsize=256)
def _wave(units: int, low: float, high: float, cells: int) -> SquareWave:
    return SquareWave(epsilon=epsilon_of(units), low=low, high=high, cells=cells)


@lru_cache(maxsize=16)
def _of_uniform(wave: SquareWave) -> Distribution:
    """The distribution estimated from the expected reports of uniform values, with the default resolution."""
    reports = wave.outputs()
    assert reports is not None
    chance = np.exp(wave.log_prob(reports, wave.points)).mean(axis=1)
    counts = np.rint(_PEOPLE * chance).astype(np.int64)
    distribution = wave.distribution(Sketch(wave.spec_id, int(counts.sum()), counts))
    return replace(distribution, resolution=wave.resolution(_PEOPLE))


ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released, and a new era begins."""


@dataclass
class _Place:
    step: int = 1


def steady(
    question: Statistic,
    *,
    epsilon: float,
    candidates: Sequence[str] | None = None,
    groups: int = 1,
    memory: Memory | None = None,
) -> Protocol:
    """Ask every device the same at every step, and release an estimate from the reports of that step alone.

    Every step spends epsilon again; a device's ledger limits what it spends over time. A step without reports releases
    an unknown estimate, with infinite variance.

    Parameters
    ----------
    question
        The statistic that is estimated.
    epsilon
        What one report may spend.
    candidates
        For open domains, the values whose shares are estimated.
    groups
        How many equal groups devices are in, of which one is asked: estimates are of all, and their variances include
        that of the sample.
    memory
        Where the step is kept.
    """
    mechanism = question.mechanism(units_of(epsilon))
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=step, view=question.view, standing=True))
        answered = sketch.people > 0
        unknown = {MAIN: _unknown(question)}
        estimates = question.answers(mechanism, sketch, candidates, groups) if answered else unknown
        place.step += 1
        people = float(sketch.people * groups)
        yield Release(step=step, estimates=estimates, published=answered, spent=1.0, n=people)


def steady_parts(
    parts: Sequence[Statistic], *, epsilon: float, groups: int = 1, memory: Memory | None = None
) -> Protocol:
    """As `steady`, with several statistics: each is asked of an equal part of the devices, the same part at every step.

    The main estimate is that of the first statistic.

    Parameters
    ----------
    parts
        The statistic that each part is asked.
    epsilon
        What one report may spend.
    groups
        As of `steady`.
    memory
        Where the step is kept.
    """
    mechanisms = [part.mechanism(units_of(epsilon)) for part in parts]
    place = (memory or Memory()).keep("place", _Place())
    arcs = equal_arcs(len(parts))
    while True:
        step = place.step
        asks = [
            Ask(mechanism=mechanism, step=step, view=part.view, cohort=arc, standing=True)
            for part, mechanism, arc in zip(parts, mechanisms, arcs, strict=True)
        ]
        sketches = yield from ask_all(asks)
        estimates: dict[str, Estimate] = {} if sketches[0].people > 0 else {MAIN: _unknown(parts[0])}
        for part, mechanism, sketch in zip(parts, mechanisms, sketches, strict=True):
            if sketch.people > 0:
                estimates.update(part.answers(mechanism, sketch, groups=groups))
        place.step += 1
        people = sum(sketch.people for sketch in sketches) * groups
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))


def _unknown(question: Statistic) -> Estimate:
    return replace(_unknown_shares(question.size), kind=question.kind)


def _unknown_shares(size: int, labels: tuple[str, ...] | None = None) -> Estimate:
    return Estimate(np.zeros(size), np.full(size, np.inf), 0, bias="heuristic", labels=labels)


STEP = "step"
"""The name of the public column that holds the step of a report."""


@dataclass(frozen=True)
class LevelPart:
    """What one part of the devices is asked: the view that gives a level's cell, or the cells of several levels, the
    mechanism that reports them, and which part of the devices it is."""

    view: View
    mechanism: ReportFormat
    arc: Arc


@dataclass(frozen=True, eq=False)
class ColumnShares:
    """A column whose shares are released.

    Parameters
    ----------
    name, labels
        The column, and a label for each share.
    part
        The number of the part of the devices whose reports tell of it.
    place
        Of a bundle of reports, the one that counts the column's values.
    sums
        The shares as sums of the shares that are counted, a row each; None where they are counted themselves.
    """

    name: str
    part: int
    labels: tuple[str, ...]
    place: int = 0
    sums: Floats | None = None

    def read(self, mechanism: ReportFormat, sketch: Sketch) -> Estimate:
        """The shares, from the sketch of the part."""
        if isinstance(mechanism, Bundle):
            estimate = mechanism.estimate_of(sketch, self.place)
        else:
            estimate = mechanism.estimate(sketch)
        estimate = estimate if self.sums is None else estimate.linear(self.sums)
        return replace(estimate, labels=self.labels)


def table_stream(
    parts: Sequence[LevelPart], columns: Sequence[ColumnShares], *, memory: Memory | None = None
) -> Protocol:
    """Ask parts of the devices about one level each, or several, at every step, and release the shares of each column.

    The reports are kept: SQL queries of the table are answered from them.

    Parameters
    ----------
    parts
        What each part is asked.
    columns
        The columns whose shares are released; the first is the main estimate.
    memory
        Where the step is kept.
    """
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        asks = [
            Ask(mechanism=part.mechanism, step=step, view=part.view, cohort=part.arc, standing=True, kept=True)
            for part in parts
        ]
        sketches = yield from ask_all(asks)
        people = sum(sketch.people for sketch in sketches)
        estimates: dict[str, Estimate] = {}
        for column in columns:
            sketch, mechanism = sketches[column.part], parts[column.part].mechanism
            estimate = _unknown_shares(len(column.labels), column.labels)
            if sketch.people > 0:
                estimate = column.read(mechanism, sketch)
                estimate = estimate.of_population(max(people, estimate.n))
            estimates[column.name] = estimate
        estimates = {MAIN: estimates.pop(columns[0].name), **estimates}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))
