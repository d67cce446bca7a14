"""Measures in which private columns take part: numbers of a column, arithmetic of them, and CASE over conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.domain import Numeric, Ordinal
from hubbub.core.reports import Array, Floats
from hubbub.query.codes import code_values
from hubbub.query.errors import QueryError
from hubbub.query.formula import (
    ALWAYS,
    NEVER,
    CodeScore,
    ConditionReader,
    Formula,
    PrivateFactor,
    both,
    opposite,
    score_formula,
)
from hubbub.query.measures import MeasureProfile
from hubbub.query.rules.conditions import number
from hubbub.query.sandbox import check_time
from hubbub.query.sums import EVERYBODY, Form, Monomial
from hubbub.query.trees import Tree, exp, private_names, refused

if TYPE_CHECKING:
    from hubbub.query.schema import PrivateColumn

MOST_PIECES, MOST_TERMS = 64, 24
LARGEST_SCORE = 1e30
"""The largest number with private columns that is summed: variances of squares have its eighth power."""


@dataclass(frozen=True, eq=False)
class PieceTerm:
    """A number times a public expression (None: 1) times scores of private columns."""

    factor: float
    public: Tree | None
    private: PrivateFactor


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a measure: a sum of terms for the people for whom a formula holds, and NULL for all others.

    It is NULL, too, where one of the public expressions in `needed` is.
    """

    formula: Formula
    terms: tuple[PieceTerm, ...]
    needed: tuple[Tree, ...] = ()


_ONE = PieceTerm(1.0, None, PrivateFactor())
Pieces = tuple[Piece, ...]
"""Pieces of which at most one holds for each person."""


class PieceReader:
    """Reads normalised measures in which private columns stand as pieces."""

    def __init__(self, conditions: ConditionReader) -> None:
        self._conditions = conditions
        self._schema = conditions.schema
        self._sizes = [column.size for column in self._schema.private]
        self._counting = self._ordering = False

    def read(self, call: Tree) -> Pieces:
        """The measure of an aggregate; an error if it cannot be answered.

        Of a column that is known in cells, a quantile has the numbers of the cells, and a sum their middles; any column
        can be counted.
        """
        check_time()
        node, self._counting = call.this, isinstance(call, exp.Count)
        self._ordering = isinstance(call, exp.PercentileDisc)
        pieces = self._read(node)
        if len(pieces) > MOST_PIECES:
            raise refused(node, "there are too many combinations of CASE", f"at most {MOST_PIECES} are answered")
        return pieces

    def _read(self, node: Tree) -> Pieces:
        names = private_names(node, self._schema)
        if not names:
            return () if isinstance(node, exp.Null) else (_public(node),)
        if isinstance(node, exp.Paren):
            return self._read(node.this)
        place = next(k for k, column in enumerate(self._schema.private) if column.name == names[0])
        column = self._schema.private[place]
        others = {inner.name for inner in node.find_all(exp.Column)} - {column.name}
        if not others and isinstance(column.domain, Ordinal):
            return self._scored(node, place, column)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Column):
            codes = np.arange(column.size, dtype=np.float64)
            present = score_formula(place, codes < column.values)
            if self._counting:
                return (Piece(present, (_ONE,)),)
            score = _cell_score(node, place, column, codes, ordering=self._ordering)
            return (Piece(present, (PieceTerm(1.0, None, PrivateFactor(scores=(score,))),)),)
        if isinstance(node, exp.Neg):
            return tuple(_times(piece, -1.0) for piece in self._read(node.this))
        if isinstance(node, exp.Cast) and node.to.this.name in ("DOUBLE", "FLOAT"):
            return self._read(node.this)
        if isinstance(node, exp.Div):
            if inside := private_names(node.right, self._schema):
                raise refused(node, f"dividing by {inside[0]}, which is private, is not answered", "divide the answers")
            inverse = exp.Div(this=exp.Literal.number("1.0"), expression=exp.paren(node.right.copy()))
            return self._met(node.left, (_public(inverse),), _multiplied)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul):
            how = _multiplied if isinstance(node, exp.Mul) else _added
            right = self._read(node.right)
            if isinstance(node, exp.Sub):
                right = tuple(_times(piece, -1.0) for piece in right)
            return self._met(node.left, right, how)
        why = "private, together with other columns" if others else "known in cells,"
        raise refused(
            node, f"{node.key.upper()} of {names[0]}, which is {why} is not answered", "known are + - * / and CASE"
        )

    def _met(self, left: Tree, right: Pieces, how: Callable[[Piece, Piece], tuple[PieceTerm, ...]]) -> Pieces:
        met: list[Piece] = []
        for one, other in product(self._read(left), right):
            check_time()
            formula, terms = both(one.formula, other.formula), how(one, other)
            if len(met) >= MOST_PIECES or len(terms) > MOST_TERMS:
                raise refused(left, "the sums and products are too long when they are multiplied out", "ask in parts")
            if formula != NEVER:
                met.append(Piece(formula, terms, (*one.needed, *other.needed)))
        return tuple(met)

    def _case(self, node: Tree) -> Pieces:
        pieces: list[Piece] = []
        before: Formula = ALWAYS
        for branch in node.args["ifs"]:
            formula = self._conditions.formula(branch.this)
            pieces += _inside(self._read(branch.args["true"]), both(before, formula))
            before = both(before, opposite(formula, self._sizes))
        if (rest := node.args.get("default")) is not None:
            pieces += _inside(self._read(rest), before)
        if len(pieces) > MOST_PIECES:
            raise refused(node, "there are too many branches", f"at most {MOST_PIECES} are answered")
        return tuple(pieces)

    def _scored(self, node: Tree, place: int, column: PrivateColumn) -> Pieces:
        values = code_values(node, column)
        counted = [math.nan if value is None else 1.0 for value in values] if self._counting else None
        numbers = _as_numbers(node, values) if counted is None else np.array(counted)
        present = ~np.isnan(numbers)
        if not present.any():
            return ()
        scores = np.where(present, numbers, 0.0)
        formula = score_formula(place, present)
        first = float(scores[present][0])
        if not self._ordering and (scores[present] == first).all():
            return (Piece(formula, (PieceTerm(first, None, PrivateFactor()),)),)
        score = CodeScore(place, str(node.sql("duckdb")), scores)
        return (Piece(formula, (PieceTerm(1.0, None, PrivateFactor(scores=(score,))),)),)


