"""Tables of 0 to 30 people, with levels, strata and groups of nobody: every query is answered or refused."""

import json
import random

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.query.engine import QueryEngine
from tests.query.generated import Generator, world
from tests.query.tables import table_of

WAYS = [("HIO", None), ("HIO", False), ("HI", None), ("HI", False), ("MG", None), ("SC", None), ("HDG", None)]
LEVELS = [0.95] * 6 + [0.5, 1e-9, 1 - 1e-12, 1 - 2**-53]
MORE = ["VARIANCE(qty)", "STDDEV_POP(price)", "MEDIAN(price)", "COUNT(os)", "AVG(price) / AVG(qty)", "SUM(0)"]


def ask_tiny_tables(seed: int, tables: int, queries: int) -> tuple[int, int]:
    """Ask generated queries of tables of few people; returns how many were answered and how many refused."""
    draw = random.Random(seed)
    answered = refused = 0
    for number in range(tables):
        method, consistent = WAYS[number % len(WAYS)]
        generator = Generator(draw.randrange(1 << 30), more=MORE)
        n, epsilon = draw.choice([0, 1, 2, 3, draw.randint(4, 30)]), draw.choice([0.5, 3.0, 9.0])
        table = world.__wrapped__(method, consistent, n, epsilon, draw.randrange(1 << 30)).engine.table
        engine = QueryEngine(table, consistent=consistent, minimum_people=draw.choice([0, 0, 1, 5]))
        for _ in range(queries):
            text = draw.choice(["", "", "", "EXPLAIN "]) + generator.query()[0]
            try:
                answer = engine.sql(text, level=draw.choice(LEVELS), explain=draw.random() < 0.2)
                json.dumps(answer.to_json(), allow_nan=False)
                assert str(answer) or not answer.columns
                assert not answer.columns or answer.to_arrow().num_rows == len(answer.rows)
            except HubbubError:
                refused += 1
            except Exception as error:
                error.add_note(f"{method}, consistent {consistent}, {n} people: {text}")
                raise
            else:
                answered += 1
    return answered, refused


def test_queries_over_tiny_and_empty_groups_are_answered_or_refused() -> None:
    answered, refused = ask_tiny_tables(1, 14, 8)
    assert answered > 2 * refused


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_queries_over_tiny_and_empty_groups_are_answered_or_refused(seed: int) -> None:
    """1,000 queries with each of ten seeds."""
    answered, refused = ask_tiny_tables(100 + seed, 50, 20)
    assert answered + refused == 1000
    assert answered > refused  # tables of few people are refused where a minimum of people is asked for


@pytest.mark.parametrize("people", [3, 12])
def test_a_level_on_which_nobody_of_a_public_condition_reports_does_not_break_a_count(people: int) -> None:
    private = {"age": hb.Ordinal(24), "town": hb.Categorical(["Bath", "Ely", "Rye"])}
    codes, systems = [np.arange(400) % 24, np.arange(400) % 3], ["lin"] * people + ["web"] * (400 - people)
    for seed in range(5):
        table = table_of(private, codes, {"os": systems}, seed=seed, epsilon=3.0)
        count = QueryEngine(table).sql("SELECT COUNT(*) FROM people WHERE age < 4 AND os = 'lin'").value()
        assert count.low < count.high


@pytest.mark.parametrize("level", [1 - 2**-53, 1e-320, 0.0, 1.0, float("nan"), True])
def test_a_level_whose_interval_no_float_can_have_is_refused(level: float) -> None:
    with pytest.raises(InvalidValue, match="level"):
        world("MG").engine.sql("SELECT COUNT(*), STDDEV(qty), MEDIAN(qty) FROM people WHERE age < 9", level=level)
