"""Generated queries sent to a collector whose table has reports of few people: each is answered, or refused by name."""

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from hubbub.service.kept.archive import Archive
from tests.query.generated import STATES, Generator
from tests.query.test_tiny_tables import LEVELS, MORE
from tests.service.test_table_sql import send_records
from tests.service.web import AUTHORIZED, site
from tests.shared.in_process import World

COLLECTION = load_collection(f"""
name = "tiny"
version = 1
title = "Few people"
schedule = {{ step = "1h", lateness = "10s", retention = "1d" }}
privacy = {{ event = 4.0, minimum_batch = 1 }}
fields.age = {{ kind = "ordinal", size = 24 }}
fields.state = {{ kind = "categorical", names = {json.dumps(STATES)} }}
fields.income = {{ kind = "numeric", low = 0.0, high = 10.0, cells = 5 }}
fields.price = {{ kind = "numeric", low = 0.0, high = 10.0, cells = 5 }}
fields.qty = {{ kind = "numeric", low = -2.0, high = 8.0, cells = 5 }}

[questions.people]
kind = "table"
columns = ["age", "state", "income"]
measures = ["price", "qty"]
epsilon = 4.0

[override]
sent_as_it_is = "prices are public"
minimum_batch_below_20 = "a test of few people"
""")
PEOPLE = {7: 11, 8: 2}
"""How many people report in each step."""


def filled(folder: Path) -> Collector:
    world, rng = World(COLLECTION, 0.0, archive=Archive(folder)), Random(seed=1)
    for step, people in PEOPLE.items():
        world.at(step * 3600.0)
        draw, places = np.random.default_rng(step), rng.uint32(people)
        values: dict[str, Any] = {"age": draw.integers(0, 24, people), "state": draw.integers(0, 4, people)}
        values |= {"income": draw.random(people) * 10, "qty": draw.integers(-2, 9, people).astype(float)}
        values["price"] = np.where(draw.random(people) < 0.1, np.nan, draw.random(people) * 10)
        send_records(world.collector, values, places, rng)
        world.at((step + 1) * 3600.0 + 11)
    return world.collector


def statuses(folder: Path, seed: int, queries: int) -> Counter[int]:
    """How often each status was answered. The table has no column os or pro: others take their place."""
    draw, generator = random.Random(seed), Generator(seed, more=MORE)
    collector, answers = filled(folder), Counter[int]()
    with site(service := Service(collector)) as client:
        service.tables.seconds = 600.0  # on a busy machine 30 may be too few
        for _ in range(queries):
            text = re.sub(r"\bpro\b", "(qty > 3)", re.sub(r"\bos\b", "state", generator.query()[0]))
            body = {"sql": text, "level": draw.choice(LEVELS), "explain": draw.random() < 0.2}
            body |= draw.choice([{}, {"from": 7}, {"from": 7, "to": 7}])
            path = "/v1/collections/tiny/questions/people/sql"
            response = client.post(path, content=json.dumps(body), headers=AUTHORIZED)
            assert response.status_code in (200, 400, 409, 422), (body, response.text)
            answers[response.status_code] += 1
    collector.store.close()
    return answers


def test_generated_queries_are_answered_or_refused_by_a_collector(tmp_path: Path) -> None:
    assert statuses(tmp_path / "reports", 1, 20)[200] > 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_a_thousand_generated_queries_are_answered_or_refused_by_a_collector(seed: int, tmp_path: Path) -> None:
    assert statuses(tmp_path / "reports", seed, 200)[200] > 100