def _cell_score(node: Tree, place: int, column: PrivateColumn, codes: Floats, *, ordering: bool) -> CodeScore:
    """The numbers of the cells of a column, or their middles."""
    if not isinstance(column.domain, Numeric):
        raise refused(node, f"{column.name} is a name, no number", f"ask COUNT(*) ... GROUP BY {column.name}")
    edges = column.domain.edges
    if ordering:
        return CodeScore(place, "its cell", codes, edges)
    if np.abs(edges).max() > LARGEST_SCORE:
        raise refused(node, f"{column.name} can be larger than {LARGEST_SCORE:g}", f"ask MEDIAN({column.name})")
    middles = np.zeros(codes.size)
    middles[: column.values] = (edges[1:] + edges[:-1]) / 2
    return CodeScore(place, f'"{column.name}"', middles, away=np.full(codes.size, (edges[1] - edges[0]) / 2))


def _public(node: Tree) -> Piece:
    constant = number(node)
    if constant is not None and math.isfinite(constant):
        return Piece(ALWAYS, (PieceTerm(float(constant), None, PrivateFactor()),))
    return Piece(ALWAYS, (PieceTerm(1.0, node, PrivateFactor()),), (node,))


def _times(piece: Piece, factor: float) -> Piece:
    return replace(piece, terms=tuple(replace(term, factor=factor * term.factor) for term in piece.terms))


def _added(left: Piece, right: Piece) -> tuple[PieceTerm, ...]:
    return (*left.terms, *right.terms)


def _multiplied(left: Piece, right: Piece) -> tuple[PieceTerm, ...]:
    return tuple(_term_product(one, other) for one, other in product(left.terms, right.terms))


def _term_product(left: PieceTerm, right: PieceTerm) -> PieceTerm:
    parts = [term.public for term in (left, right) if term.public is not None]
    public = parts[0] if len(parts) == 1 else None
    if len(parts) == 2:
        public = exp.Mul(this=exp.paren(parts[0].copy()), expression=exp.paren(parts[1].copy()))
    return PieceTerm(left.factor * right.factor, public, left.private * right.private)


