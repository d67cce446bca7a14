"""Rules that bring a query to one form: each is a function that takes a tree and returns a tree.

A rule may also refuse a query. After all of them, names are those of the table, aliases are gone, NOT is only before
single conditions, a private column is left of what it is compared with, and the aggregates are COUNT, SUM,
VARIANCE, VAR_POP and QUANTILE_DISC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.rules.conditions import arrange_comparisons, fold_constants, push_negations, put_public_first
from hubbub.query.rules.names import (
    expand_aggregates,
    expand_aliases,
    name_results,
    resolve_columns,
    write_conditions_as_case,
    write_quantiles_as_calls,
)
from hubbub.query.rules.refusals import check_placement, check_statement, check_whitelist
from hubbub.query.rules.sources import merge_subqueries
from hubbub.query.sandbox import check_time
from hubbub.query.trees import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

__all__ = ["RULES", "merge_subqueries", "normalise"]

RULES = (
    merge_subqueries,
    check_statement,
    write_quantiles_as_calls,
    check_whitelist,
    expand_aliases,
    resolve_columns,
    name_results,
    write_conditions_as_case,
    fold_constants,
    push_negations,
    arrange_comparisons,
    check_placement,
    put_public_first,
    expand_aggregates,
)


def normalise(select: Tree, schema: TableSchema) -> Tree:
    """A query after all rules."""
    tree = select.copy()
    for rule in RULES:
        check_time()
        tree = rule(tree, schema)
    return tree
