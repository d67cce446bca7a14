"""Tables: devices report on private columns, and counts over any ranges of them can be asked for afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from hubbub.collection.setting import Finding, Setting
from hubbub.collection.spending import Cost
from hubbub.collection.terms import Family, Terms
from hubbub.collection.time import every
from hubbub.core.domain import NONE, Categorical, Domain, Numeric, Ordinal
from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.measured import MOST_MEASURES, Measured
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.planning.ranges import expected_stderr
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.ranges.cell_sums import cells_of
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.steady import ARITHMETIC, STEP, ColumnShares, LevelPart, table_stream
from hubbub.protocols.views.records import Axis, CellAxis, CodeAxis, Joint, PublicNumber, WithNumbers
from hubbub.questions.base import Example, Question, Shape
from hubbub.questions.words import listed, odds_text
from hubbub.statistics.influence import Influence

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

MOST_COUNTED = 1 << 12
"""How many cells of a single column are counted as reports come."""
_MOST_NAMED = 12
"""How many names of a column the page lists."""


def column_size(domain: Domain) -> int:
    """How many codes a column has: its values, and one for nothing recorded."""
    assert domain.size is not None
    return domain.size + 1


def interval_name(domain: Domain, first: int, last: int) -> str:
    """The name of an interval of codes."""
    assert domain.size is not None
    beyond = f" or {NONE}" if last >= domain.size else ""
    if first >= domain.size:
        return NONE
    last = min(last, domain.size - 1)
    if isinstance(domain, Numeric):
        return f"{domain.edges[first]:g} to {domain.edges[last + 1]:g}{beyond}"
    names = domain.labels
    ends = [str(code) if names is None else names[code] for code in (first, last)]
    return (ends[0] if first == last else f"{ends[0]} to {ends[1]}") + beyond


def half_of(dimension: Dimension) -> tuple[int, int] | frozenset[int]:
    """Half of a column's codes: the middle of an ordered column, the first half of another."""
    quarter = dimension.size // 4
    if dimension.levels == 2:
        return frozenset(range(max(dimension.size // 2, 1)))
    return quarter, dimension.size - 1 - quarter


@lru_cache(maxsize=4096)
def device_oracle(epsilon: float, cells: int, *, listed: bool) -> FrequencyOracle:
    """The oracle of a level as devices run it: direct answers if there are few cells, else hashes.

    Only the cells that a release lists are counted as reports come. Cells of other levels are strings of bits, and
    those that a query needs are counted among the kept reports.
    """
    if cells < 3 * math.exp(min(epsilon, 50.0)) + 2:
        return GRR(epsilon=epsilon, domain=cells)
    if listed and cells <= MOST_COUNTED:
        return OLH(epsilon=epsilon, domain=cells)
    return OLH(epsilon=epsilon, domain=BitStrings(max(cells - 1, 1).bit_length()))


def column_values(domain: Domain) -> str:
    """The values that a query can compare a column with, in words: the names themselves, if they are few."""
    if isinstance(domain, Categorical) and len(domain.names) <= _MOST_NAMED:
        return ", ".join(domain.names)
    return domain.describe()


MOST_LEVELS = 256
"""Devices are divided into as many parts as there are levels."""
MANY_LEVELS = 40
"""More levels than this leave few devices for each."""
MOST_SHOWN = 100
"""How many shares of a column a release has; of a column with more values, it has the shares of intervals."""


@dataclass(frozen=True, kw_only=True)
class TableQuestion(Question):
    """Counts over any box of private columns: every step costs epsilon, and the server keeps reports for later queries.

    Each column has a hierarchy of intervals, and the product of all hierarchies has levels (HIO). The device's place on
    the circle decides its level; the device reports the cell of its record on that level with all of epsilon.

    Parameters
    ----------
    columns
        The fields that make the table: at least two, categorical, ordinal or numeric (seen as its cells).
    fanout
        How many intervals of an ordered column make one of the next level.
    measures
        Numeric fields whose values are sent as they are, with the report: for what the server may know. A collection
        that has some says why, as `sent_as_it_is` in [override].

    Example:
        >>> question = TableQuestion(columns=("age", "state"), epsilon=2.0)
        >>> setting = Setting("people", {"age": Ordinal(100), "state": Categorical(["a", "b", "c"])}, 86400)
        >>> question.terms(setting).parts, question.labels(setting)[:2]
        (7, ('0 to 4', '5 to 9'))
    """

    kind: ClassVar[str] = "table"
    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it is that of half of a column"}
    columns: tuple[str, ...]
    fanout: int = 5
    measures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        names = (*self.columns, *self.measures)
        if len(self.columns) < 2 or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InvalidValue("columns", names, "the names of at least two fields, all different")
        if STEP in (name.casefold() for name in names):
            raise InvalidValue("columns", names, f"other names than {STEP}, which is the column of the step")
        if len(self.measures) > MOST_MEASURES:
            raise InvalidValue("measures", len(self.measures), f"at most {MOST_MEASURES}")
        check_integer("fanout", self.fanout, 2, 1 << 16)

    # -- what it asks of devices ------------------------------------------------------------------------------

    @classmethod
    def examples(cls) -> Iterator[Example]:
        fields = {"theme": Categorical(["light", "dark"]), "level": Ordinal(9)}
        yield cls(columns=("theme", "level"), epsilon=2.0), fields
        yield (
            cls(columns=("theme", "level"), epsilon=2.0, measures=("bytes",)),
            {**fields, "bytes": Numeric(0, 9, cells=3)},
        )

    def reads(self) -> tuple[str, ...]:
        return (*self.columns, *self.measures)

    def check(self, setting: Setting) -> None:
        for name in self.measures:
            if not isinstance(setting.domains[name], Numeric):
                raise InvalidValue("measures", name, "numeric fields")
        for name, dimension in zip(self.columns, self.mechanism(setting).dimensions, strict=True):
            if dimension.nodes(1) > MOST_COUNTED:  # a release lists them
                allowed = f"at most {MOST_COUNTED:,} names, or intervals of the first level: a smaller fanout"
                raise InvalidValue("columns", f"{name}, {dimension.nodes(1):,} intervals", allowed)
        self.table(setting)

    def mechanism(self, setting: Setting) -> HIO:
        """The hierarchy by which devices report."""
        dimensions = tuple(self._dimension(name, setting.domains[name]) for name in self.columns)
        levels = math.prod(dimension.levels for dimension in dimensions) - 1
        if levels > MOST_LEVELS:
            raise InvalidValue(
                "columns", f"{levels:,} levels", f"columns with at most {MOST_LEVELS} levels: fewer, or a larger fanout"
            )
        if math.prod(dimension.size for dimension in dimensions) > 1 << 53:
            raise InvalidValue("columns", self.columns, "columns whose values make at most 2^53 cells")
        return HIO(epsilon_of(units_of(self.epsilon)), dimensions)

    def _dimension(self, name: str, domain: Domain) -> Dimension:
        if not isinstance(domain, Categorical | Ordinal | Numeric):
            raise InvalidValue("columns", name, "categorical, ordinal or numeric fields")
        size = column_size(domain)
        ordered = domain.in_order and size > 2
        return Dimension.ordinal(size, fanout=self.fanout) if ordered else Dimension.categorical(size)

    def parts(self, setting: Setting) -> tuple[LevelPart, ...]:
        """What each part of the devices is asked, in the order of the mechanism's levels."""
        hio = self.mechanism(setting)
        parts = []
        for level in hio.levels:
            view = Joint(tuple(self._axis(setting, place, depth) for place, depth in enumerate(level)))
            alone = sum(depth > 0 for depth in level) == 1
            oracle = device_oracle(hio.level_epsilon, cells_of(hio.dimensions, level), listed=alone)
            parts.append(self._beside(setting, view, oracle))
        return tuple(parts)

    def _beside(self, setting: Setting, view: Joint, oracle: FrequencyOracle) -> LevelPart:
        """A level, with the measures."""
        if not self.measures:
            return LevelPart(view, oracle)
        ranges = [setting.domains[name] for name in self.measures]
        numbers = tuple(
            PublicNumber(name, domain.low, domain.high)
            for name, domain in zip(self.measures, ranges, strict=True)
            if isinstance(domain, Numeric)
        )
        wrapped = Measured(epsilon=oracle.epsilon, domain=oracle.domain, oracle=oracle, measures=len(numbers))
        return LevelPart(WithNumbers(view, numbers), wrapped)

    def _axis(self, setting: Setting, place: int, depth: int) -> Axis:
        name = self.columns[place]
        domain = setting.domains[name]
        width = self._dimension(name, domain).widths[depth]
        if isinstance(domain, Numeric):
            return CellAxis(name, domain.low, domain.high, domain.cells, width)
        return CodeAxis(name, column_size(domain), width)

    def terms(self, setting: Setting) -> Terms:
        parts, units = self.parts(setting), units_of(self.epsilon)
        return Terms(
            fields=self.reads(),
            views=tuple(part.view.spec() for part in parts),
            # Families, because each mechanism fits one of the views alone: no value may be answered by an error.
            families=tuple(
                Family(name, (units_of(epsilon_of(units)),))
                for name in sorted({type(part.mechanism).__name__ for part in parts})
            ),
            parts=len(parts),
            limit=self.cost(setting).each,
            promises=(
                Promise(
                    min(units, MOST_UNITS), 1, setting.step_seconds, setting.origin, scope=of_question(setting.name)
                ),
            ),
            report_bytes=max(part.mechanism.report_bytes for part in parts),
        )

    def cost(self, setting: Setting) -> Cost:
        return Cost(max(part.mechanism.event().spent for part in self.parts(setting)), 1)

    # -- the server's half ------------------------------------------------------------------------------------

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return table_stream(self.parts(setting), self._listed_columns(setting), memory=memory)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    @property
    def searches(self) -> bool:
        return True

    def table(self, setting: Setting) -> TableSchema:
        from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

        private = tuple(PrivateColumn(name, setting.domains[name], missing=True) for name in self.columns)
        public = (PublicColumn(STEP, "BIGINT"), *(PublicColumn(name, "DOUBLE") for name in self.measures))
        epsilon = self.mechanism(setting).epsilon
        return TableSchema(setting.name, private, public, epsilon=epsilon, fanout=self.fanout)

    def _listed_columns(self, setting: Setting) -> list[ColumnShares]:
        """For each column, the finest level that a release can list; all other columns are at their root."""
        hio = self.mechanism(setting)
        columns = []
        for place, name in enumerate(self.columns):
            dimension = hio.dimensions[place]
            depth = max(
                depth for depth in range(1, dimension.levels) if depth == 1 or dimension.nodes(depth) <= MOST_SHOWN
            )
            level = tuple(depth if other == place else 0 for other in range(len(self.columns)))
            columns.append(ColumnShares(name, hio.levels.index(level), self._cells(setting, name, dimension, depth)))
        return columns

    def _cells(self, setting: Setting, name: str, dimension: Dimension, depth: int) -> tuple[str, ...]:
        domain, width = setting.domains[name], dimension.widths[depth]
        firsts = range(0, dimension.size, width)
        return tuple(interval_name(domain, first, min(first + width, dimension.size) - 1) for first in firsts)

    # -- what it tells ----------------------------------------------------------------------------------------

    def shape(self, setting: Setting) -> Shape:
        return Shape(
            form="table",
            size=len(self.labels(setting)),
            everyone=False,
            columns={name: column_values(setting.domains[name]) for name in self.reads()},
        )

    def labels(self, setting: Setting) -> tuple[str, ...]:
        return self._listed_columns(setting)[0].labels

    def forecast(self, setting: Setting, n: int) -> float | None:
        hio = self.mechanism(setting)
        if n < len(hio.levels):
            return None
        box = [None] * len(hio.dimensions)
        return expected_stderr(hio, RangeQuery([half_of(hio.dimensions[0]), *box[1:]]), n) / n

    def assumes(self, setting: Setting) -> str:
        return f"the part of all devices in half of {self.columns[0]}, whatever else they have"

    def influence(self, setting: Setting) -> Influence | str:
        return "an answer adds up cells of several levels, and forged reports may all be on one of them"

    def answering(self, setting: Setting) -> float:
        return 1 / len(self.mechanism(setting).levels)

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"table of {listed(list(self.columns))}"

    def made_by(self, setting: Setting) -> str:
        mechanisms = [part.mechanism for part in self.parts(setting)]
        return " and ".join(
            dict.fromkeys(type(getattr(mechanism, "inner", mechanism)).__name__ for mechanism in mechanisms)
        )

    def default_title(self, setting: Setting) -> str:
        return f"Of {listed(list(self.columns))}: how many people are in any range?"

    def sentence(self, setting: Setting) -> str:
        parts = self.parts(setting)
        epsilon = max(part.mechanism.effective_epsilon for part in parts)
        return (
            f"One report {every(setting.step_seconds)}. It covers {listed(list(self.columns))} together, each rounded "
            f"to an interval of values; the device's group, one of {len(parts)}, decides how coarse the intervals are. "
            f"It is {odds_text(epsilon)}.{_plain(self.measures)}"
        )

    def linked(self, setting: Setting) -> str | None:
        if not self.measures:
            return None
        values = listed(list(self.measures))
        return f"Several reports of {setting.name} can be linked to one device by its values of {values}."

    def findings(self, setting: Setting) -> Iterator[Finding]:
        for name in self.measures:
            text = f"the value of {name} is sent as it is: nothing protects it, and reports can be linked by it"
            yield Finding("warning", "measures", text)
        levels = len(self.mechanism(setting).levels)
        yield Finding(
            "note",
            "",
            "its single reports are kept until the retention is over, so that SQL can ask about them; the promise says "
            "so",
        )
        if levels > MANY_LEVELS:
            text = (
                f"its {levels} levels leave few devices for each: fewer columns, or a larger fanout, make fewer levels"
            )
            yield Finding("warning", "columns", text)


def _plain(measures: tuple[str, ...]) -> str:
    """The sentences of the promise about values that are not protected."""
    return "".join(f" The value of {name} is sent as it is, without protection." for name in measures)