def _away(term: PieceTerm) -> list[PieceTerm]:
    """How far a term may be from its value at the middles of cells: the products of |m| + h, less those of |m|.

    If only one column is known in cells, that is h times the others.
    """
    scores = term.private.scores
    public = None if term.public is None else exp.Abs(this=exp.paren(term.public.copy()))

    def bound(factor: float, name: str, numbers: Callable[[CodeScore], Floats]) -> PieceTerm:
        sizes = []
        for score in scores:
            own = numbers(score)
            if (own == own[0]).all():
                factor *= float(own[0])
            else:
                sizes.append(CodeScore(score.column, f"{name} {score.name}", own))
        return PieceTerm(factor * abs(term.factor), public, PrivateFactor(term.private.formula, tuple(sizes)))

    def size(score: CodeScore) -> Floats:
        return np.abs(score.values)

    in_cells = sum(score.away is not None for score in scores)
    if in_cells < 2:
        return [bound(1.0, "half a cell of", lambda s: size(s) if s.away is None else s.away)] * in_cells
    most = bound(1.0, "the most of", lambda s: size(s) + (0.0 if s.away is None else s.away))
    return [most, bound(-1.0, "the size of", size)]


def _multiple(score: CodeScore, factor: float) -> CodeScore:
    """The numbers of a column times a factor; cells are numbered from that of the least multiple on."""
    name = f"{factor!r} * ({score.name})"
    if score.edges is None:
        return replace(score, name=name, values=factor * score.values)
    cells = score.edges.size - 1
    edges = np.sort(factor * score.edges)
    return replace(score, name=name, values=score.values if factor > 0 else cells - 1 - score.values, edges=edges)


def _inside(pieces: Iterable[Piece], formula: Formula) -> list[Piece]:
    return [replace(piece, formula=both(formula, piece.formula)) for piece in pieces]


