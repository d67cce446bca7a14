"""The groups of a query: keys, strata and formulas; HAVING, ORDER BY and LIMIT; how many people decide their sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.domain import Numeric
from hubbub.core.reports import Floats
from hubbub.query.codes import Runs, both
from hubbub.query.errors import QueryError
from hubbub.query.formula import (
    NEVER,
    AllOf,
    AnyOf,
    Formula,
    PrivateAtom,
    PrivateFactor,
    columns_of,
    factor_values,
    holds,
    resolve_public,
)
from hubbub.query.plan import QueryPlan
from hubbub.query.sandbox import check_time
from hubbub.query.schema import TableSchema
from hubbub.query.strata import MOST_STRATA, GroupPart, PeopleStrata, Strata
from hubbub.query.sums import Form, Monomial
from hubbub.query.trees import exp

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_PARTS = 100_000
"""The greatest number of parts of all groups together (a stratum and a formula each)."""


@dataclass(frozen=True, eq=False)
class PeopleGroup:
    """A group: its keys in the order of GROUP BY, and its parts, each a stratum and a formula for its people."""

    keys: tuple[object, ...]
    parts: tuple[GroupPart, ...]


def groups_of(plan: QueryPlan, schema: TableSchema, strata: PeopleStrata) -> list[PeopleGroup]:
    """All groups that may have members.

    Public keys take the values that occur. Private keys take all values, as it is not known which ones occur.
    """
    shared: dict[tuple[object, ...], list[GroupPart]] = {}
    for place, stratum in enumerate(strata.strata):
        formula = resolve_public(plan.condition.formula, stratum.truths)
        parts = shared.setdefault(stratum.keys, [])
        if formula != NEVER:
            parts.append((place, PrivateFactor(formula)))
    if not plan.keys:
        return [PeopleGroup((), tuple(part for parts in shared.values() for part in parts))]
    private = plan.private_keys
    values = math.prod(len(key.values) for key in private)
    number = len(shared) * values
    if sum(map(len, shared.values())) * values > MOST_PARTS:
        raise QueryError(
            "there are too many combinations of groups and public conditions",
            "group by fewer columns, or ask fewer public conditions in OR with private ones",
        )
    if number > MOST_STRATA:
        raise QueryError(
            f"there are {number:,} groups", f"at most {MOST_STRATA:,} are answered: group by fewer columns"
        )
    groups = []
    for public, parts in shared.items():
        if not parts:
            continue
        for chosen in product(*(key.values for key in private)):
            check_time()
            atoms = [PrivateAtom(key.private or 0, runs) for key, (_, runs) in zip(private, chosen, strict=True)]
            if not possible(atoms):
                continue
            labels = {key: label for key, (label, _) in zip(private, chosen, strict=True)}
            narrowed = [(p, PrivateFactor(AllOf((f.formula, *atoms))) if atoms else f) for p, f in parts]
            left = iter(public)
            keys = tuple(next(left) if key.private is None else labels[key] for key in plan.keys)
            groups.append(PeopleGroup(keys, tuple(narrowed)))
    return groups


def comparable(plan: QueryPlan, schema: TableSchema, keys: Sequence[object]) -> tuple[object, ...]:
    """The keys of a group as HAVING and ORDER BY compare them: a cell of numbers counts as its middle."""
    values = []
    for key, value in zip(plan.keys, keys, strict=True):
        own = key.private is not None and isinstance(key.tree, exp.Column)
        domain = schema.private[key.private or 0].domain if own else None
        if isinstance(domain, Numeric) and value is not None:
            cell = (domain.labels or ()).index(value)
            value = float(domain.edges[cell] + domain.edges[cell + 1]) / 2
        values.append(value)
    return tuple(values)


def possible(atoms: Sequence[PrivateAtom]) -> bool:
    """Whether a person can meet all of some conditions: two may be of the same column."""
    left: dict[int, Runs] = {}
    for atom in atoms:
        left[atom.column] = both(left[atom.column], atom.runs) if atom.column in left else atom.runs
    return all(left.values())


def choose_groups(
    connection: DuckDBPyConnection, plan: QueryPlan, keys: Sequence[Sequence[object]], values: Sequence[Sequence[float]]
) -> list[int]:
    """The indices of the groups that are shown, in order. HAVING and ORDER BY compare the estimates."""
    if plan.having is None and not plan.order:
        shown = range(len(keys))[plan.offset :]
        return list(shown[: plan.limit] if plan.limit is not None else shown)
    import duckdb
    import pyarrow as pa

    check_time()
    columns: dict[str, pa.Array[Any]] = {"i": pa.array(range(len(keys)), type=pa.int64())}
    for place in range(len(plan.keys)):
        columns[f"k{place}"] = pa.array([key[place] for key in keys])
    for place in range(len(values[0]) if values else len(plan.outputs)):
        numbers = [None if math.isnan(value[place]) else value[place] for value in values]
        columns[f"v{place}"] = pa.array(numbers, type=pa.float64())
    where = f" WHERE {plan.having}" if plan.having else ""
    order = ", ".join((*plan.order, "i"))
    limit = f" LIMIT {plan.limit}" if plan.limit is not None else ""
    connection.register("groups", pa.table(columns))
    try:
        text = f"SELECT i FROM groups{where} ORDER BY {order}{limit} OFFSET {plan.offset}"  # noqa: S608
        return [int(row[0]) for row in connection.execute(text).fetchall()]
    except duckdb.Error as error:
        raise QueryError(f"HAVING or ORDER BY cannot be read: {str(error).splitlines()[0]}") from None
    finally:
        connection.unregister("groups")


MOST_CLASSES = 1 << 16
MOST_CORNERS = 64
AT_ONCE = 5
"""How many weights are added up by one query of the database."""
Corners = tuple[tuple[float, ...], ...]
"""Per kind of record that matters, what each public weight is multiplied with."""


def fewest_people(
    groups: Sequence[PeopleGroup],
    strata: Strata,
    forms: Sequence[Form],
    sizes: Sequence[int],
    weighed: Callable[[Sequence[Monomial]], Strata],
) -> list[float]:
    """For each group, the smallest number of people that a sum over it depends on.

    A person adds w(c) to a sum, c being the codes of their private columns. A sum to which people add at most a in
    absolute value depends on (sum a)^2 / sum a^2 people: their number if all can add the same, and about 1 if one can
    add more than all others together. People are counted by the largest |w(c)|, and once more by the difference of the
    largest and the least w(c): by how much their report decides; what is the same for all codes is known. A sum to
    which nobody can add does not count.

    `forms`: the sums, each of which is looked at by itself. `sizes`: the number of values of each private column.
    `weighed`: gives the same strata with the totals of some public weights.
    """

    @cache
    def corners(factors: tuple[tuple[float, int, PrivateFactor], ...], weights: int) -> Corners:
        return _corners(factors, weights, sizes)

    fewest = [float(sum(strata.strata[place].n for place in {place for place, _ in group.parts})) for group in groups]
    for form in forms:
        publics = sorted({weight.public for _, weight in form})
        found: list[list[tuple[int, Corners]]] = []
        for group in groups:
            check_time()
            own = []
            for part in group.parts:
                factors = strata.factors(part, [weight for _, weight in form])
                terms = zip(form, factors, strict=True)
                key = tuple((number, publics.index(weight.public), factor) for (number, weight), factor in terms)
                own.append((part[0], corners(key, len(publics))))
            found.append(own)
        every = sorted({these for own in found for _, these in own})
        magnitudes = {these: tuple(Monomial(text) for text in _magnitudes(these, publics)) for these in every}
        needed = sorted({weight for pair in magnitudes.values() for weight in pair})
        totals: list[dict[Monomial, float]] = [{} for _ in strata.strata]
        for start in range(0, len(needed), AT_ONCE):
            for known, stratum in zip(totals, weighed(needed[start : start + AT_ONCE]).strata, strict=True):
                known.update(stratum.totals)
        for place, own in enumerate(found):
            check_time()
            for kind in range(2):
                pairs = [(totals[spot], magnitudes[these][kind]) for spot, these in own]
                total = sum(sums[weight] for sums, weight in pairs)
                squares = sum(sums[weight * weight] for sums, weight in pairs)
                fewest[place] = min(fewest[place], total**2 / squares) if squares else fewest[place]
    return fewest


def _corners(factors: Sequence[tuple[float, int, PrivateFactor]], weights: int, sizes: Sequence[int]) -> Corners:
    """The different multiples of the public weights that records can have; of a single weight, the least and most."""
    used = sorted({c for _, _, f in factors for c in (*columns_of(f.formula), *(s.column for s in f.scores))})
    classes = [_classes(column, factors, sizes[column]) for column in used]
    count = int(np.prod([len(column) for column in classes])) if classes else 1
    if count > MOST_CLASSES:
        raise QueryError("the sum has too many kinds of records", "ask fewer private columns and conditions at a time")
    records = np.array(list(product(*classes)), dtype=np.int64).reshape(count, len(used))
    codes = {column: records[:, place] for place, column in enumerate(used)}
    multiples = np.zeros((count, weights))
    for number, weight, factor in factors:
        multiples[:, weight] += number * factor_values(factor, codes, count)
    multiples = np.unique(multiples, axis=0)
    if weights == 1:
        multiples = np.unique([multiples.min(axis=0), multiples.max(axis=0)], axis=0)
    if len(multiples) > MOST_CORNERS:
        raise QueryError("the sum has too many different numbers of records", "ask a sum for each public column")
    return tuple(tuple(row) for row in multiples.tolist())


def _classes(column: int, factors: Sequence[tuple[float, int, PrivateFactor]], size: int) -> list[int]:
    """A code of each kind: codes of a kind are in the same conditions, and have the same scores."""
    labels: list[Floats] = [np.zeros(size)]
    for _, _, factor in factors:
        labels += [np.asarray(score.values) for score in factor.scores if score.column == column]
        for atom in _atoms(factor.formula):
            if atom.column == column:
                labels.append(holds(atom, {column: np.arange(size)}, size).astype(np.float64))
    _, firsts = np.unique(np.array(labels), axis=1, return_index=True)
    return [int(first) for first in firsts]


def _atoms(formula: Formula) -> list[PrivateAtom]:
    if isinstance(formula, AllOf | AnyOf):
        return list(dict.fromkeys(atom for part in formula.parts for atom in _atoms(part)))
    return [formula] if isinstance(formula, PrivateAtom) else []


def _magnitudes(corners: Corners, publics: Sequence[Monomial]) -> tuple[str, str]:
    """What a person can add at most, and by how much their codes decide it, as SQL."""
    sums = [
        " + ".join(f"{n!r} * ({w.sql()})" for n, w in zip(row, publics, strict=True) if n) or "0.0" for row in corners
    ]
    if len(publics) == 1:
        known, numbers = publics[0].sql(), [row[0] for row in corners]
        return f"{max(map(abs, numbers))!r} * ABS({known})", f"{max(numbers) - min(numbers)!r} * ABS({known})"
    listed = ", ".join(sums)
    return f"GREATEST({', '.join(f'ABS({one})' for one in sums)})", f"GREATEST({listed}) - LEAST({listed})"
