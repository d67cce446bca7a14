"""Private running sums by the square-root factorisation: a small error for prefix sums, with little memory."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.core.spec import Json
from hubbub.curator.stream import UncopiedStream, checked_values
from hubbub.kernels.curator import divide, multiply
from hubbub.random.noise import MOST_SCALE, gaussian_cells
from hubbub.random.source import Random

_STEP, _LEFT, _RIGHT = 2.0, -8.0, 12.0  # of the sum that approximates the integral of the weights
_MOST_CELLS = 1 << 18
_ROUNDED = 2  # cells that rounding, and the floats before it, may add to a difference
_AHEAD = 64  # noises that are drawn at once, whether values come one by one or in batches


@dataclass(frozen=True, kw_only=True)
class FactorisedCounter:
    """Private running sums of `length` values from 0 to theta, under rho-zCDP for every single value.

    The lower triangle of ones is the square of the Toeplitz matrix with c_k = binom(2k, k)/4^k. Values are weighted by
    one root, exact discrete Gaussian noise is added, and the other root makes running sums of it. c_k is the integral
    of x^k/(pi sqrt(x(1-x))), which is replaced by a sum over O(log length) powers: they are all the memory. The first
    root is computed from the second, so that the sums stay unbiased. Gaussian noise: this is *not* pure epsilon. With
    Laplace noise the columns of a root, 2 sqrt(T/pi) long in the L1 norm, would cost far more than a hierarchy.

    `rho`: the budget of a value under zCDP; `epsilon` converts it to (epsilon, delta).

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay, 2023; Dvijotham et al., 2024 (few powers).
    """

    rho: float
    length: int

    def __post_init__(self) -> None:
        if isinstance(self.rho, bool) or not isinstance(self.rho, int | float) or not 0 < self.rho < math.inf:
            raise InvalidValue("rho", self.rho, "a finite number above 0")
        if isinstance(self.length, bool) or not isinstance(self.length, int) or not 1 <= self.length <= 1 << 24:
            raise InvalidValue("length", self.length, f"an integer from 1 to {1 << 24}")
        if self.sigma >= MOST_SCALE:
            raise InvalidValue("rho", self.rho, "a larger rho: the noise would leave its grid")

    @cached_property
    def _powers(self) -> tuple[Floats, Floats]:
        """Weights and rates: x = 1/(1 + e^-s) at even steps of s, a rule that is within 3% of each c_k."""
        s = np.arange(_LEFT, math.log(self.length + 1) + _RIGHT, _STEP)
        rates = 1 / (1 + np.exp(-s))
        return _STEP / math.pi * np.sqrt(rates * (1 / (1 + np.exp(s)))), rates

    @property
    def memory(self) -> int:
        """How many numbers a running stream holds, including the noise that is drawn ahead."""
        return 2 * self._powers[0].size + 2 + _AHEAD

    @cached_property
    def _roots(self) -> tuple[Floats, Floats]:
        """The entries of the second root and of the first, by distance from the diagonal."""
        weights, rates = self._powers
        impulse = np.zeros(self.length)
        impulse[0] = 1.0
        second = multiply(impulse, weights, rates, np.zeros(rates.size))
        first = divide(np.ones(self.length), weights, rates, np.zeros(rates.size))
        return second, first

    @cached_property
    def cells(self) -> int:
        """The number of cells into which theta is divided."""
        cells = _MOST_CELLS
        while cells > 1 and self._deviation(cells) >= MOST_SCALE:
            cells //= 2
        return cells

    def squared_sensitivity(self, cells: int) -> int:
        """The squared L2 sensitivity of the weighted sums to one value, in cells, including the rounding."""
        moved = np.ceil(cells * np.abs(self._roots[1])).astype(np.int64) + _ROUNDED
        return int((moved * moved).sum())

    def _deviation(self, cells: int) -> int:
        squared = Fraction(self.squared_sensitivity(cells)) / (2 * Fraction(self.rho))
        sigma = math.isqrt(math.floor(squared))
        return sigma if sigma * sigma >= squared else sigma + 1

    @cached_property
    def sigma(self) -> int:
        """The standard deviation of the noise, in cells."""
        return self._deviation(self.cells)

    @property
    def effective_rho(self) -> Fraction:
        """The exact cost of a value."""
        return Fraction(self.squared_sensitivity(self.cells), 2 * self.sigma**2)

    def epsilon(self, delta: float) -> float:
        """An epsilon for a delta: rho + 2 sqrt(rho ln(1/delta))."""
        if not 0 < delta < 1:
            raise InvalidValue("delta", delta, "a probability between 0 and 1")
        rho = float(self.effective_rho)
        return rho + 2 * math.sqrt(rho * -math.log(delta))

    def variance(self) -> Floats:
        """The variance of each running sum, as a multiple of the squared theta."""
        return np.cumsum(self._roots[0] ** 2) * (self.sigma / self.cells) ** 2

    def range_variance(self, first: int, last: int) -> float:
        """The variance of the sum from position first to last (without last), as a multiple of the squared theta."""
        if not 0 <= first < last <= self.length:
            raise InvalidValue("range", (first, last), f"positions from 0 to {self.length}, at least one")
        return self.squared_weights(first, last) * (self.sigma / self.cells) ** 2

    def squared_weights(self, first: int, last: int) -> float:
        """The variance of a range in multiples of the variance of one noise."""
        entries = self._roots[0]
        later, earlier = entries[:last], np.concatenate([np.zeros(last - first), entries[:first]])
        return float(np.sum((later - earlier) ** 2))

    def column(self) -> Floats:
        """How much a value of theta changes each weighted sum from its position on, in multiples of theta."""
        return self._roots[1]

    def sums_of(self, noise: Floats) -> Floats:
        """The noise of the running sums that results from noise on the weighted sums."""
        weights, rates = self._powers
        return multiply(noise, weights, rates, np.zeros(rates.size))

    def spec(self) -> dict[str, Json]:
        """The fields, as JSON."""
        return asdict(self)

    def start(self, theta: float, rng: Random) -> FactorisedStream:
        """A stream that clips values at theta, which must not depend on the values."""
        return FactorisedStream(self, theta, rng)


class SumsState(NamedTuple):
    """The state of a stream of running sums, without its future noise.

    `position`, `total`: the number of values so far, and their sum in cells. `first`, `second`: the memory of the two
    roots, a number for each power.
    """

    position: int
    total: int
    first: tuple[float, ...]
    second: tuple[float, ...]


class FactorisedStream(UncopiedStream):
    """Takes values, one or many at a time, and gives private running sums: the same ones either way.

    The noise of a value is drawn when the value comes, at most 64 values ahead. A stream that goes on from a `state`
    draws fresh noise: two streams from the same state share only the noise of what was published before.

    `counter`, `theta`: the settings, and the threshold at which values are clipped. `state`: the `state` of an earlier
    stream; None begins a new one.
    """

    def __init__(
        self, counter: FactorisedCounter, theta: float, rng: Random, *, state: SumsState | None = None
    ) -> None:
        super().__init__()
        if not 0 < theta < math.inf:
            raise InvalidValue("theta", theta, "a finite number above 0")
        self.counter, self.theta, self._rng = counter, theta, rng
        if state is None:
            nothing = (0.0,) * counter._powers[0].size
            state = SumsState(0, 0, nothing, nothing)
        self._position, self._sum = state.position, state.total
        self._first, self._second = np.array(state.first), np.array(state.second)
        self._noise = np.empty(0, dtype=np.int64)

    @property
    def position(self) -> int:
        """The number of values so far."""
        return self._position

    @property
    def state(self) -> SumsState:
        """The state without future noise. It holds sums of true values: keep it secret."""
        return SumsState(self._position, self._sum, tuple(self._first.tolist()), tuple(self._second.tolist()))

    def push(self, value: float) -> float:
        """Take one value; returns the running sum that includes it."""
        return float(self.push_many([value])[0])

    def push_many(self, values: ArrayLike) -> Floats:
        """Take values; returns the running sum after each."""
        self._check_process()
        numbers = self.checked(values)
        cells = self.counter.cells
        units = np.floor(np.minimum(numbers, self.theta) / self.theta * cells + 0.5).astype(np.int64)
        sums = self._sum + np.cumsum(units)
        weights, rates = self.counter._powers
        weighted = divide(sums.astype(np.float64), weights, rates, self._first)
        noisy = np.rint(weighted).astype(np.int64) + self._next_noise(numbers.size)
        self._sum, self._position = int(sums[-1]) if sums.size else self._sum, self._position + numbers.size
        return multiply(noisy.astype(np.float64), weights, rates, self._second) * (self.theta / cells)

    def checked(self, values: ArrayLike) -> Floats:
        """The values as an array; an error names the position of the first that is not allowed."""
        numbers = checked_values(values, math.inf, self._position)
        if self._position + numbers.size > self.counter.length:
            raise InvalidValue("values", numbers.size, f"at most {self.counter.length - self._position} more")
        return numbers

    def _next_noise(self, count: int) -> Ints:
        """The next noises, drawn in blocks of fixed size so that they do not depend on how values are batched."""
        parts, ready = [self._noise], self._noise.size
        while ready < count:
            parts.append(gaussian_cells(_AHEAD, self.counter.sigma, self._rng))
            ready += _AHEAD
        noise = np.concatenate(parts)
        self._noise = noise[count:].copy()
        return noise[:count]
