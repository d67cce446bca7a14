"""Random queries over one table, and the same table as DuckDB has it: for comparing answers without noise."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np

import hubbub as hb
from hubbub.query.engine import QueryEngine
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

N = 400
STATES = ("ab", "cd", "it's", "ef")
SYSTEMS = ("ios", "android", "web", None)
PRIVATE = {"age": "BIGINT", "state": "VARCHAR", "income": "DOUBLE"}
PUBLIC = {"os": "VARCHAR", "price": "DOUBLE", "qty": "BIGINT", "pro": "BOOLEAN"}
EPSILON = 1000.0
"""So large that no report is flipped: each of HI's 23 levels has a part of it."""


@dataclass(frozen=True, eq=False)
class World:
    """A table by report, and the truth."""

    engine: QueryEngine
    truth: duckdb.DuckDBPyConnection


@cache
def world(
    method: str = "HI", consistent: bool | None = None, n: int = N, epsilon: float = EPSILON, seed: int = 7
) -> World:
    """People with an age that may be missing, a state and an income in cells; systems, prices and days are public."""
    generator = np.random.default_rng(seed)
    ages: list[int | None] = [None if x < 0.05 else int(x * 24) for x in generator.random(n)]
    states = [STATES[k] for k in generator.integers(0, 4, n)]
    incomes = generator.integers(0, 40, n) / 4.0
    public: dict[str, Any] = {
        "os": [SYSTEMS[k] for k in generator.integers(0, 4, n)],
        "price": [None if x < 0.04 else float(round(x * 40) / 4) for x in generator.random(n)],
        "qty": generator.integers(-2, 9, n).tolist(),
        "pro": (generator.random(n) < 0.3).tolist(),
    }
    private = (
        PrivateColumn("age", hb.Ordinal(24), missing=True),
        PrivateColumn("state", hb.Categorical(STATES)),
        PrivateColumn("income", hb.Numeric(0, 10, cells=5)),
    )
    columns = tuple(PublicColumn(name, kind) for name, kind in PUBLIC.items())
    expected = max(n, 1) if method == "HDG" else None
    schema = TableSchema("people", private, columns, methods=(method,), epsilon=epsilon, expected=expected)
    given: tuple[Any, ...] = (ages, states, incomes)
    records = np.stack([column.encode(values) for column, values in zip(private, given, strict=True)], axis=1)
    table = MemoryTable(schema, schema.randomize(records, hb.Random(seed=1)), public)
    truth = duckdb.connect()
    case = "CASE WHEN x < a THEN 0 WHEN x >= b THEN n + 1 ELSE CAST(FLOOR((x - a) * n / (b - a)) AS BIGINT) + 1 END"
    truth.execute(f"CREATE MACRO width_bucket(x, a, b, n) AS {case}")
    declared = ", ".join(f"{name} {kind}" for name, kind in {**PRIVATE, **PUBLIC}.items())
    truth.execute(f"CREATE TABLE people ({declared})")
    rows = list(zip(ages, states, incomes.tolist(), *public.values(), strict=True))
    if rows:
        truth.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return World(QueryEngine(table, consistent=consistent), truth)


