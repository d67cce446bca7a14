"""Text pairs: a query, and what the rules make of it, what it is refused with, or which boxes its condition is."""

from __future__ import annotations

import pytest

from hubbub.query.boxes import boxes_of, disjoint
from hubbub.query.errors import QueryError
from hubbub.query.explain import box_text
from hubbub.query.plan import QueryPlan, parse, plan_query, sql
from hubbub.query.rules import RULES, normalise
from tests.query.pairs import FIXTURES, SCHEMA, pairs

NORMALISED = ("aliases", "columns", "aggregates", "comparisons", "constants", "negations", "public_first")
REFUSED = ("refused_statements", "refused_expressions", "refused_columns", "refused_values")


def planned(query: str) -> QueryPlan:
    return plan_query(normalise(parse(query).select, SCHEMA), SCHEMA)


@pytest.mark.parametrize("name", NORMALISED)
def test_rules_bring_queries_to_one_form(name: str) -> None:
    for query, form in pairs(name):
        assert sql(normalise(parse(query).select, SCHEMA)) == form, query
        assert planned(query).columns


@pytest.mark.parametrize("name", NORMALISED)
def test_a_query_in_its_form_stays_as_it_is(name: str) -> None:
    for _, form in pairs(name):
        assert sql(normalise(parse(form).select, SCHEMA)) == form


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_says_where_and_why(name: str) -> None:
    for query, message in pairs(name):
        with pytest.raises(QueryError) as error:
            planned(query)
        assert str(error.value.located(query)) == message, query


def test_conditions_become_disjoint_boxes() -> None:
    sizes = [column.size for column in SCHEMA.private]
    for condition, boxes in pairs("boxes"):
        formula = planned(f"SELECT COUNT(*) FROM people WHERE {condition}").condition.formula
        texts = [box_text(box, SCHEMA) for box in disjoint(boxes_of(formula, sizes))]
        assert "\n".join(texts or ["nobody"]) == boxes, condition


def test_there_are_pairs_enough_and_each_rule_has_some() -> None:
    every = [pair for path in FIXTURES.glob("*.txt") for pair in pairs(path.stem)]
    assert len(every) >= 200
    changed = set()
    for query, _ in (pair for name in NORMALISED for pair in pairs(name)):
        tree = parse(query).select
        for rule in RULES:
            before = sql(tree)
            tree = rule(tree, SCHEMA)
            if sql(tree) != before:
                changed.add(rule)
    checks = {rule for rule in RULES if rule.__name__.startswith("check_")}
    assert changed | checks == set(RULES)
