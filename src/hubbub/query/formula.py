"""Divides WHERE into conditions on public columns and a formula over private columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.reports import Bools, Floats, Ints
from hubbub.query.codes import Runs, matching_codes, runs_of, without
from hubbub.query.rules.conditions import conjuncts
from hubbub.query.trees import Tree, exp, private_names, refused

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

MOST_ATOMS = 16
"""How many public conditions may stand in an OR with private ones."""


@dataclass(frozen=True)
class PrivateAtom:
    """The code of a private column, given by its index, is one of these."""

    column: int
    runs: Runs


@dataclass(frozen=True)
class PublicAtom:
    """Whether a condition on public columns, given by its index in `Condition.atoms`, is true, or is not."""

    place: int
    holds: bool = True


@dataclass(frozen=True)
class AllOf:
    """All parts hold; without parts, always true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one part holds; without parts, never true."""

    parts: tuple[Formula, ...]


Formula = PrivateAtom | PublicAtom | AllOf | AnyOf
ALWAYS = AllOf(())
NEVER = AnyOf(())


@dataclass(frozen=True, eq=False)
class Condition:
    """WHERE, divided into public conditions and a formula over private columns.

    Parameters
    ----------
    public
        Conditions on public columns alone, all of which must hold.
    atoms
        Public conditions in an OR with private ones. Which of them hold is looked up for each person.
    formula
        What must hold in addition to `public`.
    notes
        Remarks for the user on how a condition was read.
    """

    public: tuple[Tree, ...]
    atoms: tuple[Tree, ...]
    formula: Formula
    notes: tuple[str, ...]


class ConditionReader:
    """Reads the conditions of a query as formulas that share their public conditions."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self._atoms: dict[str, Tree] = {}
        self._notes: set[str] = set()

    def where(self, where: Tree | None) -> Condition:
        """WHERE, with the public conditions that were read so far."""
        parts = [] if where is None else conjuncts(where)
        public = tuple(part for part in parts if not private_names(part, self.schema))
        rest = tuple(self.formula(part) for part in parts if private_names(part, self.schema))
        formula = rest[0] if len(rest) == 1 else AllOf(rest)
        return self.finished(Condition(public, (), formula, ()))

    def finished(self, condition: Condition) -> Condition:
        """A condition with the public conditions and the remarks of all that was read."""
        return replace(condition, atoms=tuple(self._atoms.values()), notes=tuple(sorted(self._notes)))

    def formula(self, node: Tree) -> Formula:
        """A normalised condition."""
        if isinstance(node, exp.Paren):
            return self.formula(node.this)
        private = private_names(node, self.schema)
        if not private:
            text = node.sql("duckdb")
            self._atoms.setdefault(text, node)
            if len(self._atoms) > MOST_ATOMS:
                problem = "too many public conditions in OR, or in CASE, with private ones"
                raise refused(node, problem, f"at most {MOST_ATOMS} are answered")
            return PublicAtom(list(self._atoms).index(text))
        if isinstance(node, exp.And):
            return AllOf(tuple(map(self.formula, (node.left, node.right))))
        if isinstance(node, exp.Or):
            return AnyOf(tuple(map(self.formula, _grouped(node, self.schema))))
        if len(private) > 1:
            problem = f"{private[0]} and {private[1]} are private: they cannot be compared with each other"
            raise refused(node, problem, "compare each with a literal")
        place = next(k for k, column in enumerate(self.schema.private) if column.name == private[0])
        return PrivateAtom(place, matching_codes(node, self.schema.private[place], self._notes))


def _grouped(node: Tree, schema: TableSchema) -> list[Tree]:
    """The alternatives of an OR, those on public columns alone taken together."""
    parts: list[Tree] = []
    todo: list[Tree] = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, exp.Or):
            todo += [part.right, part.left]
        else:
            parts.append(part)
    public = [part for part in parts if not private_names(part, schema)]
    either_public = [exp.or_(*public, copy=False)] if public else []
    return [*either_public, *(part for part in parts if private_names(part, schema))]


def resolve_public(formula: Formula, truths: tuple[bool, ...]) -> Formula:
    """The formula over private columns that remains when the truth of each public condition is known."""
    if isinstance(formula, PublicAtom):
        return ALWAYS if truths[formula.place] == formula.holds else NEVER
    if isinstance(formula, PrivateAtom):
        return formula if formula.runs else NEVER
    parts = [resolve_public(part, truths) for part in formula.parts]
    absorbing, neutral = (NEVER, ALWAYS) if isinstance(formula, AllOf) else (ALWAYS, NEVER)
    if absorbing in parts:
        return absorbing
    left = tuple(part for part in parts if part != neutral)
    return left[0] if len(left) == 1 else type(formula)(left)


