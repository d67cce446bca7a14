"""Text pairs: a query, and what the rules make of it, what it is refused with, or which boxes its condition is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.query.boxes import boxes_of, disjoint
from hubbub.query.errors import QueryError
from hubbub.query.explain import box_text
from hubbub.query.plan import QueryPlan, parse, plan_query, sql
from hubbub.query.rules import RULES, normalise
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

FIXTURES = Path(__file__).parent / "fixtures"
PUBLIC = {"os": "VARCHAR", "price": "DOUBLE", "qty": "BIGINT", "pro": "BOOLEAN", "day": "DATE", 'odd "name"': "DOUBLE"}
SCHEMA = TableSchema(
    "people",
    (
        PrivateColumn("age", hb.Ordinal(100)),
        PrivateColumn("State", hb.Categorical(["CA", "NY", "O'Hara", "TX"])),
        PrivateColumn("salary", hb.Numeric(0, 200_000, cells=40)),
        PrivateColumn("kids", hb.Ordinal(10), missing=True),
    ),
    tuple(PublicColumn(name, kind) for name, kind in PUBLIC.items()),
)
NORMALISED = (
    "sources",
    "cases",
    "aliases",
    "columns",
    "aggregates",
    "comparisons",
    "constants",
    "negations",
    "public_first",
)
REFUSED = ("refused_statements", "refused_expressions", "refused_columns", "refused_values")


def pairs(name: str) -> Iterator[tuple[str, str]]:
    """A file's queries, which end with a semicolon, and what becomes of each; blank lines between, -- for comments."""
    text = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("--")]
        query, _, outcome = "\n".join(lines).partition(";\n")
        if outcome:
            yield query, outcome


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


def test_a_result_around_a_sub_query_may_have_the_name_of_another_column_inside() -> None:
    text = "SELECT p, SUM(q) AS price FROM (SELECT price AS p, qty AS q FROM people) GROUP BY p HAVING p > 3"
    form = 'SELECT "price" AS "p", SUM("qty") AS "price" FROM "people" GROUP BY "price" HAVING "price" > 3'
    assert sql(normalise(parse(text).select, SCHEMA)) == form


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
