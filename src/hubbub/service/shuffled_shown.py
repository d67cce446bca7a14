"""Shuffled batches as they are shown: how large the latest were, and who must work together to learn what of them."""

from __future__ import annotations

import json

from hubbub.authoring.coalitions import coalitions, coalitions_of
from hubbub.collection import Collection
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.service.store.sql import Store

MOST_BATCHES = 20
"""How many batches of a question are told of."""


def shuffled_json(store: Store, collection: Collection) -> dict[str, Json]:
    """Of each question the latest batches, latest first; of the smallest that may be, and of the latest, all epsilons.

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
        rows = store.shuffled_steps(collection.collection_id, name, MOST_BATCHES)
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
            assert isinstance(mechanism, Mechanism)  # devices that remember are not asked where reports are shuffled
            latest = [each.to_dict() for each in coalitions(mechanism, route, row.n - row.fakes)]
        smallest: list[Json] = [each.to_dict() for each in coalitions_of(collection, name)]
        questions[name] = {"smallest": smallest, "latest": latest, "batches": batches}
    return {"route": route.spec(), "questions": questions}
