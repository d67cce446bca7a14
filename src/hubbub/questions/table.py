"""Tables: devices report on private columns, and counts over any ranges of them can be asked for afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Family, Terms
from hubbub.collection.time import every
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question
from hubbub.mechanisms.frequency.bundle import Bundle
from hubbub.mechanisms.frequency.measured import MOST_MEASURES
from hubbub.planning.ranges import share_error
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.steady import ARITHMETIC, STEP, LevelPart, table_stream
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema, check_methods
from hubbub.questions.base import Example
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.table_parts import TableParts, method_clause, smallest_part
from hubbub.questions.words import listed, odds_text
from hubbub.statistics.influence import Influence

_MOST_NAMED = 12
"""How many names of a column the page lists."""


def half_of(dimension: Dimension) -> tuple[int, int] | frozenset[int]:
    """Half of a column's codes: the middle of an ordered column, the first half of another."""
    quarter = dimension.size // 4
    if dimension.levels == 2:
        return frozenset(range(max(dimension.size // 2, 1)))
    return quarter, dimension.size - 1 - quarter


def column_values(domain: Domain) -> str:
    """The values that a query can compare a column with, in words: the names themselves, if they are few."""
    if isinstance(domain, Categorical) and len(domain.names) <= _MOST_NAMED:
        return ", ".join(domain.names)
    return domain.describe()


MANY_LEVELS = 40
"""More levels than this leave few devices for each."""


@dataclass(frozen=True, kw_only=True)
class TableQuestion(SharesQuestion):
    """Counts over any box of private columns: every step costs epsilon, and the server keeps reports for later queries.

    Each column has a hierarchy of intervals. By HIO, the device's place on the circle decides on which level of the
    product of all hierarchies it reports the cell of its record, with all of epsilon.

    Parameters
    ----------
    columns
        The fields that make the table: categorical, ordinal or numeric (seen as its cells).
    method
        How devices report: "HIO", "HI", "MG", "SC" or "HDG", or several of them, such as ["HIO", "SC"]. Then devices
        are divided between the methods, and SQL answers each query by the one with the smallest expected error.
    shares
        The part of the devices of each method; equal parts unless given.
    fanout
        How many intervals of an ordered column make one of the next level.
    people
        About how many devices take part. Only the grids of HDG depend on it.
    measures
        Numeric fields whose values are sent as they are, with the report: for what the server may know. A collection
        that has some says why, as `sent_as_it_is` in [override].

    Example:
        >>> from hubbub.questions import Setting
        >>> setting = Setting("people", {"age": Ordinal(100), "state": Categorical(["a", "b", "c"])}, 86400)
        >>> question = TableQuestion(columns=("age", "state"), epsilon=2.0).bound(setting)
        >>> question.terms().parts, question.labels()[:2]
        (7, ('0 to 4', '5 to 9'))
    """

    kind: ClassVar[str] = "table"
    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it is that of half of a column"}
    not_in_groups: ClassVar[str] = (
        "SQL knows exactly how many people a table has and what is public of each, and would have to estimate both"
    )
    columns: tuple[str, ...]
    method: tuple[str, ...] = ("HIO",)
    shares: tuple[float, ...] = ()
    fanout: int = 5
    people: int = 100_000
    measures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        method: object = self.method
        if isinstance(method, str):
            object.__setattr__(self, "method", (method,))
        super().__post_init__()
        names = (*self.columns, *self.measures)
        if not self.columns or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InvalidValue("columns", names, "the names of fields, at least one, all different")
        if STEP in (name.casefold() for name in names):
            raise InvalidValue("columns", names, f"other names than {STEP}, which is the column of the step")
        if len(self.measures) > MOST_MEASURES:
            raise InvalidValue("measures", len(self.measures), f"at most {MOST_MEASURES}")
        check_methods(self.method, self.shares)
        check_integer("fanout", self.fanout, 2, 1 << 16)
        check_integer("people", self.people, 1, 1 << 40)

    # -- what it asks of devices ------------------------------------------------------------------------------

    @classmethod
    def examples(cls) -> Iterator[Example]:
        fields = {"theme": Categorical(["light", "dark"]), "level": Ordinal(9)}
        measured = {**fields, "bytes": Numeric(0, 9, cells=3)}
        both = ("theme", "level")
        yield cls(columns=both, epsilon=2.0, consistency="auto"), fields
        yield cls(columns=both, epsilon=2.0, measures=("bytes",)), measured
        yield cls(columns=("level",), epsilon=2.0, measures=("bytes",), fanout=3), measured
        yield cls(columns=both, epsilon=2.0, method=("HI",), measures=("bytes",)), measured
        yield cls(columns=both, epsilon=2.0, method=("HDG",)), fields
        three, shares = ("MG", "SC", "HIO"), (0.5, 0.3, 0.2)
        yield cls(columns=both, epsilon=4.0, method=three, shares=shares, consistency="auto"), fields

    def reads(self) -> tuple[str, ...]:
        return (*self.columns, *self.measures)

    def check(self) -> None:
        for name in self.columns:
            if not isinstance(self.setting.domains[name], Categorical | Ordinal | Numeric):
                raise InvalidValue("columns", name, "categorical, ordinal or numeric fields")
        for name in self.measures:
            if not isinstance(self.setting.domains[name], Numeric):
                raise InvalidValue("measures", name, "numeric fields")
        self.asked.check()

    @cached_property
    def asked(self) -> TableParts:
        """What the parts of the devices are asked."""
        ranges = {name: self.setting.domains[name] for name in self.measures}
        return TableParts(self.table(), {name: r for name, r in ranges.items() if isinstance(r, Numeric)})

    def parts(self) -> tuple[LevelPart, ...]:
        """What each part of the devices is asked, in the order of the table's parts."""
        return self.asked.parts

    def terms(self) -> Terms:
        parts, units = self.parts(), units_of(self.epsilon)
        mechanisms = [part.mechanism for part in parts]
        name, _, step_seconds, origin, _ = self.setting
        return Terms(
            fields=self.reads(),
            views=tuple(part.view.spec() for part in parts),
            # Families, because each mechanism fits one of the views alone: no value may be answered by an error.
            # Bundles are signed by their ids: each fits only views of as many codes.
            mechanisms=tuple(dict.fromkeys(each.spec_id for each in mechanisms if isinstance(each, Bundle))),
            families=tuple(
                Family(family, (units_of(epsilon_of(units)),))
                for family in sorted({type(each).__name__ for each in mechanisms if not isinstance(each, Bundle)})
            ),
            parts=len(parts),
            limit=self.cost().each,
            promises=(Promise(min(units, MOST_UNITS), 1, step_seconds, origin, scope=of_question(name)),),
            report_bytes=max(part.mechanism.report_bytes for part in parts),
        )

    def cost(self) -> Cost:
        return Cost(max(part.mechanism.event().spent for part in self.parts()), 1)

    # -- the server's half ------------------------------------------------------------------------------------

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return table_stream(self.parts(), self.asked.columns, memory=memory)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    @property
    def searches(self) -> bool:
        return True

    def table(self) -> TableSchema:
        private = tuple(PrivateColumn(name, self.setting.domains[name], missing=True) for name in self.columns)
        public = (PublicColumn(STEP, "BIGINT"), *(PublicColumn(name, "DOUBLE") for name in self.measures))
        return TableSchema(
            self.setting.name,
            private,
            public,
            methods=self.method,
            shares=self.shares,
            epsilon=epsilon_of(units_of(self.epsilon)),
            fanout=self.fanout,
            expected=self.people if "HDG" in self.method else None,
        )

    # -- what it tells ----------------------------------------------------------------------------------------

    def shape(self) -> Shape:
        return Shape(
            form="table",
            size=len(self.labels()),
            everyone=False,
            columns={name: column_values(self.setting.domains[name]) for name in self.reads()},
        )

    def labels(self) -> tuple[str, ...]:
        return self.asked.columns[0].labels

    def forecast(self, n: int) -> float | None:
        schema = self.table()
        dimensions = [column.dimension(schema.fanout) for column in schema.private]
        query = RangeQuery([half_of(dimensions[0]), *[None] * (len(dimensions) - 1)])
        errors = [
            share_error(mechanism, query, n, share)
            for mechanism, share in zip(schema.mechanisms, schema.shares, strict=True)
        ]
        return min((error for error in errors if error is not None), default=None)

    def assumes(self) -> str:
        return f"the part of all devices in half of {self.columns[0]}, whatever else they have"

    def knows_noise(self) -> bool:
        return all(column.sums is None for column in self.asked.columns)

    def influence(self) -> Influence | str:
        return "an answer adds up cells of several levels, and forged reports may all be on one of them"

    def answering(self) -> float:
        return smallest_part(self.parts())

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"table of {listed(list(self.columns))}"

    def made_by(self) -> str:
        mechanisms = [part.mechanism for part in self.parts()]
        oracles = [getattr(each, "oracles", (getattr(each, "inner", each),)) for each in mechanisms]
        return " and ".join(dict.fromkeys(type(oracle).__name__ for several in oracles for oracle in several))

    def default_title(self) -> str:
        return f"Of {listed(list(self.columns))}: how many people are in any range?"

    def sentence(self) -> str:
        parts, schema = self.parts(), self.table()
        epsilon = max(part.mechanism.effective_epsilon for part in parts)
        numbers = [sum(levels[0][0] == place for levels in schema.parts) for place in range(len(self.method))]
        columns = listed(list(self.columns))
        clauses = [method_clause(method, columns, number) for method, number in zip(self.method, numbers, strict=True)]
        some = "The device's group decides which of these it is. " if len(clauses) > 1 else ""
        return (
            f"One report {every(self.setting.step_seconds)}. {'; or '.join([clauses[0], *map(_lower, clauses[1:])])}. "
            f"{some}It is {odds_text(epsilon)}.{_plain(self.measures)}"
        )

    def linked(self) -> str | None:
        if not self.measures:
            return None
        values = listed(list(self.measures))
        return f"Several reports of {self.setting.name} can be linked to one device by its values of {values}."

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        for name in self.measures:
            text = f"the value of {name} is sent as it is: nothing protects it, and reports can be linked by it"
            yield Finding("warning", "measures", text)
        if len(self.method) > 1:
            divided = [f"{share:.3g} by {name}" for name, share in zip(self.method, self.table().shares, strict=True)]
            text = f"devices are divided between methods: {listed(divided)}; a query is answered by one of them"
            yield Finding("note", "method", text)
        if "HDG" in self.method:
            text = f"the grids of HDG are made for {self.people:,} devices; its answers are not unbiased"
            yield Finding("note", "people", text)
        levels = len(self.parts())
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


def _lower(clause: str) -> str:
    return clause[0].lower() + clause[1:]


def _plain(measures: tuple[str, ...]) -> str:
    """The sentences of the promise about values that are not protected."""
    return "".join(f" The value of {name} is sent as it is, without protection." for name in measures)
