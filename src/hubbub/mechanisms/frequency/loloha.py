"""LOLOHA: longitudinal local hashing, for values of large domains that are reported again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Bools, Columns, Floats, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.memoised import Memoised
from hubbub.mechanisms.weights import TWO_64, choice_rates, choose
from hubbub.random.integers import ceil_div, exp_floor, log_upper
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.core.noise import Noise


def toeplitz_functions(size: int, buckets: int) -> int:
    """How many functions the list holds: with 2^m >= size values and 2^r buckets, 2^(m+r-1)."""
    return 1 << (size - 1).bit_length() + buckets.bit_length() - 2


def toeplitz(functions: Array, values: Array, buckets: int) -> Ints:
    """The bucket of each value under each function; the two arrays broadcast, the buckets are a power of two.

    Bit j of the bucket is the parity of (function >> j) & value: a Toeplitz matrix times a vector of bits. Over the
    whole list, the matrix takes the difference of two values to each bucket equally often, so that they meet under
    exactly one function in `buckets`.
    """
    functions, values = np.asarray(functions, dtype=np.int64), np.asarray(values, dtype=np.int64)
    hashes = np.zeros(np.broadcast_shapes(functions.shape, values.shape), dtype=np.int64)
    for bit in range(buckets.bit_length() - 1):
        hashes |= (np.bitwise_count(functions >> bit & values).astype(np.int64) & 1) << bit
    return hashes


def supports(table: Ints, size: int) -> Ints:
    """For every value, the total of a table (functions by buckets) over the cells that the value falls in.

    The indicator of a bucket is a sum of signs over its bits, and a sign of the bucket's bits is a sign of the
    function's: (-1)^parity(c & bucket) = (-1)^parity(function & mix), mix the sum (xor) of value << j over the bits j
    of c. So one Walsh-Hadamard transform a combination of bits gives the totals of all values.
    """
    functions, buckets = table.shape
    values = np.arange(size, dtype=np.int64)
    if size <= buckets:  # fewer cells to look up than transforms to make
        rows = np.arange(functions)[:, None]
        return np.asarray(table[rows, toeplitz(rows, values, buckets)].sum(axis=0))
    from hubbub.kernels.estimators import walsh_hadamard

    total = np.full(size, table.sum(), dtype=np.int64)
    for combination in range(1, buckets):
        total += walsh_hadamard(table @ _signs(combination, buckets))[_mixed(values, combination)]
    return np.asarray(total // buckets)


def cell_weights(weights: Floats, functions: int, buckets: int) -> Floats:
    """For every cell (functions by buckets), the weight of the values that fall in it: the transpose of `supports`."""
    from hubbub.kernels.estimators import walsh_hadamard

    values = np.flatnonzero(weights)
    sums = np.full((functions, buckets), weights.sum())
    for combination in range(1, buckets):
        by_mix = np.bincount(_mixed(values, combination), weights=weights[values], minlength=functions)
        sums += walsh_hadamard(by_mix)[:, None] * _signs(combination, buckets)
    return np.asarray(sums / buckets)


def _signs(combination: int, buckets: int) -> Ints:
    """The sign of every bucket under a combination of its bits."""
    return np.asarray(1 - 2 * (np.bitwise_count(np.arange(buckets) & combination).astype(np.int64) & 1))


def _mixed(values: Ints, combination: int) -> Ints:
    """For each value, the bits of a function whose parity is that of the combination of its bucket's bits."""
    mix = np.zeros(values.size, dtype=np.int64)
    for bit in range(combination.bit_length()):
        if combination >> bit & 1:
            mix ^= values << bit
    return mix


_MOST_FUNCTIONS = 1 << 16
_MOST_BUCKETS = 1 << 8


