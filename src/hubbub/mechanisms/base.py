"""The contract: a mechanism is a conditional distribution over reports plus a linear integer summary of them.

`ReportFormat` is what the server knows of every kind of report: the columns, how reports are counted, what one
spends. A `Mechanism` makes each report afresh from a value; a `Stateful` (`stateful.py`) also from a remembered state.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Domain, Values
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.event import UNITS_PER_EPSILON, Event
from hubbub.core.plugins import guard
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch
from hubbub.core.spec import Json, integer, spec_id
from hubbub.mechanisms.report_columns import ColumnSpec, check_columns, read_bare, reports_of
from hubbub.random.integers import log_fraction, log_upper
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.mechanisms.weights import Blanket
    from hubbub.statistics.influence import Influence

__all__ = ["Cases", "ColumnSpec", "Linkable", "Mechanism", "ReportFormat"]

Cases = tuple[Sequence[Fraction], Ints]
"""A list of probabilities, and for each report (row) and value (column) the index of its probability."""
Linkable = Literal["never", "between batches", "always"]
LEAST_EPSILON = 1 / UNITS_PER_EPSILON
"""The unit of ledgers; of less, the floats of an estimator could not tell the probabilities apart."""
MOST_EPSILON = 1000.0


@dataclass(frozen=True, kw_only=True)
class ReportFormat(ABC):
    """One kind of report: its columns, how reports are counted and estimated from, and what one report spends.

    Frozen; the fields are the spec that client and server share. A subclass declares fields, resolves the derived ones
    in `_resolve` (0 means "choose for me"), and implements the abstract methods below. The constructor computes the
    exact epsilon from the resolved integers and refuses a declared epsilon below it: no spec, wherever it came from,
    can spend more than it declares.
    """

    epsilon: float
    bias: ClassVar[Literal["none", "consistent", "heuristic"]] = "none"

    def __init_subclass__(cls) -> None:
        guard(cls)

    def __post_init__(self) -> None:
        epsilon = self.epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.floating | np.integer):
            raise InvalidValue("epsilon", epsilon, "a finite number above 0")
        if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:  # false for NaN too
            raise InvalidValue("epsilon", epsilon, f"a finite number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}")
        self._set("epsilon", float(epsilon))
        self._resolve()
        if self.effective_epsilon > self.epsilon:
            raise InvalidValue(
                "epsilon", self.epsilon, f"at least {self.effective_epsilon!r}, which its integers spend"
            )

    # -- what a subclass implements ---------------------------------------------------------------------------

    linkable: ClassVar[Linkable] = "always"
    """Whether a device can be recognised by its reports after a shuffle. Unless a mechanism states it, it can.

    - "never": the public part of each report is drawn afresh, without looking at the value; or many devices share it.
    - "between batches": a device remembers, and two of its reports can be recognised as one device's. A shuffle
      protects one batch only.
    - "always": the public part depends on the value, and can single a report out. A shuffle protects nothing.
    """

    @property
    def whole_reports(self) -> tuple[tuple[float, Mechanism], ...]:
        """Where a device reports bit by bit: for each part of the devices, its share of them and the mechanism of which
        all reports of a device together are one report. Nothing where every report is whole.
        """
        return ()

    @abstractmethod
    def _resolve(self) -> None:
        """Validate the fields and fill in the derived ones."""

    @abstractmethod
    def ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities under two values, given the public part: e^epsilon, exactly."""

    @property
    @abstractmethod
    def columns(self) -> tuple[ColumnSpec, ...]:
        """The columns of a report."""

    @abstractmethod
    def example_values(self, most: int) -> list[Any]:
        """At most `most` different values, for audits and checks; all values, if there are no more."""

    @property
    @abstractmethod
    def sketch_shape(self) -> tuple[int, ...]:
        """The shape of a sketch's counts."""

    @abstractmethod
    def _fold(self, reports: Reports) -> Ints:
        """The counts of a batch of checked reports."""

    @abstractmethod
    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        """The estimate from a checked sketch that holds at least one report."""

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Small instances that the contract suite in `hubbub.checks` is applied to."""

    # -- what every mechanism has -----------------------------------------------------------------------------

    @cached_property
    def effective_epsilon(self) -> float:
        """What one report spends, exactly: ln of `ratio`, rounded up to a float."""
        return log_upper(self.ratio())

    def _reports(self, arrays: Columns) -> Reports:
        """Reports of this spec with these arrays as columns."""
        return reports_of(self.spec_id, self.columns, arrays)

    def check(self, reports: Reports) -> None:
        """Refuse reports of another spec, or that no client of this spec can have made."""
        if reports.spec_id != self.spec_id:
            raise SpecMismatch("spec_id", reports.spec_id, f"reports of {self.spec_id}")
        check_columns(reports, self.columns)

    def read_bare(self, data: bytes) -> Reports:
        """Read what `Reports.to_bare` wrote. The values are not checked: `check` does that."""
        return read_bare(self.spec_id, self.columns, data)

    def empty(self) -> Sketch:
        """The sketch of no reports: the zero of merging."""
        return Sketch(self.spec_id, 0, np.zeros(self.sketch_shape, dtype=np.int64))

    def accumulate(self, reports: Reports) -> Sketch:
        """Fold reports into a sketch."""
        self.check(reports)
        if not len(reports):
            return self.empty()
        return Sketch(self.spec_id, len(reports), self._fold(reports))

    def estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        """Estimate from a sketch. Candidates are for open domains, and for sketches made by `support`."""
        if sketch.n == 0:
            raise InvalidValue("n", 0, "at least one report to estimate from")
        if sketch.fakes:  # they would be estimated as if people had sent them
            raise InvalidValue("fakes", sketch.fakes, "0: privacy.fakes takes them off")
        return dataclasses.replace(self._estimate(sketch, candidates), reports=frozenset([sketch.digest]))

    def influence(self) -> Influence | None:
        """The numbers that one forged report can stand for; None if the estimate is no mean over reports."""
        return None

    def event(self) -> Event:
        """What one report spends, for the ledger."""
        return Event.of(type(self).__name__, self.spec_id, self.effective_epsilon)

    @property
    def report_bytes(self) -> int:
        """The size of one report's columns."""
        return sum(column.entry_bytes for column in self.columns)

    @property
    def report_bits(self) -> int:
        """The bits that one report can use: those of its bytes, less what the columns' bounds leave unused."""
        return sum(column.entry_bits for column in self.columns)

    def spec(self) -> dict[str, Json]:
        """The fields as JSON."""
        spec: dict[str, Json] = {"mechanism": type(self).__name__}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            spec[field.name] = value.spec() if isinstance(value, Domain | ReportFormat) else value
        return spec

    @cached_property
    def spec_id(self) -> str:
        """The hash of the spec."""
        return spec_id(self.spec())

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Build the mechanism that a spec describes. The spec has every field."""
        if not isinstance(spec, Mapping):
            raise InvalidValue("spec", spec, "an object with the mechanism's name and fields")
        kind = cls if spec.get("mechanism") == cls.__name__ else _registered(spec.get("mechanism"), cls)
        types = {field.name: field.type for field in dataclasses.fields(kind)}
        arguments = {name: value for name, value in spec.items() if name != "mechanism"}
        if arguments.keys() != types.keys():
            raise InvalidValue("spec", sorted(arguments), f"exactly the fields {sorted(types)}")
        for name, value in arguments.items():
            arguments[name] = integer(name, value) if types[name] in ("int", int) else value
        return kind(**arguments)

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)

    def _integer(self, field: str, low: int, high: int) -> None:
        value = getattr(self, field)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
            raise InvalidValue(field, value, f"an integer from {low} to {high}")
        self._set(field, int(value))

    def _one_of(self, field: str, names: Sequence[str]) -> None:
        if getattr(self, field) not in names:
            raise InvalidValue(field, getattr(self, field), f"one of {', '.join(names)}")

    def _check_sketch(self, sketch: Sketch, identity: str, shape: tuple[int, ...]) -> None:
        if sketch.spec_id != identity:
            raise SpecMismatch("spec_id", sketch.spec_id, f"a sketch of {identity}")
        if sketch.counts.shape != shape:
            raise SpecMismatch("counts", sketch.counts.shape, f"counts of shape {shape}")


@dataclass(frozen=True, kw_only=True)
class Mechanism(ReportFormat):
    """A randomiser: every report is made afresh from one value, independently of all other reports."""

    fixed_block: ClassVar[bool] = True
    """Whether a report draws one block of fixed size, so that a batch equals its singles byte for byte."""

    @abstractmethod
    def encode(self, values: Values) -> Array:
        """Check a batch of values and turn them into what the randomiser reads."""

    @abstractmethod
    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        """The columns of reports on checked values."""

    def _cases(self, reports: Reports, values: Values) -> Cases:
        """The few probabilities that there are, and the index of each report's (row) given each value (column).

        A subclass whose reports have many different probabilities implements `prob` and `log_prob` instead.
        """
        raise NotImplementedError(f"{type(self).__name__}: _cases, or both prob and log_prob")

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        """The exact probability (a Fraction) of each report (row) given each value (column) and the public part."""
        return fractions(*self._cases(reports, values))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        """The logarithm of `prob`, fast, in floats."""
        chances, case = self._cases(reports, values)
        return np.asarray(np.array([log_fraction(chance) for chance in chances])[case])

    def outputs(self, public: Columns | None = None) -> Reports | None:
        """Every possible private part, with the given public part (one row); None where there are too many."""
        return None

    def blanket(self) -> Blanket | None:
        """The part of a report's distribution that does not depend on the value, for amplification; None if unknown."""
        return None

    def randomize(self, values: Values, rng: Random) -> Reports:
        """Randomise a batch of values: on a device, a batch of one."""
        if not isinstance(rng, Random):
            raise InvalidValue("rng", rng, "a hubbub.Random")
        return self._reports(self._randomize(self.encode(values), rng))

    def _with_public(self, public: Columns | None, private: Columns) -> Reports:
        """Reports with these private columns, all with one public part: the given row, or zeros."""
        n = len(next(iter(private.values())))
        shared = {
            column.name: np.repeat(public[column.name] if public else np.zeros((1, *column.shape)), n, axis=0)
            for column in self.columns
            if column.part == "public"
        }
        return self._reports({**shared, **private})


def _registered(name: object, wanted: type[Any]) -> type[Any]:
    from hubbub.mechanisms import MECHANISMS

    kind = MECHANISMS.get(name) if isinstance(name, str) else None
    if kind is None or not issubclass(kind, wanted):
        raise InvalidValue("mechanism", name, f"one of {', '.join(sorted(MECHANISMS))}")
    return kind


def fractions(table: Sequence[Fraction], index: Array) -> NDArray[np.object_]:
    """Pick exact probabilities from a short table, keeping them exact."""
    entries: NDArray[np.object_] = np.array([*table, None], dtype=object)  # None: else an array of one number
    return np.asarray(entries[index])


Item = TypeVar("Item")


def round_robin(kinds: Sequence[Iterator[Item]], most: int) -> list[Item]:
    """Up to a given number of items, one of each kind in turn; a kind that has no more is passed over."""
    items: list[Item] = []
    while kinds and len(items) < most:
        rest = []
        for kind in kinds:
            for item in kind:
                items.append(item)
                rest.append(kind)
                break
        kinds = rest
    return items[:most]
