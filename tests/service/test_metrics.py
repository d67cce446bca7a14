"""What /metrics tells: the names it always had, and the newest estimates, as a Prometheus would read them."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hubbub.authoring.toml import EXAMPLE, load_alarms, load_collection
from hubbub.collection import ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import MOST_CATEGORIES, metrics_text
from hubbub.service.http.service import Service
from hubbub.service.store.base import ReleaseRow, StoreChanges
from hubbub.service.webhooks.config import Webhook
from tests.service.web import AUTHORIZED, Web, website
from tests.shared.in_process import collection_of, start_collector
from tests.shared.releases import stored_payload
from tests.shared.small_collections import collection_text

ALWAYS = {
    *("hubbub_reports_total", "hubbub_deleted_total", "hubbub_commits_total", "hubbub_commit_seconds_total"),
    *("hubbub_waiting_reports", "hubbub_open_asks", "hubbub_held_ids", "hubbub_id_memory_bytes", "hubbub_shed_total"),
    *("hubbub_connections", "hubbub_closed_total", "hubbub_unfinished_bytes", "hubbub_senders"),
    *("hubbub_missing_files", "hubbub_listeners", "hubbub_clock_in_doubt", "hubbub_clock_ahead_seconds"),
    "hubbub_ready",
}
"""What dashboards and alerts out there may name."""

Samples = dict[tuple[str, ...], float]


def samples(service: Service) -> Samples:
    """The value of each sample, by its name and the values of its labels, sorted by label; no sample is there twice."""
    values: Samples = {}
    for family in text_string_to_metric_families(metrics_text(service)):
        for sample in family.samples:
            key = (sample.name, *(sample.labels[label] for label in sorted(sample.labels)))
            assert key not in values
            values[key] = sample.value
    return values


@pytest.fixture
def web() -> Iterator[Web]:
    with website() as made:
        yield made


def test_the_names_are_those_that_there_always_were(web: Web):
    assert {name for name, *_ in samples(web.service)} >= ALWAYS


def test_the_newest_estimate_is_what_the_api_says(web: Web):
    names = [name for name, *_ in samples(web.service)]  # what the version before released is withheld
    assert not {"hubbub_estimate", "hubbub_estimate_low", "hubbub_estimate_high"}.intersection(names)
    web.fill()
    path = "/v1/collections/themes/questions/popular/releases/latest"
    latest = web.client.get(path, headers=AUTHORIZED).json()
    metrics = samples(web.service)
    for place, category in enumerate(latest["labels"]):
        for name, field in (("estimate", "value"), ("estimate_low", "low"), ("estimate_high", "high")):
            assert metrics[f"hubbub_{name}", category, "themes", "popular"] == latest[field][place]
    assert metrics["hubbub_estimate_reports", "themes", "popular"] == 40
    assert metrics["hubbub_estimate_categories", "themes", "popular"] == 3
    assert metrics["hubbub_release_age_seconds", "themes", "popular"] == 0.0
    web.clock.set(1150.0)
    assert samples(web.service)["hubbub_release_age_seconds", "themes", "popular"] == 40.0


def test_what_is_withheld_has_no_numbers(web: Web):
    web.fill()
    metrics = samples(web.service)
    assert metrics["hubbub_estimate_reports", "themes", "old"] == 0
    assert ("hubbub_release_age_seconds", "themes", "old") in metrics
    assert not any(key[0] == "hubbub_estimate" and key[3] == "old" for key in metrics)


HOSTILE = 'a "quoted" one\\ with\nlines'


def stored(payload: str, step: int = 9, *, names: Sequence[str] = ("a", "b"), **question: Any) -> Service:
    """A service whose one question has a release with this payload."""
    which, word = {"kind": "categorical", "names": [*names]}, {"kind": "strings", "longest": 8}
    popular: dict[str, Any] = {"kind": "histogram", "field": "which", "epsilon": 1.0, **question}
    text = collection_text(
        "many",
        "Which?",
        schedule={"step": "100s", "lateness": "10s"},
        privacy={"event": 2.0},
        fields={"which": which, "word": word},
        questions={"popular": popular},
    )
    return with_release(start_collector(load_collection(text), ManualClock(1000.0)), step, payload)


def with_release(collector: Collector, step: int, payload: str, **options: Any) -> Service:
    place = collection_of(collector).collection_id
    row = ReleaseRow(place, "popular", step, 1000.0, stored_payload(payload), None)
    collector.store.commit(StoreChanges(releases=[row]))
    return Service(collector, **options)


def test_what_is_not_known_has_no_sample():
    payload = '{"n": 9, "labels": ["a", "b"], "value": [0.5, null], "variance": [null, null]}'
    metrics = samples(stored(payload))
    assert {key: value for key, value in metrics.items() if key[0].startswith("hubbub_estimate")} == {
        ("hubbub_estimate", "a", "many", "popular"): 0.5,
        ("hubbub_estimate_reports", "many", "popular"): 9,
        ("hubbub_estimate_categories", "many", "popular"): 2,
    }


def test_a_question_has_no_more_series_than_said():
    numbers = [0.001] * 500
    payload = f'{{"n": 9, "labels": null, "value": {numbers}, "variance": {numbers}}}'
    metrics = samples(stored(payload, names=[f"c{code}" for code in range(500)]))
    for name in ("hubbub_estimate", "hubbub_estimate_low", "hubbub_estimate_high"):
        shown = [key[1] for key in metrics if key[0] == name]
        assert shown == [str(code) for code in range(MOST_CATEGORIES)]
    assert metrics["hubbub_estimate_categories", "many", "popular"] == 500


FOUND: dict[str, Any] = {"kind": "top", "field": "word", "epsilon": 2.0, "k": 2}
SCHEDULE = {"start": "1970-01-01T00:00Z", "round": "1d"}


def test_words_that_were_found_are_no_labels():
    """Whoever reads the port sees ranks: what people typed is for holders of a token."""
    payload = '{"n": 900, "labels": ["maybe", "never"], "value": [0.5, 0.1], "variance": [0.0, 0.0]}'
    service = stored(payload, step=0, **FOUND, **SCHEDULE)
    assert {key[1] for key in samples(service) if key[0] == "hubbub_estimate"} == {"1", "2"}
    assert "maybe" not in metrics_text(service)


def test_a_name_of_any_kind_is_one_label():
    payload = '{"n": 9, "labels": ["a \\"quoted\\" one\\\\ with\\nlines"], "value": [0.5], "variance": [0.0]}'
    assert samples(stored(payload))["hubbub_estimate", HOSTILE, "many", "popular"] == 0.5


def test_services_of_one_process_are_told_apart(web: Web):
    other = stored('{"n": 9, "labels": ["a"], "value": [0.5], "variance": [0.0]}')
    assert {key[1] for key in samples(other) if key[0] == "hubbub_reports_total"} == {"many", ""}
    assert {key[1] for key in samples(web.service) if key[0] == "hubbub_reports_total"} == {"themes", ""}
    assert b"hubbub_" not in prometheus_client.generate_latest(prometheus_client.REGISTRY)


# -- the Grafana dashboard names metrics and labels that there are, and is laid out without overlap ------------

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "docs" / "grafana" / "hubbub.json").read_text(encoding="utf-8"))
ALARM = '\n[alarms.dark]\nquestion = "popular"\nweights = { dark = 1 }\nabove = 0.5\n'


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The labels of each metric of a collector that has everything: an answer, an alarm, a webhook."""
    alarms = {"themes": load_alarms(EXAMPLE + ALARM)}
    collector = start_collector(load_collection(EXAMPLE), ManualClock(7200.0), alarms=alarms)
    payload = '{"n": 9, "labels": ["a"], "value": [0.5], "variance": [0.01]}'
    service = with_release(collector, 1, payload, webhooks=[Webhook("pager", "http://127.0.0.1:9", (b"k" * 32,))])
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
