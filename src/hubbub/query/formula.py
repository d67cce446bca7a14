"""Divides WHERE into conditions on public columns and a formula over private columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.query.codes import Runs, matching_codes
from hubbub.query.errors import Tree, refused
from hubbub.query.rules.conditions import conjuncts
from hubbub.query.schema import private_names

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
    """A condition on public columns, by its index in `Condition.atoms`."""

    place: int


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


def condition_of(where: Tree | None, schema: TableSchema) -> Condition:
    """Divide a normalised WHERE into public conditions and a formula over private columns."""
    if where is None:
        return Condition((), (), ALWAYS, ())
    parts = conjuncts(where)
    public = tuple(part for part in parts if not private_names(part, schema))
    atoms: dict[str, Tree] = {}
    notes: set[str] = set()
    rest = tuple(_formula(part, schema, atoms, notes) for part in parts if private_names(part, schema))
    if len(atoms) > MOST_ATOMS:
        extra = list(atoms.values())[MOST_ATOMS]
        raise refused(extra, "too many public conditions in OR with private ones", f"at most {MOST_ATOMS} are answered")
    return Condition(public, tuple(atoms.values()), rest[0] if len(rest) == 1 else AllOf(rest), tuple(sorted(notes)))


def _formula(node: Tree, schema: TableSchema, atoms: dict[str, Tree], notes: set[str]) -> Formula:
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return _formula(node.this, schema, atoms, notes)
    private = private_names(node, schema)
    if not private:
        text = node.sql("duckdb")
        atoms.setdefault(text, node)
        return PublicAtom(list(atoms).index(text))
    if isinstance(node, exp.And):
        return AllOf(tuple(_formula(part, schema, atoms, notes) for part in (node.left, node.right)))
    if isinstance(node, exp.Or):
        return AnyOf(tuple(_formula(part, schema, atoms, notes) for part in _grouped(node, schema)))
    if len(private) > 1:
        problem = f"{private[0]} and {private[1]} are private: they cannot be compared with each other"
        raise refused(node, problem, "compare each with a literal")
    place = next(k for k, column in enumerate(schema.private) if column.name == private[0])
    return PrivateAtom(place, matching_codes(node, schema.private[place], notes))


def _grouped(node: Tree, schema: TableSchema) -> list[Tree]:
    """The alternatives of an OR, those on public columns alone taken together."""
    from sqlglot import exp

    parts: list[Tree] = []
    todo: list[Tree] = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, exp.Or):
            todo += [part.right, part.left]
        else:
            parts.append(part)
    public = [part for part in parts if not private_names(part, schema)]
    together = [exp.or_(*public, copy=False)] if public else []
    return [*together, *(part for part in parts if private_names(part, schema))]


def resolve_public(formula: Formula, truths: tuple[bool, ...]) -> Formula:
    """The formula over private columns that remains when the truth of each public condition is known."""
    if isinstance(formula, PublicAtom):
        return ALWAYS if truths[formula.place] else NEVER
    if isinstance(formula, PrivateAtom):
        return formula if formula.runs else NEVER
    parts = [resolve_public(part, truths) for part in formula.parts]
    absorbing, neutral = (NEVER, ALWAYS) if isinstance(formula, AllOf) else (ALWAYS, NEVER)
    if absorbing in parts:
        return absorbing
    left = tuple(part for part in parts if part != neutral)
    return left[0] if len(left) == 1 else type(formula)(left)