def opposite(formula: Formula, sizes: Sequence[int]) -> Formula:
    """The formula that holds for everybody else, including those for whom the condition is unknown."""
    if isinstance(formula, PublicAtom):
        return PublicAtom(formula.place, not formula.holds)
    if isinstance(formula, PrivateAtom):
        return PrivateAtom(formula.column, without(((0, sizes[formula.column] - 1),), formula.runs))
    other = AnyOf if isinstance(formula, AllOf) else AllOf
    return other(tuple(opposite(part, sizes) for part in formula.parts))


def columns_of(formula: Formula) -> set[int]:
    """The private columns that a formula names."""
    if isinstance(formula, PrivateAtom):
        return {formula.column}
    if isinstance(formula, PublicAtom):
        return set()
    return set().union(*map(columns_of, formula.parts))


def holds(formula: Formula, codes: Mapping[int, Ints], size: int) -> Bools:
    """For which of some records, given by their codes in each column, a formula over private columns holds."""
    held = np.full(size, isinstance(formula, AllOf))
    if isinstance(formula, PrivateAtom):
        for low, high in formula.runs:
            held |= (low <= codes[formula.column]) & (codes[formula.column] <= high)
        return held
    assert isinstance(formula, AllOf | AnyOf)  # public conditions are resolved
    for part in formula.parts:
        other = holds(part, codes, size)
        held = held & other if isinstance(formula, AllOf) else held | other
    return held


def factor_values(factor: PrivateFactor, codes: Mapping[int, Ints], size: int) -> Floats:
    """The factor of each of some records, given by their codes in each column; public conditions are resolved."""
    values = holds(factor.formula, codes, size).astype(np.float64)
    for score in factor.scores:
        values = values * score.values[codes[score.column]]
    return values


def holds_for(formula: Formula, score: CodeScore) -> Bools:
    """For which codes of a column a formula over it alone holds."""
    size = score.values.size
    every = resolve_public(formula, (True,) * MOST_ATOMS)
    if columns_of(every) - {score.column}:
        return np.ones(size, dtype=bool)
    return holds(every, {score.column: np.arange(size)}, size)


@dataclass(frozen=True)
class CodeScore:
    """A number for each code of a private column, 0 where it has none.

    Parameters
    ----------
    name
        The expression that computes the numbers. Scores with the same column and name are the same.
    """

    column: int
    name: str
    values: Floats = field(compare=False, repr=False)
    edges: Floats | None = field(default=None, compare=False, repr=False)
    """Of a column that is known in cells, the borders of the cells, which are then what the numbers count."""
    away: Floats | None = field(default=None, compare=False, repr=False)
    """How far a person's number may be from that of their code: half a cell of a column that is known in cells."""

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number that a person can have."""
        away = 0.0 if self.away is None else self.away
        return float((self.values - away).min()), float((self.values + away).max())


@dataclass(frozen=True)
class PrivateFactor:
    """A number that private columns decide: the product of scores if a formula holds, else 0."""

    formula: Formula = ALWAYS
    scores: tuple[CodeScore, ...] = ()
    """At most one for each column, in the order of columns."""

    @cached_property
    def name(self) -> str:
        """What it is sorted by."""
        return repr(self)

    def __lt__(self, other: PrivateFactor) -> bool:
        return self.name < other.name

    def __mul__(self, other: PrivateFactor) -> PrivateFactor:
        if other == NO_FACTOR or self == NO_FACTOR:
            return self if other == NO_FACTOR else other
        scores = {score.column: score for score in self.scores}
        for score in other.scores:
            own = scores.get(score.column)
            scores[score.column] = score if own is None else _product(own, score)
        formula = self.formula if self.formula == other.formula else both(self.formula, other.formula)
        return PrivateFactor(formula, tuple(scores[column] for column in sorted(scores)))

    def known(self, truths: tuple[bool, ...]) -> PrivateFactor:
        """The factor of people for whom the truth of each public condition is known."""
        formula = resolve_public(self.formula, truths)
        return self if formula is self.formula else PrivateFactor(formula, self.scores)


NO_FACTOR = PrivateFactor()
"""1 for everybody."""


def both(left: Formula, right: Formula) -> Formula:
    """The formula that holds if two do."""
    if ALWAYS in (left, right) or left == right:
        return right if left == ALWAYS else left
    return AllOf((left, right))


def _product(left: CodeScore, right: CodeScore) -> CodeScore:
    first, second = sorted((left, right), key=lambda score: score.name)
    return CodeScore(
        left.column, f"({first.name}) * ({second.name})", left.values * right.values, away=_away(left, right)
    )


def _away(left: CodeScore, right: CodeScore) -> Floats | None:
    """How far the product of a person's two numbers may be from that of their codes."""
    if left.away is None and right.away is None:
        return None
    one, other = (0.0 if score.away is None else score.away for score in (left, right))
    return np.asarray(np.abs(left.values) * other + np.abs(right.values) * one + one * other)


def score_formula(column: int, present: Bools) -> Formula:
    """That a code is one of those that are marked."""
    if present.all():
        return ALWAYS
    places = np.flatnonzero(present).tolist()
    return PrivateAtom(column, runs_of((place, place) for place in places))
