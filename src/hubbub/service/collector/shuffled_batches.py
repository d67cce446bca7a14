"""Shuffled batches as the API shows them: their sizes, and what each coalition of parties can learn from them."""

import json

from hubbub.authoring.coalitions import Coalition, coalitions, coalitions_of
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
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
            mechanism, people = Ask.from_spec(json.loads(ask.spec)).mechanism, row.n - row.fakes
            if mechanism.whole_reports:  # the bound is of a horizon: it counts those who missed none of its batches
                people = _present(store, collection, name)
            latest = coalitions(mechanism, route, people) if people else []
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


def _present(store: Store, collection: Collection, question: str) -> int:
    """How many devices at least missed no step of the present horizon, by the latest release; 0 before there is one."""
    releases = store.releases(collection.collection_id, question, 0, 1 << 62, 1)
    return int(json.loads(releases[0].payload)["lost"]["present"]) if releases else 0
