"""EXPLAIN: how a query is answered, and what error that is expected to leave."""

import math
from collections.abc import Sequence
from typing import Any

from hubbub.core.domain import Categorical, Numeric
from hubbub.query.boxes import Box, boxes_of, disjoint
from hubbub.query.formula import PrivateFactor
from hubbub.query.groups import PeopleGroup
from hubbub.query.outputs import Output
from hubbub.query.plan import QueryPlan
from hubbub.query.route import AnyOutput, MethodRoute, interval_of
from hubbub.query.schema import PrivateColumn, PrivateTable, TableSchema
from hubbub.query.strata import Strata, SumsMethod
from hubbub.query.sums import EVERYBODY
from hubbub.query.trees import exp

MOST_SHOWN = 4
"""The greatest number of groups, and of formulas, that the plan shows."""


def explain_plan(
    plan: QueryPlan,
    table: PrivateTable,
    route: MethodRoute,
    groups: Sequence[PeopleGroup],
    outputs: Sequence[AnyOutput],
    bundles: Sequence[Strata],
    level: float,
) -> str:
    """The plan in words: mechanism, public part, boxes, levels and cells, and the standard errors to be expected."""
    schema, strata, method = table.schema, bundles[0], route.method
    lines = [f"{_methods(schema)}, epsilon {schema.epsilon:g}: {table.n:,} people, {_columns(schema)}"]
    lines += [route.words()] if route.others else []
    public = " AND ".join(part.sql("duckdb") for part in plan.condition.public)
    people = sum(stratum.n for stratum in strata.strata)
    lines.append(f"public: {public or 'no condition'}: {people:,} people, looked up exactly")
    if plan.condition.atoms:
        lines += [f"  with {' / '.join(atom.sql('duckdb') for atom in plan.condition.atoms)} told apart"]
    if plan.keys:
        lines.append(f"groups: {len(groups):,}, by {', '.join(key.sql for key in plan.keys)}")
    described: dict[PrivateFactor, None] = {}
    weights = list(dict.fromkeys([EVERYBODY, *(weight for bundle in bundles for weight in bundle.weights)]))
    for part in (part for group in groups for part in group.parts):
        for factor in strata.factors(part, weights):
            if factor in described or len(described) >= MOST_SHOWN:
                continue
            described[factor] = None
            lines.append(f"private: {_factor_text(factor, schema)}")
            lines += [f"  {line}" for line in method.describe(strata, (part[0], factor))]
    lines.append("expected standard errors, as if people were spread evenly over all values:")
    for group in groups[:MOST_SHOWN]:
        errors = []
        for output in outputs:
            if isinstance(output, Output):
                own = next(bundle for bundle in bundles if set(output.weights) <= set(bundle.weights))
                parts = method.predict(own, group.parts)
                interval = interval_of(method, output, own, group, parts, level)
                most = _at_most(method, output, own, group)
                errors.append(f"{output.tree.sql('duckdb')}: {interval.stderr:,.4g}{most}")
        if errors:
            name = ", ".join("NULL" if key is None else str(key) for key in group.keys)
            lines.append(f"  {f'{name}: ' if name else ''}{'; '.join(errors)}")
    if len(groups) > MOST_SHOWN:
        lines.append(f"  and {len(groups) - MOST_SHOWN:,} more groups")
    return "\n".join(lines)


def _at_most(method: SumsMethod[Any], output: Output, strata: Strata, group: PeopleGroup) -> str:
    """The bound of a count's or a sum's standard error, however people are spread; empty where there is none.

    What CASE makes of several sums has at most the sum of their standard errors.
    """
    if not isinstance(output.tree, exp.Sum | exp.Count):
        return ""
    most, name = 0.0, ""
    for factor, weight in output.forms[0]:
        variance = 0.0
        for part in group.parts:
            (own,) = strata.factors(part, [weight])
            bound = method.bound(strata, (part[0], own))
            if bound is None:
                return ""
            name, square = bound[0], weight.public * weight.public
            variance += bound[1] * strata.strata[part[0]].totals[square]
        most += abs(factor) * math.sqrt(variance)
    return f", at most {most:,.4g} ({name})" if most else ""


def _methods(schema: TableSchema) -> str:
    if len(schema.methods) == 1:
        return schema.methods[0]
    return " and ".join(f"{method} ({share:.3g})" for method, share in zip(schema.methods, schema.shares, strict=True))


def _factor_text(factor: PrivateFactor, schema: TableSchema) -> str:
    boxes = disjoint(boxes_of(factor.formula, [column.size for column in schema.private]))
    people = " or ".join(box_text(box, schema) for box in boxes[:6]) or "nobody"
    scores = " times ".join(score.name for score in factor.scores)
    return f"{scores} of {people}" if scores else people


def _columns(schema: TableSchema) -> str:
    return ", ".join(f"{column.name} ({column.domain.describe()})" for column in schema.private)


def box_text(box: Box, schema: TableSchema) -> str:
    """A box in the words of the table."""
    parts = []
    for runs, column in zip(box, schema.private, strict=True):
        if runs == ((0, column.size - 1),):
            continue
        pieces = [_piece(low, high, column) for low, high in runs[:5]] + (["..."] if len(runs) > 5 else [])
        parts.append(f"{column.name} {', '.join(pieces)}")
    return " and ".join(parts) or "everybody"


def _piece(low: int, high: int, column: PrivateColumn) -> str:
    """A run of codes in words; missing, which is the last, for itself."""
    if high >= column.values:
        return "NULL" if low >= column.values else f"{_piece(low, column.values - 1, column)}, NULL"
    domain = column.domain
    if isinstance(domain, Numeric):
        return f"{domain.edges[low]:g} to {domain.edges[high + 1]:g}"
    if isinstance(domain, Categorical):
        return ", ".join(domain.names[low : min(high, low + 5) + 1]) + (", ..." if high > low + 5 else "")
    return str(low) if low == high else f"{low} to {high}"
