"""Summation with histogram encoding: a report is a histogram of one value with Laplace noise on every count."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Words
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, Moments
from hubbub.random.integers import ExactChoice, exp_floor, log_fraction
from hubbub.random.source import Random

UNIT = 1 << 24
_REACH = 12  # noise is clamped at this multiple of its scale
_MOST_CELLS = 2048
_ENUMERABLE = 20_000


@dataclass(frozen=True, kw_only=True)
class SHE(FrequencyOracle):
    """Shares of a domain of moderate size, by discrete Laplace noise on a histogram.

    A report is the histogram of one value plus noise of scale 2/eps in each place, on a grid. The noise is exact:
    P(k cells) is proportional to (decay/2^24)^|k|, and epsilon is 2 grid ln(2^24/decay). Reports are clamped, which
    only post-processes them; the estimator uses the clamped distribution's own mean and variance, about
    8/(n eps^2).

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    grid, clamp, decay
        Cells a unit; how many cells the noise may reach; of 2^24, how much each cell further loses. 0 chooses them.

    Example:
        >>> she = SHE(epsilon=2.0, domain=3)
        >>> reports = she.randomize([0] * 6000 + [1] * 4000, Random(seed=1))
        >>> she.estimate(she.accumulate(reports)).value.round(2).tolist()
        [0.59, 0.42, -0.03]

    References
    ----------
    T. Wang, Blocki et al., 2017; T. Wang, 2021, section 3.3.2.
    """

    grid: int = 0
    clamp: int = 0
    decay: int = 0
    server_work: ClassVar[str] = "d numbers added up"

    def _resolve(self) -> None:
        self._resolve_domain()
        if self.grid == 0:
            self._set("grid", min(max(1, math.ceil(2 * self.epsilon)), _MOST_CELLS))
        self._integer("grid", 1, _MOST_CELLS)
        if self.clamp == 0:
            self._set("clamp", min(math.ceil(_REACH * 2 * self.grid / self.epsilon), _MOST_CELLS))
        self._integer("clamp", 1, _MOST_CELLS)
        if self.decay == 0:
            self._set("decay", math.ceil(UNIT / exp_floor(Fraction(self.epsilon) / (2 * self.grid))))
        if self.decay >= UNIT:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 24-bit probabilities can tell from 0")
        self._integer("decay", 1, UNIT - 1)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # entries have noise of their own

    def ratio(self) -> Fraction:
        return Fraction(UNIT, self.decay) ** (2 * self.grid)

    @cached_property
    def _noise_choice(self) -> ExactChoice:
        """The noise from -(clamp + grid) to clamp + grid cells; the ends hold the tails."""
        reach, a, b = self.clamp + self.grid, self.decay, UNIT
        inside = [(b - a) * a**k * b ** (reach - k) for k in range(reach)]
        side = [*inside[1:], a**reach * b]
        return ExactChoice([*reversed(side), inside[0], *side])

    @cached_property
    def _table(self) -> tuple[list[Fraction], list[Fraction]]:
        """The exact distributions of a place that is not held, and of one that is, over the cells of a report."""
        noise, reach = self._noise_choice, self.clamp + self.grid
        chances = [noise.probability(index) for index in range(2 * reach + 1)]
        tables = []
        for centre in (0, self.grid):
            table = [Fraction(0)] * (2 * self.clamp + self.grid + 1)
            for k, chance in zip(range(-reach, reach + 1), chances, strict=True):
                table[min(max(centre + k, -self.clamp), self.grid + self.clamp) + self.clamp] += chance
            tables.append(table)
        return tables[0], tables[1]

    @cached_property
    def _moments(self) -> Moments:
        reach = self.clamp + self.grid
        noise, total = self._noise_choice.weights, self._noise_choice.total
        chances = np.array([weight / total for weight in noise])  # whole numbers: each quotient correctly rounded
        means, variances = [], []
        for centre in (0, self.grid):
            cells = np.clip(np.arange(-reach, reach + 1) + centre, -self.clamp, self.grid + self.clamp)
            means.append(float(chances @ cells))
            variances.append(float(chances @ (cells - means[-1]) ** 2))
        return Moments(means[1], means[0], variances[1], variances[0])

    def moments(self) -> Moments:
        return self._moments

    def _support_means(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._moments.true_mean), Fraction(self._moments.false_mean)  # what the estimator uses

    @property
    def support_range(self) -> tuple[int, int]:  # type: ignore[override]
        return -self.clamp, self.grid + self.clamp

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("private", "cells", "i2", (self.size,), below=self.grid + self.clamp + 1),)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        out = np.empty((codes.size, self.size), dtype=np.int16)
        step = max(1, (1 << 17) // self.size)
        for start in range(0, codes.size, step):
            own = codes[start : start + step]
            cells = self._noise_choice.sample(rng, own.size, self.size) - (self.clamp + self.grid)
            cells[np.arange(own.size), own] += self.grid
            out[start : start + step] = np.clip(cells, -self.clamp, self.grid + self.clamp)
        return {"cells": out}

    def check(self, reports: Reports) -> None:
        super().check(reports)
        lowest = int(reports.private["cells"].min(initial=0))
        if lowest < -self.clamp:
            raise InvalidValue("cells", lowest, f"cells from {-self.clamp}")

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        tables = [np.array(table, dtype=object) for table in self._table]
        index = reports.private["cells"].astype(np.int64) + self.clamp
        codes = self.encode(values)
        out = np.empty((len(reports), codes.size), dtype=object)
        for column, code in enumerate(codes):
            chances = tables[0][index]
            chances[:, code] = tables[1][index[:, code]]
            out[:, column] = chances.prod(axis=1)
        return out

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        index = reports.private["cells"].astype(np.int64) + self.clamp
        other, own = (np.array([log_fraction(chance) for chance in table]) for table in self._table)
        return np.asarray(other[index].sum(axis=1)[:, None] + (own - other)[index[:, self.encode(values)]])

    def outputs(self, public: Columns | None = None) -> Reports | None:
        cells = np.arange(-self.clamp, self.grid + self.clamp + 1, dtype=np.int16)
        if self.size * math.log(cells.size) > math.log(_ENUMERABLE):
            return None
        every = np.stack(np.meshgrid(*[cells] * self.size, indexing="ij"), axis=-1).reshape(-1, self.size)
        return self._with_public(public, {"cells": every})

    def _fold(self, reports: Reports) -> Ints:
        return np.asarray(reports.private["cells"].sum(axis=0, dtype=np.int64))

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        cells = reports.private["cells"][:, candidates].astype(np.int64)
        return np.asarray(cells.sum(axis=0) if weights is None else weights @ cells)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, domain=2)
        yield cls(epsilon=1.0, domain=["a", "b", "c", "d", "e"])
