"""Shuffled batches as the API shows them: their sizes, and what each coalition of parties can learn from them."""

from __future__ import annotations

import json

from hubbub.authoring.coalitions import coalitions, coalitions_of
from hubbub.collection import Collection
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.service.store.sql import Store

MOST_BATCHES = 20
"""The most batches of a question that are shown."""


def shuffled_json(store: Store, collection: Collection) -> dict[str, Json]:
    """For each question: its latest batches, and the epsilons of all coalitions for the latest and the smallest batch.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> collector = example_collector()
        >>> shuffled_json(collector.store, collector.collections["themes"])
        {'route': None, 'questions': {}}
    """
    route = collection.shuffle
    if route is None:
        return {"route": None, "questions": {}}
    questions: dict[str, Json] = {}
    for name in collection.questions:
        rows = store.shuffled_batches(collection.collection_id, name, MOST_BATCHES)
        batches: list[Json] = []
        for ask, row in rows:
            batches.append(
                {
                    "step": ask.step,
                    "round": ask.round,
                    "part": ask.part,
                    "people": row.n - row.fakes,
                    "fakes": row.fakes,
                    "unreadable": row.unreadable,
                    "repeated": row.repeated,
                    "checks": row.checks,
                    "lost_checks": row.lost,
                }
            )
        latest: list[Json] = []
        if rows:
            ask, row = rows[0]
            mechanism = Ask.from_spec(json.loads(ask.spec)).mechanism
            assert isinstance(mechanism, Mechanism)  # shuffled collections ask no stateful mechanism
            latest = [coalition.to_dict() for coalition in coalitions(mechanism, route, row.n - row.fakes)]
        smallest: list[Json] = [coalition.to_dict() for coalition in coalitions_of(collection, name)]
        questions[name] = {"smallest": smallest, "latest": latest, "batches": batches}
    return {"route": route.spec(), "questions": questions}
