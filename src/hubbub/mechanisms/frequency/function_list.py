"""Oracles that hash values by a public list of functions: the server keeps a table, and hashes once a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import bucket, hash32, spread_seeds
from hubbub.core.noise import Noise
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.weights import choose
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate


class TableNoise(Noise):
    """Variances of shares from a formula; variances of their sums from the cells of the table that reports fall in.

    Under a short list of hash functions, three values do not collide as often as under random ones, even where any two
    do. So the variance of a sum of shares is computed cell by cell. With T the weight of all values that a report
    supports, and W that of all values, Z = (T - q W)/(p - q) has the mean w_x for a holder of x. The estimated sum is
    the mean of Z over all reports. Its variance, given the population, is (mean of Z^2 - sum of f_x w_x^2)/n, whatever
    the functions.

    Parameters
    ----------
    noise
        The formula.
    cells
        From the weights of the values, the weight of all values in each cell: of a function (row), a bucket (column).
    likely
        From the shares, the probability of each cell: that a report, or the hash of a person's value, is in it.
    rates
        The p and q by which the weight T of a cell becomes the mean Z of its reports.
    squares
        The sum of the squared shares, which matters where values are confused (`Noise.square` is below 0): the bias
        of a sum has the mean square -square times (sum of w^2)(sum of f^2) + (sum of w f)^2 - 2 (sum of w^2 f^2).
    inside
        The variance of Z inside of a cell of weight w: the first number times the sum of the squared weights of all
        cells of its function, less the second times w^2.
    """

    n: int
    cells: Callable[[Floats], Floats]
    likely: Callable[[Floats], Floats]
    rates: tuple[float, float]
    squares: float
    inside: tuple[float, float]

    def __init__(
        self,
        noise: Noise,
        n: int,
        cells: Callable[[Floats], Floats],
        likely: Callable[[Floats], Floats],
        rates: tuple[float, float],
        squares: float = 0.0,
        inside: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__(noise.floor, noise.slope, sampling=noise.sampling, square=noise.square, pairs=False)
        own = {"n": n, "cells": cells, "likely": likely, "rates": rates, "squares": squares, "inside": inside}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @property
    def knows_pairs(self) -> bool:
        """True while the functions are in memory; stored noise has `pairs` alone, which is false."""
        return True

    def cross_terms(self, share: Floats, weights: Floats) -> Floats:
        """The variance of each row's weighted sum, less the weighted sum of the variances."""
        (p, q), (each, own), likely = self.rates, self.inside, self.likely(share)
        terms = np.empty(len(weights))
        for k, row in enumerate(weights):
            cells = self.cells(row)
            means = (cells - q * row.sum()) / (p - q)
            mean_square = float(np.vdot(likely, means**2 - own * cells**2))
            mean_square += each * float(np.vdot(cells, cells)) / len(cells) if each else 0.0
            terms[k] = max(mean_square - float(row**2 @ share), 0.0) / self.n
        squared = weights**2
        confused = self.squares * squared.sum(axis=1) + (weights @ share) ** 2 - 2 * squared @ share**2
        terms += -self.square * np.maximum(confused, 0.0)
        return np.asarray(terms + self._sampled(share, weights) - squared @ self.variance(share)) + self.sampling * (
            squared @ (share * (1 - share))
        )

    def with_sampling(self, rate: float) -> Noise:
        """The moments with this much more multinomial sampling."""
        plain = Noise(self.floor, self.slope, sampling=self.sampling + rate, square=self.square)
        return TableNoise(plain, self.n, self.cells, self.likely, self.rates, self.squares, self.inside)


_CHUNK = 1 << 20  # hashes at once


