"""The newest estimates as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from hubbub.service.collector import Collector
from hubbub.service.releases import release_json

MOST_CATEGORIES = 64
"""The most categories of a question that have series of their own: Prometheus keeps each series for good."""

_LAST_STEP = 1 << 62
_OF_QUESTION = ("collection", "question")


class EstimateMetrics:
    """The main estimate of each question's newest release, with its 95% interval.

    Unknown numbers, and all numbers of a withheld release, have no sample. Of a question with more than
    `MOST_CATEGORIES` categories only the first have samples. The categories of a ranking are its ranks and not the
    names found there, which would make new series without end.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """The metrics, with their current values; reads the store."""
        of_category = (*_OF_QUESTION, "category")
        numbers = {
            "value": _gauge("estimate", "The newest estimate.", of_category),
            "low": _gauge("estimate_low", "The lower end of its 95% interval.", of_category),
            "high": _gauge("estimate_high", "The upper end of its 95% interval.", of_category),
        }
        reports = _gauge("estimate_reports", "Reports that it rests on.", _OF_QUESTION)
        categories = _gauge("estimate_categories", f"Its numbers, of which {MOST_CATEGORIES} are told.", _OF_QUESTION)
        age = _gauge("release_age_seconds", "Seconds since the newest release.", _OF_QUESTION)
        for place, release in self._newest():
            names = self._categories(place, release["labels"])
            for key, family in numbers.items():
                for category, value in zip(names, release[key] or (), strict=False):
                    if value is not None:
                        family.add_metric((*place, category), value)
            reports.add_metric(place, release["n"])
            categories.add_metric(place, len(release["labels"]))
            age.add_metric(place, max(self._collector.clock.now() - release["time"], 0.0))
        yield from (*numbers.values(), reports, categories, age)

    def _newest(self) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
        for name, collection in self._collector.collections.items():
            for question in collection.questions:
                for row in self._collector.releases(name, question, first=0, last=_LAST_STEP, most=1):
                    yield (name, question), release_json(row)

    def _categories(self, place: tuple[str, str], labels: list[str]) -> list[str]:
        collection, question = self._collector.collections[place[0]], place[1]
        shape = collection.questions[question].shape(collection.setting(question))
        names = [str(rank) for rank, _ in enumerate(labels, 1)] if shape.form == "ranking" else labels
        return names[:MOST_CATEGORIES]


def _gauge(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"hubbub_{name}", text, labels=labels)
