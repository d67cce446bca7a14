"""Fast local hashing, with few hash functions, so that the server hashes once per function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hubbub.core.hashing import bucket, hash32, spread_seeds
from hubbub.core.reports import Array, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.function_list import FunctionList
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.weights import choose
from hubbub.random.source import Random


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