@dataclass(frozen=True, kw_only=True)
class Loloha(FrequencyOracle, Memoised):
    """Shares of a large domain, for values that are reported again and again.

    A device draws one hash function for life. The bucket of its value is randomised once (the truth with probability P,
    each other with Q), and once more for each report (kept with K, each other with S). A report is the value's own
    bucket with p = P K + (g-1) Q S, any given other one with (1-p)/(g-1), and supports every value in its bucket, so
    q = 1/g. `epsilon` bounds what all reports of one bucket tell together, `effective_epsilon` is what one
    tells. A device meets at most g buckets: whatever its values do, its permanent answers never spend more than g
    epsilon. (*When* its bucket changed is not hidden, beyond what the second layer hides of it.) Variance of a share:
    that of local hashing at `report_epsilon`, Eq 3.11, whatever epsilon is.

    The function comes from a public list (see `toeplitz`) under which estimates are unbiased. Its number goes with
    every report, and tells that much of who sends it: 10 bits where 1,024 values fall in 2 buckets.

    Parameters
    ----------
    epsilon
        What a permanent answer may spend, for life.
    domain
        A size, a list of names, or a Domain.
    report_epsilon
        What one report may spend, less than epsilon; 0 takes half of it.
    buckets
        How many buckets, a power of two; 0 chooses the one with the least variance.
    other, swap
        Of 2^64, the shares of each false bucket in the permanent answer and in a report; 0 chooses them.
    hash
        The name of the function that puts values in buckets; a spec without a name means "toeplitz".

    Example:
        >>> loloha = Loloha(epsilon=2.0, domain=1024)
        >>> loloha.buckets, loloha.functions, round(loloha.permanent_epsilon, 3), round(loloha.effective_epsilon, 3)
        (4, 2048, 2.0, 1.0)
        >>> reports = loloha.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> loloha.estimate(loloha.accumulate(reports)).top(2).tolist()
        [0, 2]

    References
    ----------
    Arcolezi et al., 2023. Their second layer spends less than it may where g > 2; this one is solved exactly.
    """

    linkable = "between batches"
    report_epsilon: float = 0.0
    buckets: int = 0
    other: int = 0
    swap: int = 0
    hash: str = "toeplitz"

    def _resolve(self) -> None:
        self._one_of("hash", ["toeplitz"])
        self._resolve_domain()
        self._resolve_report_epsilon()
        if self.buckets == 0:
            self._set("buckets", _best_buckets(self.report_epsilon, self.size))
        self._integer("buckets", 2, _MOST_BUCKETS)
        if self.buckets & (self.buckets - 1):
            raise InvalidValue("buckets", self.buckets, "a power of two")
        if self.functions > _MOST_FUNCTIONS:
            raise InvalidValue("domain", self.size, f"at most {2 * _MOST_FUNCTIONS // self.buckets} values")
        self._resolve_other(self.buckets)
        if self.swap == 0:
            self._set("swap", self._least_swap())
        self._resolve_other(self.buckets, "swap")
        if self.permanent_epsilon > self.epsilon:
            raise InvalidValue("epsilon", self.epsilon, f"at least {self.permanent_epsilon!r}, which `other` spends")
        if self.effective_epsilon > self.report_epsilon:
            raise InvalidValue(
                "report_epsilon", self.report_epsilon, f"at least {self.effective_epsilon!r}, which `swap` spends"
            )

    def _resolve_report_epsilon(self) -> None:
        epsilon = self.report_epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.floating | np.integer):
            raise InvalidValue("report_epsilon", epsilon, "a number above 0, less than epsilon")
        if epsilon == 0:
            epsilon = self.epsilon / 2
        if not 0 < epsilon < self.epsilon:  # equal would mean bare permanent answers: fingerprints
            raise InvalidValue("report_epsilon", epsilon, f"a number above 0, less than epsilon = {self.epsilon}")
        self._set("report_epsilon", float(epsilon))

    def _least_swap(self) -> int:
        """The smallest S for which p = P - (g-1)(P-Q)S is no larger than `report_epsilon` allows."""
        power, rest = exp_floor(self.report_epsilon), self.buckets - 1
        truth, other = choice_rates(self.other, self.buckets)
        excess = truth - power / (power + rest)
        return max(1, ceil_div(TWO_64 * excess, rest * (truth - other))) if excess > 0 else 1

    @property
    def functions(self) -> int:
        """How many hash functions the public list holds."""
        return toeplitz_functions(self.size, self.buckets)

    @cached_property
    def permanent_epsilon(self) -> float:
        """What a permanent answer spends, exactly, rounded up."""
        truth, other = choice_rates(self.other, self.buckets)
        return log_upper(truth / other)

    @property
    def most_memos(self) -> int:
        return min(self.buckets, self.size)

    @cached_property
    def bucket_rates(self) -> tuple[Fraction, Fraction]:
        """The chance that a report is the value's own bucket, and that it is a given other one."""
        truth, other = choice_rates(self.other, self.buckets)
        keep, swap = choice_rates(self.swap, self.buckets)
        own = truth * keep + (self.buckets - 1) * other * swap
        return own, (1 - own) / (self.buckets - 1)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return self.bucket_rates[0], Fraction(1, self.buckets)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # of a random hash; `_with_sketch_noise` has those of the list

    def noise(self, n: int) -> Noise:
        """The variance of shares. No covariance: it depends on how often three values collide."""
        return replace(super().noise(n), pairs=False)

    def _with_sketch_noise(self, sketch: Sketch, estimate: Estimate) -> Estimate:
        from hubbub.mechanisms.frequency.function_list import TableNoise

        assert estimate.noise is not None
        p, q = (float(rate) for rate in self.rates)
        own, other = (float(rate) for rate in self.bucket_rates)
        cells = partial(cell_weights, functions=self.functions, buckets=self.buckets)

        def likely(shares: Floats) -> Floats:
            # Over all functions, not those that happened to be drawn: a rare one may put many values in one bucket.
            # And for possible shares: else an estimate that is too low would also state a smaller error.
            chances = other + (own - other) * cells(_nearest_shares(shares))
            return np.asarray(chances / chances.sum())

        return replace(estimate, noise=TableNoise(estimate.noise, sketch.n, cells, likely, (p, q)))

    def ratio(self) -> Fraction:
        own, other = self.bucket_rates
        return own / other

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "function", unsigned(self.functions), below=self.functions),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 3)
        function = (draws[:, 0] & np.uint64(self.functions - 1)).astype(np.int64)
        permanent = choose(toeplitz(function, codes, self.buckets), draws[:, 1], self.other, self.buckets)
        return {"function": function, "bucket": choose(permanent, draws[:, 2], self.swap, self.buckets)}

    # -- the device's memory ----------------------------------------------------------------------------------

    @property
    def answer_bytes(self) -> int:
        return 1

    def _draw_public(self, n: int, rng: Random) -> Ints:
        return (rng.uint64(n) & np.uint64(self.functions - 1)).astype(np.int64)

    def memo_keys(self, values: Values, public: Ints) -> Ints:
        return toeplitz(public, self.encode(values), self.buckets)

    def _answers(self, keys: Ints, rng: Random) -> NDArray[np.uint8]:
        return choose(keys, rng.uint64(keys.size), self.other, self.buckets).astype(np.uint8)[:, None]

    def _from_answers(self, public: Ints, answers: NDArray[np.uint8], rng: Random) -> dict[str, Array]:
        permanent = answers[:, 0].astype(np.int64)
        return {"function": public, "bucket": choose(permanent, rng.uint64(permanent.size), self.swap, self.buckets)}

    def _sound(self, public: Ints, keys: Ints, answers: NDArray[np.uint8]) -> bool:
        known_functions = bool(((public >= 0) & (public < self.functions)).all())
        return known_functions and bool((keys < self.buckets).all() and (answers < self.buckets).all())

    def publics(self) -> dict[int, Fraction]:
        return dict.fromkeys(range(self.functions), Fraction(1, self.functions))

    def answer_chances(self, key: int) -> dict[bytes, Fraction]:
        truth, other = choice_rates(self.other, self.buckets)
        return {bytes([bucket]): truth if bucket == key else other for bucket in range(self.buckets)}

    def report_chances(self, public: int, answer: bytes) -> dict[bytes, Fraction]:
        keep, swap = choice_rates(self.swap, self.buckets)
        reports = self.outputs({"function": np.array([public])})
        return {
            reports[bucket : bucket + 1].to_bare(): keep if bucket == answer[0] else swap
            for bucket in range(self.buckets)
        }

    # -- probabilities and counts -----------------------------------------------------------------------------

    def _same(self, reports: Reports, values: Values) -> Bools:
        hashed = toeplitz(reports.public["function"][:, None], self.encode(values)[None, :], self.buckets)
        return np.asarray(hashed == reports.private["bucket"][:, None])

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = self.bucket_rates
        return (q, p), self._same(reports, values).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports:
        return self._with_public(public, {"bucket": np.arange(self.buckets)})

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.functions, self.buckets)

    def _table(self, reports: Reports, weights: Ints | None = None) -> Ints:
        table = np.zeros(self.sketch_shape, dtype=np.int64)
        np.add.at(table, (reports.public["function"], reports.private["bucket"]), 1 if weights is None else weights)
        return table

    def _fold(self, reports: Reports) -> Ints:
        return self._table(reports)

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        return supports(self._table(reports, weights), self.size)[candidates]

    def _support_counts(self, sketch: Sketch) -> Ints:
        return supports(sketch.counts, self.size)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, domain=2)
        yield cls(epsilon=3.0, domain=["a", "b", "c", "d", "e"], buckets=2)
        yield cls(epsilon=2.0, domain=300, report_epsilon=1.5)


def _best_buckets(report_epsilon: float, size: int) -> int:
    """The power of two that minimises Eq 3.11, of those whose list of functions is short enough."""
    power = float(exp_floor(min(report_epsilon, 50.0)))
    fitting = [2]
    while 2 * fitting[-1] <= _MOST_BUCKETS and toeplitz_functions(size, 2 * fitting[-1]) <= _MOST_FUNCTIONS:
        fitting.append(2 * fitting[-1])
    return min(fitting, key=lambda g: (power - 1 + g) ** 2 / (g - 1))


def _nearest_shares(estimate: Floats) -> Floats:
    """The point of the simplex that is nearest to estimated shares."""
    ranked = np.sort(estimate)[::-1]
    excess = (np.cumsum(ranked) - 1) / np.arange(1, ranked.size + 1)
    return np.asarray(np.maximum(estimate - excess[np.flatnonzero(ranked > excess)[-1]], 0.0))