class Generator:
    """Draws queries. With `more` aggregates, groups of nobody are not left out by HAVING either."""

    def __init__(self, seed: int, more: Sequence[str] = ()) -> None:
        self._random = random.Random(seed)
        self._more = more

    def query(self) -> tuple[str, int]:
        """A query, and how many of its results are keys; the others are aggregates."""
        draw = self._random
        keys = draw.sample(KEYS, draw.choice([0, 0, 0, 1, 1, 2]))
        aggregates = [self.aggregate() for _ in range(draw.choice([1, 1, 2, 3]))]
        results = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        results += [f"{aggregate} AS a{place}" for place, aggregate in enumerate(aggregates)]
        text = f"SELECT {', '.join(results)} FROM {self.source()}"
        if draw.random() < 0.9:
            text += f" WHERE {self.condition(draw.choice([1, 2, 2, 3]))}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
            # groups of nobody are there in one answer and not in the other
            if not self._more:
                text += f" HAVING COUNT(*) > {draw.choice([0, 0, 3])}.5"
            if draw.random() < 0.3:
                text += f" {'HAVING' if self._more else 'AND'} SUM(qty) > {draw.randint(-3, 20)}.5"
            if draw.random() < 0.5:
                ways = [f"{key} {draw.choice(('ASC', 'DESC'))}" for key in keys]
                if draw.random() < 0.3:
                    ways = ["ROUND(COUNT(*)) DESC", *ways]
                text += f" ORDER BY {', '.join(ways)}"
                if draw.random() < 0.5:
                    text += f" LIMIT {draw.randint(1, 5)} OFFSET {draw.randint(0, 2)}"
        return text, len(keys)

    def source(self) -> str:
        """The table, a sub-query of it, or a join with public rows."""
        draw = self._random
        if self._more or draw.random() < 0.7:
            return "people"
        if draw.random() < 0.5:
            kind = draw.choice(["JOIN", "LEFT JOIN"])
            return f"people {kind} (VALUES ('ios', TRUE), ('web', FALSE)) AS v(system, own) ON people.os = v.system"
        columns = draw.choice(["*", "age, state, income, os, price + 0.25 AS price, qty * 2 AS qty, pro"])
        return f"(SELECT {columns} FROM people WHERE {self.condition(1)}) AS t"

    def aggregate(self) -> str:
        """An aggregate of public or private columns, perhaps under a condition of its own."""
        draw = self._random
        if self._more or draw.random() < 0.5:
            return str(draw.choice([*AGGREGATES, *self._more]))
        aggregate = str(draw.choice([*AGGREGATES[:2], *PRIVATE_AGGREGATES]))
        if " / " in aggregate or " - " in aggregate or draw.random() < 0.5:
            return aggregate.format(self.condition(1), self.condition(1))
        return f"{aggregate.format(self.condition(1), self.condition(1))} FILTER (WHERE {self.condition(1)})"

    def condition(self, depth: int) -> str:
        draw = self._random
        if depth == 0 or draw.random() < 0.2:
            return self.atom()
        kind = draw.choice(["AND", "AND", "OR", "OR", "NOT"])
        if kind == "NOT":
            return f"NOT ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)} {kind} {self.condition(depth - 1)})"

    def atom(self) -> str:
        draw = self._random
        sign = draw.choice(["=", "<>", "<", "<=", ">", ">="])
        low = draw.randint(-2, 25)
        text = str(draw.choice(STATES)).replace("'", "''")
        return draw.choice(
            [
                f"age {sign} {low}",
                f"{low} {sign} age",
                f"age BETWEEN {low} AND {low + draw.randint(-1, 9)}",
                f"age IN ({low}, {draw.randint(0, 23)}, {draw.randint(0, 23)})",
                f"age IS {draw.choice(['', 'NOT '])}NULL",
                f"state {draw.choice(['=', '<>'])} '{text}'",
                f"state {draw.choice(['', 'NOT '])}IN ('{text}', 'ab')",
                f"income {draw.choice(['<', '>='])} {draw.choice([0, 2, 4, 6, 8])}",
                f"os {draw.choice(['=', '<>'])} '{draw.choice(['ios', 'web'])}'",
                f"price {sign} {draw.randint(0, 10)}",
                f"qty {sign} {draw.randint(-2, 8)}",
                "pro",
                f"price * qty > {draw.randint(-5, 30)}",
                f"os IS {draw.choice(['', 'NOT '])}NULL",
            ]
        )


BUCKET = "WIDTH_BUCKET(age, 3, 18, 5)"
KEYS = ["os", "pro", "state", "age", "qty % 3", "age // 7", BUCKET, "WIDTH_BUCKET(income, 0, 8, 4)", "UPPER(state)"]
KEYS += ["CASE WHEN age < 12 THEN 'young' WHEN age >= 12 THEN 'old' END"]
PRIVATE_AGGREGATES = ["AVG(age)", "SUM(age)", "COUNT(age)", "COUNT(state)", "STDDEV(age)", "VAR_POP(2 * age - 3)"]
PRIVATE_AGGREGATES += ["QUANTILE_DISC(age, 0.5)", "QUANTILE_DISC(age, 0.8)", "SUM(age * qty)", "AVG(age * (price + 1))"]
PRIVATE_AGGREGATES += ["SUM(CASE WHEN {} THEN price WHEN {} THEN qty * age ELSE -1 END)", "COUNT_IF({})"]
PRIVATE_AGGREGATES += ["AVG(CASE WHEN {} THEN 1 ELSE 0 END)", "STDDEV(CASE WHEN {} THEN age + qty END)"]
PRIVATE_AGGREGATES += [
    "QUANTILE_DISC(CASE WHEN {} THEN price END, 0.5)",
    "SUM(age) / COUNT(*)",
    "SUM(price - age) - 2 * SUM(age)",
]
PRIVATE_AGGREGATES += [
    "VARIANCE(CASE WHEN {} THEN age * age / 4 ELSE qty END)",
    "COUNT(CASE state WHEN 'ab' THEN os END)",
]
AGGREGATES = ["COUNT(*)", "COUNT(price)", "SUM(price)", "SUM(qty)", "SUM(price * qty)", "AVG(price)", "AVG(qty + 1)"]
AGGREGATES += [
    "STDDEV(qty)",
    "STDDEV(price)",
    "VAR_POP(price)",
    "QUANTILE_DISC(qty, 0.5)",
    "QUANTILE_DISC(price, 0.25)",
]
AGGREGATES += [
    "SUM(qty) / COUNT(*)",
    "SUM(COALESCE(price, 0)) - 2 * SUM(qty)",
    "SUM(CASE WHEN pro THEN qty ELSE 0 END)",
]
