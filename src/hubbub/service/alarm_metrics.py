"""Alarms and webhooks as metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hubbub.service.service import Service
from hubbub.service.webhooks.sender import OUTCOMES

MOST_WATCHED = 256
"""The most watched quantities of a collection that have series of their own."""


class AlarmMetrics:
    """Which alarms are raised, how many events there were, and how the deliveries to webhooks went."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """The metrics, with their current values; reads the store."""
        collector, alarms = self._service.collector, self._service.collector.alarms
        labels = ("collection", "alarm", "question", "category")
        raised = GaugeMetricFamily("hubbub_alarm_raised", "1 while an alarm is raised.", labels=labels)
        total = GaugeMetricFamily("hubbub_alarms_raised", "Alarms that are raised.", labels=("collection",))
        events = CounterMetricFamily("hubbub_alarm_events", "Alarms raised or cleared so far.", labels=("collection",))
        for name in collector.collections:
            states = alarms.states(name)
            for watch, state in states[:MOST_WATCHED]:
                place = name, watch.alarm, watch.question, watch.category
                raised.add_metric(place, int(state.raised is not None))
            total.add_metric((name,), sum(state.raised is not None for _, state in states))
            events.add_metric((name,), collector.store.last_alarm_event(name))
        yield from (raised, total, events)
        yield from self._webhooks()

    def _webhooks(self) -> Iterator[Metric]:
        attempts = CounterMetricFamily(
            "hubbub_webhook_attempts", "Deliveries tried, by what became of them.", labels=("webhook", "outcome")
        )
        waiting = GaugeMetricFamily("hubbub_webhook_waiting", "Events that wait to be taken.", labels=("webhook",))
        failing = GaugeMetricFamily("hubbub_webhook_failing", "1 if the last attempt failed.", labels=("webhook",))
        for sender in self._service.webhooks:
            name = sender.webhook.name
            for outcome in OUTCOMES:
                attempts.add_metric((name, outcome), sender.counts[outcome])
            waiting.add_metric((name,), sum(map(sender.waiting, self._service.collector.collections)))
            failing.add_metric((name,), int(sender.failing is not None))
        yield from (attempts, waiting, failing)
