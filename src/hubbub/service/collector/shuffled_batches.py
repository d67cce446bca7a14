"""Shuffled batches as the API shows them: their sizes, and what each coalition of parties can learn from them."""

from __future__ import annotations

import json

from hubbub.authoring.promise import Coalition, coalitions, coalitions_of
from hubbub.collection import Collection
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.service.base.api import ShuffledBatchBody, ShuffledBody, ShuffledQuestion
from hubbub.service.store.sql import Store

MOST_BATCHES = 20
"""The most batches of a question that are shown."""


def shuffled_body(store: Store, collection: Collection) -> ShuffledBody:
    """For each question its latest batches, and what all coalitions learn from the latest and the smallest batch."""
    route = collection.shuffle
    if route is None:
        return ShuffledBody(route=None, questions={})
    questions = {}
    for name in collection.questions:
        rows = store.shuffled_batches(collection.collection_id, name, MOST_BATCHES)
        latest: list[Coalition] = []
        if rows:
            ask, row = rows[0]
            mechanism = Ask.from_spec(json.loads(ask.spec)).mechanism
            assert isinstance(mechanism, Mechanism)  # shuffled collections ask no stateful mechanism
            latest = coalitions(mechanism, route, row.n - row.fakes)
        batches = [
            ShuffledBatchBody(
                step=ask.step,
                round=ask.round,
                part=ask.part,
                people=row.n - row.fakes,
                fakes=row.fakes,
                unreadable=row.unreadable,
                repeated=row.repeated,
                checks=row.checks,
                lost_checks=row.lost,
            )
            for ask, row in rows
        ]
        questions[name] = ShuffledQuestion(smallest=coalitions_of(collection, name), latest=latest, batches=batches)
    return ShuffledBody(route=route.spec(), questions=questions)
