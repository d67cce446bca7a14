"""Reports with measures: a frequency oracle's report, together with public numbers that are sent as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Values, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch
from hubbub.mechanisms.base import ColumnSpec, Mechanism
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.mechanisms.stateful import Stateful
from hubbub.random.source import Random

if TYPE_CHECKING:  # a device estimates nothing
    from hubbub.core.estimate import Estimate
    from hubbub.statistics.influence import Influence

MOST_MEASURES = 64
MEASURES = "measures"
"""The name of the public column that holds the numbers."""
_NONE = np.float64(np.nan).view(np.uint64)


@dataclass(frozen=True, kw_only=True)
class Measured(Mechanism):
    """Shares of a domain's values by any oracle, whose reports carry public numbers.

    A value is a code and `measures` numbers. The oracle randomises the code, and a report spends what the oracle does.
    The numbers are sent as they are and are not protected at all: they are for what the server may know, such as the
    price of what was bought from it. A missing number is NaN. They can single a report out: a shuffle does not hide who
    sent it, and `amplify` refuses the mechanism.

    Parameters
    ----------
    epsilon
        What a report may spend on the code.
    domain
        The domain of the code.
    oracle
        The oracle over the domain, or its spec; an empty name chooses direct answers or local hashing by variance.
    measures
        How many numbers there are.

    Example:
        >>> measured = Measured(epsilon=4.0, domain=3, measures=1)
        >>> reports = measured.randomize([(0, [2.5]), (2, [9.0])], Random(seed=1))
        >>> measured.numbers(reports).tolist(), reports.private["value"].tolist()
        ([[2.5], [9.0]], [0, 2])

    References
    ----------
    Ours.
    """

    linkable = "always"
    domain: DomainLike
    oracle: FrequencyOracle | Mapping[str, object] | str = ""
    measures: int = 1

    def _resolve(self) -> None:
        self._integer("measures", 1, MOST_MEASURES)
        self._set("domain", as_domain("domain", self.domain))
        if self.oracle == "":
            self._set("oracle", adaptive(epsilon=self.epsilon, domain=self.domain, most_bytes=0))
        elif isinstance(self.oracle, Mapping):
            self._set("oracle", FrequencyOracle.from_spec(self.oracle))
        inner = forgetful("oracle", self.oracle)
        if inner.domain != self.domain:
            raise InvalidValue("oracle", inner.domain, f"an oracle over {self.domain}")

    @cached_property
    def inner(self) -> FrequencyOracle:
        assert isinstance(self.oracle, FrequencyOracle)
        return self.oracle

    def ratio(self) -> Fraction:
        return self.inner.ratio()

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("public", MEASURES, "u8", (self.measures,)), *self.inner.columns)

    def example_values(self, most: int) -> list[object]:
        values = self.inner.example_values(most)
        return [(value, (float(place),) * self.measures) for place, value in enumerate(values)]

    def encode(self, values: Values) -> Array:
        codes, table = codes_and_numbers(values, self.measures)
        read = self.inner.encode(codes)
        encoded = np.empty(len(read), dtype=[("code", read.dtype), ("measures", "f8", (self.measures,))])
        encoded["code"], encoded["measures"] = read, table
        return encoded

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        return {MEASURES: bits_of(codes["measures"]), **self.inner._randomize(codes["code"], rng)}

    @staticmethod
    def numbers(reports: Reports) -> Floats:
        """The numbers of some reports, a row each: reports hold the bits of their 64-bit floats.

        Example:
            >>> measured = Measured(epsilon=4.0, domain=3, measures=1)
            >>> measured.numbers(measured.randomize([(0, [2.5])], Random(seed=1))).tolist()
            [[2.5]]
        """
        return np.ascontiguousarray(reports.public[MEASURES]).view(np.float64)

    def inner_reports(self, reports: Reports) -> Reports:
        """The oracle's own reports.

        Example:
            >>> measured = Measured(epsilon=4.0, domain=3, measures=1)
            >>> len(measured.inner_reports(measured.randomize([(0, [2.5])], Random(seed=1))).public)
            0
        """
        public = {name: column for name, column in reports.public.items() if name != MEASURES}
        return Reports(self.inner.spec_id, public=public, private=dict(reports.private))

    def check(self, reports: Reports) -> None:
        super().check(reports)
        check_numbers(reports)
        self.inner.check(self.inner_reports(reports))

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        return self.inner.prob(self.inner_reports(reports), self._codes_of(values))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        return self.inner.log_prob(self.inner_reports(reports), self._codes_of(values))

    def _codes_of(self, values: Values) -> Any:
        return [code for code, _ in values] if isinstance(values, list) else self.encode(values)["code"]

    def outputs(self, public: Columns | None = None) -> Reports | None:
        inner_public = dict(public or {})
        bits = inner_public.pop(MEASURES, np.zeros((1, self.measures), dtype=np.uint64))
        every = self.inner.outputs(inner_public or None)
        if every is None:
            return None
        measures = np.repeat(np.asarray(bits, dtype=np.uint64).reshape(1, -1), len(every), axis=0)
        return Reports(self.spec_id, public={MEASURES: measures, **every.public}, private=dict(every.private))

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return self.inner.sketch_shape

    def _fold(self, reports: Reports) -> Ints:
        return self.inner._fold(self.inner_reports(reports))

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        return self.inner._estimate(Sketch(self.inner.spec_id, sketch.n, sketch.counts))

    def truth(self, values: Values) -> Floats:
        """The shares of the codes."""
        codes = self.encode(values)["code"]
        return np.bincount(codes.astype(np.int64), minlength=self.inner.size) / max(len(codes), 1)

    def influence(self) -> Influence | None:
        return self.inner.influence()

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=3, measures=2)
        yield cls(epsilon=0.5, domain=["a", "b", "c", "d", "e", "f", "g"])


def forgetful(field: str, oracle: object) -> FrequencyOracle:
    """A frequency oracle whose reports are all fresh, and take a fixed block of random bytes."""
    if not isinstance(oracle, FrequencyOracle) or isinstance(oracle, Stateful) or not oracle.fixed_block:
        raise InvalidValue(field, oracle, "a frequency oracle that remembers nothing, or its spec")
    return oracle


def codes_and_numbers(values: Values, measures: int) -> tuple[Any, Floats]:
    """The codes of a batch, and its table of numbers, with the same bits for every NaN."""
    codes: Any
    numbers: Any
    try:
        if isinstance(values, np.ndarray) and values.dtype.names == ("code", "measures"):
            codes, numbers = values["code"], values["measures"]
        elif measures:
            pairs = list(values)
            codes, numbers = [code for code, _ in pairs], [list(row) for _, row in pairs]
        else:
            codes = values if isinstance(values, np.ndarray) else list(values)
            numbers = np.zeros((len(codes), 0))
        table = np.array(numbers, dtype=np.float64).reshape(len(codes), measures)
    except (TypeError, ValueError):
        raise InvalidValue("values", values, f"codes, each with {measures} numbers") from None
    if np.isinf(table).any():
        raise InvalidValue("values", float(table[np.isinf(table)][0]), "finite numbers, or NaN for none")
    table[np.isnan(table)] = np.nan
    return codes, table


def bits_of(numbers: Floats) -> Array:
    """Numbers as reports hold them."""
    return np.ascontiguousarray(numbers).view(np.uint64)


def check_numbers(reports: Reports) -> None:
    """Refuse numbers that no device can have sent."""
    bits = reports.public[MEASURES]
    if (~np.isfinite(Measured.numbers(reports)) & (bits != _NONE)).any():
        raise InvalidValue(MEASURES, "bits of no number", "finite numbers, or NaN for none")
