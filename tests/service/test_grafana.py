"""The Grafana dashboard names metrics and labels that there are, and is laid out without overlap."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.collection import ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.store.base import ReleaseRow, StoreChanges
from hubbub.service.store.sqlite import SqliteStore
from hubbub.service.webhooks.config import Webhook
from tests.service.web import KEYS

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "docs" / "grafana" / "hubbub.json").read_text(encoding="utf-8"))
ALARM = '\n[alarms.dark]\nquestion = "popular"\nweights = { dark = 1 }\nabove = 0.5\n'


def labels_of_metrics() -> dict[str, set[str]]:
    """The labels of each metric of a collector that has everything: an answer, an alarm, a webhook."""
    from hubbub.authoring.toml import EXAMPLE

    store = SqliteStore(":memory:")
    alarms = {"themes": load_alarms(EXAMPLE + ALARM)}
    collection = load_collection(EXAMPLE)
    collector = Collector([collection], store, clock=ManualClock(7200.0), keys=KEYS, alarms=alarms)
    payload = '{"n": 9, "labels": ["a"], "value": [0.5], "variance": [0.01]}'
    store.commit(StoreChanges(releases=[ReleaseRow(collection.collection_id, "popular", 1, 0.0, payload, None)]))
    service = Service(collector, webhooks=[Webhook("pager", "http://127.0.0.1:9", (b"k" * 32,))])
    told: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics_text(service)):
        for sample in family.samples:
            told.setdefault(sample.name, set()).update(sample.labels)
    return told


def expressions(part: Any) -> list[str]:
    """Every query anywhere in the dashboard."""
    if isinstance(part, dict):
        own = [value for key, value in part.items() if key in ("expr", "definition") and isinstance(value, str)]
        return own + [expression for value in part.values() for expression in expressions(value)]
    return [expression for value in part for expression in expressions(value)] if isinstance(part, list) else []


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    return labels_of_metrics()


def test_every_metric_and_label_that_it_names_is_there(known: dict[str, set[str]]):
    queries = expressions(DASHBOARD)
    assert len(queries) > 20
    for query in queries:
        names = re.findall(r"\bhubbub_\w+", query)
        assert names, query
        for name in names:
            assert name in known, (name, query)
        for name, inside in re.findall(r"\b(hubbub_\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)\s*=", inside)) <= known[name], query
        for grouped in re.findall(r"by \(([^)]*)\)", query):
            assert {label.strip() for label in grouped.split(",")} <= known[names[0]], query


def test_a_metric_that_is_not_there_would_be_found(known: dict[str, set[str]]):
    assert "hubbub_estimates" not in known
    assert known["hubbub_estimate"] == {"collection", "question", "category"}


def test_what_legends_name_are_labels_too(known: dict[str, set[str]]):
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            labels = set().union(*(known[name] for name in re.findall(r"\bhubbub_\w+", target["expr"])))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels, target


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        own = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & own, panel["title"]
        cells |= own


def test_it_is_asked_where_prometheus_is():
    """A dashboard from a file has no data source by another name than its variable's."""
    text = json.dumps(DASHBOARD)
    assert set(re.findall(r'"uid": "(\$\{\w+\})"', text)) == {"${source}"}
    assert DASHBOARD["templating"]["list"][0]["type"] == "datasource"