@dataclass(frozen=True, kw_only=True)
class FunctionList(FrequencyOracle):
    """A report names one of `functions` public hash functions, drawn at random, and tells of the value's bucket.

    Two values that collide under more functions than expected are confused, a bias that no number of reports removes.
    Over the values of a domain its mean square is (sum of f^2 - f_i^2)/(functions (buckets - 1)), and the stated
    variance includes that. So 95% of all values lie in their intervals; but one value may lie outside again and again.
    """

    functions: int = 1024
    buckets: int = 0
    takes_open: ClassVar[bool] = False
    bias: ClassVar[Literal["none", "heuristic"]] = "heuristic"

    def _resolve_functions(self) -> None:
        self._integer("functions", 2, 1 << 20)
        if self.functions & (self.functions - 1):
            raise InvalidValue("functions", self.functions, "a power of two")

    def server_operations(self, n: int) -> float:
        return 1 + self.functions * self.size / n

    @property
    def _function_column(self) -> ColumnSpec:
        return ColumnSpec("public", "function", unsigned(self.functions), below=self.functions)

    @property
    def _every_seed(self) -> Words:
        return spread_seeds(np.arange(self.functions, dtype=np.uint64))

    @property
    def confusion(self) -> float:
        return 1 / (self.functions * (self.buckets - 1))

    def noise(self, n: int) -> Noise:
        """The variance of shares without confusion. No covariance: it depends on how often three values collide."""
        return replace(super().noise(n), pairs=False)

    def _table_noise(self, sketch: Sketch) -> tuple[Floats, tuple[float, float], tuple[float, float]]:
        """The probability of each cell, and the `rates` and `inside` of `TableNoise`."""
        p, q = (float(rate) for rate in self.rates)
        return sketch.counts / sketch.n, (p, q), (0.0, 0.0)

    def _with_sketch_noise(self, sketch: Sketch, estimate: Estimate) -> Estimate:
        assert estimate.noise is not None
        likely, rates, inside = self._table_noise(sketch)
        confusion = -estimate.noise.square
        squares = (estimate.noise.floor - self.noise(sketch.n).floor) / confusion if confusion else 0.0
        noise = TableNoise(estimate.noise, sketch.n, self._cell_weights, lambda shares: likely, rates, squares, inside)
        return replace(estimate, noise=noise)

    def _cell_weights(self, weights: Floats) -> Floats:
        """For every function and bucket, the total weight of the values that fall in it."""
        values = np.flatnonzero(weights)
        seeds = self._every_seed[:, None]
        weights_of_cells = np.zeros(self.functions * self.buckets)
        step = max(1, _CHUNK // self.functions)
        for start in range(0, values.size, step):
            chunk = values[start : start + step]
            cells = bucket(hash32(seeds, chunk.astype(np.uint64)), self.buckets)
            cells += self.buckets * np.arange(self.functions)[:, None]
            repeated = np.broadcast_to(weights[chunk], cells.shape)
            weights_of_cells += np.bincount(cells.ravel(), weights=repeated.ravel(), minlength=weights_of_cells.size)
        return weights_of_cells.reshape(self.sketch_shape)

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.functions, self.buckets)

    def _support_counts(self, sketch: Sketch) -> Ints:
        return self._table_supports(sketch.counts, np.arange(self.size, dtype=np.uint64))

    def _table_supports(self, table: Ints, candidates: Words) -> Ints:
        """For each candidate, the sum over all functions of the number in the cell that it falls in."""
        from hubbub.kernels.support import table_sums

        return table_sums(table, self._every_seed, candidates)


@dataclass(frozen=True, kw_only=True)
class FLH(FunctionList, OLH):
    """Shares of a large domain, by local hashing with a public list of hash functions.

    The server keeps how often each (function, bucket) was reported, and hashes the domain once a function instead of
    once a report. Privacy is that of OLH. Accuracy is a heuristic: values are confused, as `FunctionList` says.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    functions
        How many hash functions: a power of two.
    buckets, other
        As in OLH; 0 chooses them.
    hash
        The name of the function that a number selects: "product32".

    Example:
        >>> flh = FLH(epsilon=2.0, domain=1024)
        >>> reports = flh.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> estimate = flh.estimate(flh.accumulate(reports))
        >>> estimate.top(2).tolist(), estimate.bias
        ([0, 2], 'heuristic')

    References
    ----------
    Cormode, Maddock and Maple, 2021.
    """

    server_work: ClassVar[str] = "one increment, then d hashes once a function"

    def _resolve(self) -> None:
        self._resolve_functions()
        super()._resolve()

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            self._function_column,
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 2)
        function = draws[:, 0] & np.uint64(self.functions - 1)
        truth = bucket(hash32(spread_seeds(function), codes), self.buckets)
        return {"function": function, "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}

    def _seeds(self, public: Columns) -> Words:
        return spread_seeds(public["function"].astype(np.uint64))

    def _fold(self, reports: Reports) -> Ints:
        cell = reports.public["function"].astype(np.int64) * self.buckets + reports.private["bucket"]
        return np.bincount(cell, minlength=self.functions * self.buckets).reshape(self.sketch_shape)