def _as_numbers(node: Tree, values: Array) -> Floats:
    """The values as floats, NaN where they are NULL."""
    try:
        numbers = np.array([math.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError):
        raise refused(node, f"{node.sql('duckdb')} is no number", "sum, average and order numbers") from None
    known = np.array([value is not None for value in values])
    if not np.isfinite(numbers[known]).all() or (np.abs(numbers[known]) > LARGEST_SCORE).any():
        raise refused(node, f"{node.sql('duckdb')} is not finite for every value", "leave such values out by CASE")
    return numbers


class PieceProfile:
    """A measure made of pieces, as sums of weights."""

    def __init__(self, pieces: Pieces, public: Callable[[Tree], MeasureProfile]) -> None:
        self.pieces = pieces
        self._public = public
        self.kind = ""
        ends = []
        for piece in pieces:
            for term in piece.terms:
                if term.public is not None:
                    profile = public(term.public)
                    self.kind = profile.kind or self.kind
            ends.append(self._ends(piece))
        known = [end for pair in ends for end in pair if not math.isnan(end)]
        scores = [s.values for piece in pieces for term in piece.terms for s in term.private.scores]
        if any(abs(end) > LARGEST_SCORE for end in known) or not all(np.isfinite(values).all() for values in scores):
            raise QueryError(f"a sum of private numbers has one larger than {LARGEST_SCORE:g}", "divide by a number")
        self.least, self.most = (min(known), max(known)) if known else (math.nan, math.nan)

    def _ends(self, piece: Piece) -> tuple[float, float]:
        """The least and the largest value that a piece can have."""
        low = high = 0.0
        for term in piece.terms:
            ends = (
                [1.0, 1.0] if term.public is None else [self._public(term.public).least, self._public(term.public).most]
            )
            for score in term.private.scores:
                ends = [min(a * b for a in ends for b in score.ends), max(a * b for a in ends for b in score.ends)]
            ends = sorted(term.factor * end for end in ends)
            low, high = low + ends[0], high + ends[1]
        return low, high

    @property
    def lowest(self) -> float:
        """The least number of the public expressions that sums are made of; of nobody, 0."""
        terms = [term.public for piece in self.pieces for term in piece.terms]
        return min((1.0 if public is None else self._public(public).least for public in terms), default=0.0)

    def single(self, tree: Tree) -> tuple[PrivateFactor, CodeScore | None, str]:
        """What a quantile is of: whom, and the scores of a private column or else a public expression as SQL."""
        if not self.pieces:  # of nobody
            return PrivateFactor(NEVER), CodeScore(0, "nothing", np.zeros(1)), ""
        piece = self.pieces[0] if len(self.pieces) == 1 else None
        term = piece.terms[0] if piece is not None and len(piece.terms) == 1 else None
        scores = () if term is None else term.private.scores
        if piece is None or term is None or len(scores) + (term.public is not None) != 1:
            problem = "a quantile is of one private column, or of a public one under one private condition"
            raise refused(tree, problem, "ask QUANTILE_DISC(CASE WHEN ... THEN x END, 0.5)")
        own = PrivateFactor(piece.formula)
        if scores:
            return own, _multiple(scores[0], term.factor), ""
        assert term.public is not None
        sql = str(term.public.sql("duckdb"))
        return own, None, sql if term.factor == 1 else f"{term.factor!r} * ({sql})"

    @cached_property
    def away(self) -> Form:
        """How far the sum of the measure may be from its total, if everybody is as far from their middle as may be."""
        return self._joined(
            (piece, tuple(bound for term in piece.terms for bound in _away(term))) for piece in self.pieces
        )

    @cached_property
    def farthest(self) -> float:
        """How far the measure of a person may be from that of the middles of their cells."""
        return max((sum(map(self._most, map(_away, piece.terms))) for piece in self.pieces), default=0.0)

    def _most(self, bounds: Sequence[PieceTerm]) -> float:
        """The most that bounds of a term add up to for a person."""
        most = 0.0
        for term in bounds:
            known = None if term.public is None else self._public(term.public.this)
            factor = 1.0 if known is None else max(abs(known.least), abs(known.most))
            most += term.factor * factor * math.prod(score.ends[1] for score in term.private.scores)
        return most

    @cached_property
    def count(self) -> Form:
        """How many people have the measure."""
        return self._joined((piece, (_ONE,)) for piece in self.pieces)

    @cached_property
    def total(self) -> Form:
        """The sum of the measure."""
        return self._joined((piece, piece.terms) for piece in self.pieces)

    @cached_property
    def centred(self) -> tuple[Form, Form]:
        """The sums of the differences from the middle of the range, and of their squares."""
        centre = round((self.least + self.most) / 2 * 16) / 16 if math.isfinite(self.least + self.most) else 0.0
        away = PieceTerm(-centre, None, PrivateFactor())
        shifted = [replace(piece, terms=(*piece.terms, away)) for piece in self.pieces]
        first = self._joined((piece, piece.terms) for piece in shifted)
        return first, self._joined((piece, _multiplied(piece, piece)) for piece in shifted)

    def _joined(self, parts: Iterable[tuple[Piece, tuple[PieceTerm, ...]]]) -> Form:
        total: dict[Monomial, float] = {}
        for piece, terms in parts:
            for term in terms:
                weight = self._weight(piece, term)
                total[weight] = total.get(weight, 0.0) + term.factor
        return tuple((factor, weight) for weight, factor in total.items() if factor)

    def _weight(self, piece: Piece, term: PieceTerm) -> Monomial:
        private = PrivateFactor(piece.formula) * term.private
        absent = [tree for tree in piece.needed if self._public(tree).missing]
        own = None if term.public is None else str(term.public.sql("duckdb"))
        guards = list(dict.fromkeys(self._public(tree).sql for tree in absent if tree.sql("duckdb") != own))
        if own is None:
            if not guards:
                return replace(EVERYBODY, private=private)
            known = " AND ".join(f"({guard}) IS NOT NULL" for guard in guards)
            return Monomial(f"CASE WHEN {known} THEN 1 END", 0, private)
        if guards:
            known = " AND ".join(f"({guard}) IS NOT NULL" for guard in guards)
            own = f"CASE WHEN {known} THEN {own} END"
        return Monomial(own, private=private)
