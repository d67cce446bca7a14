"""Table questions of other methods than HIO, of several, and of one private column: devices answer, SQL asks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hubbub.authoring import check, load_collection, promise
from hubbub.service.http.service import Service
from hubbub.service.kept.archive import Archive
from tests.service.test_table_sql import HOUR, Tables, fill, holds, records
from tests.service.web import site
from tests.shared.in_process import World
from tests.shared.small_collections import collection_text

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

TABLE = {"kind": "table", "columns": ["age", "state"], "epsilon": 8.0, "people": 12_000}
METHODS = ("HI", "MG", "SC", "HDG")
TEXT = collection_text(
    "people",
    "People",
    schedule={"step": "1h", "lateness": "10s", "retention": "1d"},
    privacy={"event": 60.0, "minimum_batch": 20},
    fields={
        "age": {"kind": "ordinal", "size": 60},
        "state": {"kind": "categorical", "names": ["north", "south", "west"]},
        "spent": {"kind": "numeric", "low": 0.0, "high": 50.0, "cells": 5},
    },
    questions={
        "people": {**TABLE, "method": ["HIO", "SC", "HDG"], "shares": [0.5, 0.3, 0.2], "measures": ["spent"]},
        "single": {"kind": "table", "columns": ["age"], "measures": ["spent"], "epsilon": 4.0, "fanout": 4},
        **{name.lower(): {**TABLE, "method": name} for name in METHODS},
    },
    override={"sent_as_it_is": "the shop knows what is paid", "epsilon_above_8": "it is a test"},
)
PEOPLE = load_collection(TEXT)
N, STEP = 12_000, 8


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    world = World(PEOPLE, STEP * HOUR, archive=Archive(tmp_path_factory.mktemp("table") / "reports"))
    fill(world.collector, STEP)
    world.at((STEP + 1) * HOUR + 11)
    service = Service(world.collector)
    with site(service, pages=True, private=True) as client:
        yield Tables(client, service)


@pytest.mark.parametrize("question", ["people", *map(str.lower, METHODS)])
def test_counts_are_near_the_truth(api: Tables, question: str) -> None:
    values = records(STEP)
    conditions = {
        "age BETWEEN 20 AND 39": (values["age"] >= 20) & (values["age"] <= 39),
        "age >= 30 AND state = 'south'": (values["age"] >= 30) & (values["state"] == 1),
        "state IS NULL": values["state"] == 3,
    }
    for condition, inside in conditions.items():
        answer = api.sql(f"SELECT COUNT(*) AS n FROM {question} WHERE {condition}", question, level=0.9999)
        assert answer["n"] == N
        ((cell,),) = answer["rows"]
        assert holds(cell, int(inside.sum())), (condition, cell, int(inside.sum()))
        assert cell["high"] - cell["low"] < 0.9 * N  # it says something


def test_a_query_is_routed_and_says_so(api: Tables) -> None:
    answer = api.sql("SELECT SUM(spent) AS s FROM people WHERE state = 'south'", explain=True, level=0.9999)
    assert answer["explain"].startswith("HIO (0.5) and SC (0.3) and HDG (0.2), epsilon 8: 12,000 people")
    assert "answered by " in answer["explain"]
    assert answer["notes"][0].startswith("answered by ")
    values = records(STEP)
    assert holds(answer["rows"][0][0], float(np.nansum(values["spent"][values["state"] == 1])))


def test_one_private_column_with_a_measure(api: Tables) -> None:
    values = records(STEP)
    inside = (values["age"] >= 20) & (values["age"] <= 33)
    query = "SELECT SUM(spent) AS s, COUNT(*) AS n FROM single WHERE age BETWEEN 20 AND 33"
    answer = api.sql(query, "single", level=0.9999, explain=True)
    total, count = answer["rows"][0]
    assert holds(total, float(np.nansum(values["spent"][inside])))
    assert holds(count, int(inside.sum()))
    assert "(7.14)" in answer["explain"]


@pytest.mark.parametrize("question", ["people", "single", *map(str.lower, METHODS)])
def test_a_release_has_the_shares_of_every_column(api: Tables, question: str) -> None:
    path = f"/v1/collections/people/questions/{question}/releases/latest?level=0.9999"
    answer = api.get(path).json()
    values = records(STEP)
    estimates: dict[str, Any] = {"age": answer["estimates"]["estimate"], **answer["estimates"]}
    for name in PEOPLE.questions[question].reads()[: len(answer["estimates"])]:
        shares = estimates[name]
        assert len(shares["labels"]) > 1
        if name == "state":
            assert shares["labels"] == ["north", "south", "west", "(none)"]
            for place, (low, high) in enumerate(zip(shares["low"], shares["high"], strict=True)):
                assert low <= float(np.mean(values["state"] == place)) <= high
            continue
        for label, low, high in zip(shares["labels"], shares["low"], shares["high"], strict=True):
            ends = label.removesuffix(" or (none)").split(" to ")
            if label != "(none)":
                inside = (values["age"] >= int(ends[0])) & (values["age"] <= int(ends[-1]))
                assert low <= float(inside.mean()) <= high


def test_promises_and_findings_name_what_a_device_does() -> None:
    words, findings = promise(PEOPLE), [str(finding) for finding in check(PEOPLE)]
    assert "It covers age and state, each for itself and several times" in words
    assert "The device's group decides which of these it is." in words
    assert any("0.5 by HIO, 0.3 by SC and 0.2 by HDG" in finding for finding in findings)
    assert any("the grids of HDG are made for 12,000 devices" in finding for finding in findings)


def test_the_page_shows_the_box_for_every_method(api: Tables) -> None:
    for question in ("people", "single", "sc"):
        page = api.get(f"/results/people/{question}")
        assert page.status_code == 200
        assert "SELECT" in page.text


def test_arcs_are_as_the_shares() -> None:
    """HIO has the 7 levels of 4 by 2 but the coarsest, SC one bundle, HDG the grids of 2 columns and of their pair."""
    asks: Any = next(PEOPLE.protocol("people"))
    shares = [ask.cohort.share for ask in asks]
    assert len(shares) == 7 + 1 + 3 == PEOPLE.terms["people"].parts
    assert (sum(shares[:7]), shares[7], sum(shares[8:])) == pytest.approx((0.5, 0.3, 0.2))
