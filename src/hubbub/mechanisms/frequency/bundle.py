"""Bundles: a report on each of several codes by an oracle each, perhaps with public numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Values
from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.base import ColumnSpec, Linkable, Mechanism
from hubbub.mechanisms.frequency.measured import (
    MEASURES,
    MOST_MEASURES,
    bits_of,
    check_numbers,
    codes_and_numbers,
    forgetful,
)
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random

if TYPE_CHECKING:  # a device estimates nothing
    from hubbub.core.estimate import Estimate
    from hubbub.statistics.influence import Influence

MOST_ORACLES = 64
MOST_OUTPUTS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class Bundle(Mechanism):
    """A report on each of several codes by an oracle each, and perhaps public numbers with them.

    The oracles randomise independently, so that a report spends what all of them spend together. For a table whose
    devices report on every level (HI) or on every column (SC): the server can tell which reports are of one device. The
    estimate has the shares of the codes, oracle after oracle, of those that count all codes. Numbers are not protected,
    as those of `Measured`.

    Parameters
    ----------
    epsilon
        What all reports of a device spend together.
    oracles
        2 to 64 frequency oracles over numbers of codes, or their specs.
    measures
        How many public numbers there are.

    Example:
        >>> from hubbub import GRR, OLH
        >>> bundle = Bundle(epsilon=2.0, oracles=(GRR(epsilon=1.0, domain=3), OLH(epsilon=1.0, domain=100)))
        >>> reports = bundle.randomize([(2, 77), (0, 5)], Random(seed=1))
        >>> len(reports), sorted(reports.private), bundle.report_bytes
        (2, ['0.value', '1.bucket'], 10)

    References
    ----------
    T. Wang, Ding et al., 2019; T. Wang, 2021, sections 7.3.1 and 7.4.3, for HI and SC.
    """

    fixed_block = False  # a batch draws oracle after oracle
    oracles: tuple[FrequencyOracle, ...]
    measures: int = 0

    @property
    def linkable(self) -> Linkable:  # type: ignore[override]
        """Only the numbers can single a report out."""
        return "always" if self.measures else "never"

    def _resolve(self) -> None:
        self._integer("measures", 0, MOST_MEASURES)
        given: Any = self.oracles
        if not isinstance(given, list | tuple) or not 2 <= len(given) <= MOST_ORACLES:
            raise InvalidValue("oracles", given, f"2 to {MOST_ORACLES} frequency oracles")
        read = [FrequencyOracle.from_spec(each) if isinstance(each, Mapping) else each for each in given]
        for oracle in read:
            if not isinstance(forgetful("oracles", oracle).domain, Ordinal | BitStrings):
                raise InvalidValue("oracles", oracle.domain, "oracles over a number of codes")
        self._set("oracles", tuple(read))

    def spec(self) -> dict[str, Json]:
        return {**super().spec(), "oracles": [oracle.spec() for oracle in self.oracles]}

    def ratio(self) -> Fraction:
        return math.prod((oracle.ratio() for oracle in self.oracles), start=Fraction(1))

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        own = [ColumnSpec("public", MEASURES, "u8", (self.measures,))] if self.measures else []
        each = [
            column._replace(name=f"{place}.{column.name}")
            for place, oracle in enumerate(self.oracles)
            for column in oracle.columns
        ]
        return tuple(sorted([*own, *each], key=lambda column: column.part == "private"))  # as reports are written

    def example_values(self, most: int) -> list[Any]:
        every = product(*(oracle.example_values(most) for oracle in self.oracles))
        rows = list(islice(every, most))
        return [(row, (float(place),) * self.measures) for place, row in enumerate(rows)] if self.measures else rows

    def encode(self, values: Values) -> Array:
        rows, table = codes_and_numbers(values, self.measures)
        try:
            columns: Any = rows.T if isinstance(rows, np.ndarray) and rows.ndim == 2 else list(zip(*rows, strict=True))
            wrong = len(rows) > 0 and len(columns) != len(self.oracles)
        except (TypeError, ValueError):
            wrong = True
        if wrong:
            raise InvalidValue("values", values, f"rows of {len(self.oracles)} codes")
        encoded = np.empty(
            len(rows), dtype=[("code", "u8", (len(self.oracles),)), ("measures", "f8", (self.measures,))]
        )
        for place, (oracle, column) in enumerate(zip(self.oracles, columns, strict=len(rows) > 0)):
            encoded["code"][:, place] = oracle.encode(column)
        encoded["measures"] = table
        return encoded

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        arrays = {MEASURES: bits_of(codes["measures"])} if self.measures else {}
        for place, oracle in enumerate(self.oracles):
            made = oracle._randomize(codes["code"][:, place].astype(np.int64), rng)
            arrays |= {f"{place}.{name}": column for name, column in made.items()}
        return arrays

    def reports_of(self, reports: Reports, place: int) -> Reports:
        """The reports of one of the oracles."""
        return bundled(reports, place, self.oracles[place].spec_id)

    def check(self, reports: Reports) -> None:
        super().check(reports)
        if self.measures:
            check_numbers(reports)
        for place, oracle in enumerate(self.oracles):
            oracle.check(self.reports_of(reports, place))

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        codes = self.encode(values)["code"].astype(np.int64)
        each = (
            oracle.prob(self.reports_of(reports, place), codes[:, place]) for place, oracle in enumerate(self.oracles)
        )
        return np.asarray(math.prod(each, start=np.full((len(reports), len(codes)), Fraction(1), dtype=object)))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        codes = self.encode(values)["code"].astype(np.int64)
        each = [
            oracle.log_prob(self.reports_of(reports, place), codes[:, place])
            for place, oracle in enumerate(self.oracles)
        ]
        return np.asarray(np.sum(each, axis=0))

    def outputs(self, public: Columns | None = None) -> Reports | None:
        given = dict(public or {})
        every = [
            oracle.outputs({c.name: given[f"{place}.{c.name}"] for c in oracle.columns if c.part == "public"} or None)
            if given
            else oracle.outputs()
            for place, oracle in enumerate(self.oracles)
        ]
        if any(part is None for part in every) or math.prod(len(part or ()) for part in every) > MOST_OUTPUTS:
            return None
        grid = np.indices([len(part or ()) for part in every]).reshape(len(every), -1)
        arrays: dict[str, Array] = {}
        for place, part in enumerate(every):
            assert part is not None
            for name, column in (*part.public.items(), *part.private.items()):
                arrays[f"{place}.{name}"] = column[grid[place]]
        if self.measures:
            bits = np.asarray(given.get(MEASURES, np.zeros((1, self.measures))), dtype=np.uint64).reshape(1, -1)
            arrays[MEASURES] = np.repeat(bits, grid.shape[1], axis=0)
        return self._reports(arrays)

    @cached_property
    def counted(self) -> tuple[int, ...]:
        """How many codes of each oracle a sketch counts: none of those over strings of bits."""
        return tuple(math.prod(oracle.sketch_shape) for oracle in self.oracles)

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (sum(self.counted),)

    def _fold(self, reports: Reports) -> Ints:
        folded = (oracle._fold(self.reports_of(reports, place)) for place, oracle in enumerate(self.oracles))
        return np.concatenate([counts.reshape(-1) for counts in folded])

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        from hubbub.core.estimate import Estimate

        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        estimates = [self.estimate_of(sketch, place) for place, size in enumerate(self.counted) if size]
        value = np.concatenate([estimate.value for estimate in estimates])
        return Estimate(value, np.concatenate([estimate.variance for estimate in estimates]), sketch.n)

    def estimate_of(self, sketch: Sketch, place: int) -> Estimate:
        """The estimate of the shares of one of the codes."""
        start, oracle = sum(self.counted[:place]), self.oracles[place]
        counts = sketch.counts[start : start + self.counted[place]].reshape(oracle.sketch_shape)
        return oracle.estimate(Sketch(oracle.spec_id, sketch.n, counts))

    def influence(self) -> Influence | None:
        """That of the oracle whose reports stand for the most people, of the codes that a sketch counts."""
        from hubbub.statistics.influence import Influence

        every = [oracle.influence() for oracle, size in zip(self.oracles, self.counted, strict=True) if size]
        known = [influence for influence in every if influence is not None]
        if not known or len(known) < len(every):
            return None
        return Influence(min(each.least for each in known), max(each.most for each in known))

    def truth(self, values: Values) -> Floats:
        """The shares of the codes that a sketch counts, oracle after oracle."""
        codes = self.encode(values)["code"].astype(np.int64)
        counts = [np.bincount(codes[:, place], minlength=size) for place, size in enumerate(self.counted) if size]
        return np.concatenate(counts) / max(len(codes), 1)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        from hubbub.mechanisms.frequency.grr import GRR
        from hubbub.mechanisms.frequency.local_hashing import OLH

        yield cls(epsilon=2.0, oracles=(GRR(epsilon=1.0, domain=3), GRR(epsilon=1.0, domain=2)))
        yield cls(epsilon=1.5, oracles=(OLH(epsilon=0.5, domain=6), GRR(epsilon=1.0, domain=2)), measures=1)


def bundled(reports: Reports, place: int, spec_id: str) -> Reports:
    """The reports of one of the oracles of a bundle, under the id of a spec with the same columns."""
    own = f"{place}."
    public, private = (
        {name.removeprefix(own): column for name, column in columns.items() if name.startswith(own)}
        for columns in (reports.public, reports.private)
    )
    return Reports(spec_id, public=public, private=private)
