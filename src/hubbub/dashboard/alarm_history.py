"""The alarms of a question: which are raised, and in which steps they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AlarmHistory:
    """Which alarms of a question are raised, and in which steps they were, as far back as its events go.

    Parameters
    ----------
    answer
        What `GET /v1/collections/NAME/alarms` answers.
    question
        The question whose alarms these are.
    category
        Leaves out the other categories, where an alarm watches each category by itself.

    Example:
        >>> watched = {"alarm": "late", "category": "", "question": "delays", "state": "raised", "threshold": 0.2,
        ...     "title": "late planes", "direction": "above"}
        >>> event = {"alarm": "late", "category": "", "question": "delays", "state": "raised", "step": 7, "number": 1}
        >>> alarms = AlarmHistory({"alarms": [{"definition": {}, "watched": [watched]}], "events": [event]}, "delays")
        >>> alarms.raised_at(6), alarms.raised_at(7), alarms.raised
        (False, True, ['late planes, above 0.2'])
    """

    def __init__(self, answer: Mapping[str, Any], question: str, category: str | None = None) -> None:
        self._watched = [
            (alarm["definition"], watched)
            for alarm in answer["alarms"]
            for watched in alarm["watched"]
            if watched["question"] == question and (category is None or watched["category"] in ("", category))
        ]
        self._events = [event for event in answer["events"] if event["question"] == question]

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def raised(self) -> list[str]:
        """What is raised now, in words."""
        return [_words(watched) for _, watched in self._watched if watched["state"] == "raised"]

    def raised_at(self, step: int) -> bool:
        """Whether an alarm was raised at a step. For steps before the first known event, that event shows it."""
        return any(self._was_raised(watched, step) for _, watched in self._watched)

    def thresholds(self, category: str | None) -> tuple[float, ...]:
        """Where the alarms of one category of the answer, or of its one number, are raised."""
        thresholds = {
            watched["threshold"]
            for definition, watched in self._watched
            if watched["category"] == category or _only(definition, category)
        }
        return tuple(sorted(thresholds - {None}))

    def _was_raised(self, watched: dict[str, Any], step: int) -> bool:
        own = [event for event in self._events if _key(event) == _key(watched)]
        before = [event for event in own if event["step"] <= step]
        if before:
            return bool(before[-1]["state"] == "raised")
        return bool(own[0]["state"] == "cleared" if own else watched["state"] == "raised")


def _key(watched: dict[str, Any]) -> tuple[str, str]:
    return watched["alarm"], watched["category"]


def _only(definition: dict[str, Any], category: str | None) -> bool:
    """Whether an alarm watches this one number and nothing else."""
    weights = definition.get("weights")
    return not definition.get("each") and (not weights or list(weights.items()) == [(category, 1)])


def _words(watched: dict[str, Any]) -> str:
    bound = "its baseline" if watched["threshold"] is None else f"{watched['threshold']:g}"
    return f"{watched['title']}, {watched['direction']} {bound}"
