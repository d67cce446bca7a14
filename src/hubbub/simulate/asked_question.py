"""A question that is asked of simulated devices, in a collection of its own."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from hubbub.authoring.answerable import recorded_values
from hubbub.collection.document import OVERRIDES
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain
from hubbub.core.reports import Floats
from hubbub.core.spec import canonical
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Message, Release, Reply
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import Stream
from hubbub.simulate.ledgers import Ledgers

Transcript = list[tuple[Message, Reply]]
"""What a server asked and released, each with the reply."""
NAME = "question"
STEPS = 4
DEVICES = 600


class AskedQuestion:
    """A question in a collection of its own, and its conversation with simulated devices that have all its values."""

    def __init__(self, question: Question, fields: Mapping[str, Domain], rng_seed: int = 1) -> None:
        self.question, self.fields, self.seed = question, dict(fields), rng_seed

    @cached_property
    def collection(self) -> Collection:
        """The collection: everything that is overridden for a reason is, and no limit is met."""
        return Collection(
            name="contract",
            title="The contract of a kind",
            fields=self.fields,
            questions={NAME: self.question},
            budget=Budget.of(user=1e6),
            step_seconds=86400,
            overrides=dict.fromkeys(OVERRIDES, "an example"),
        )

    @property
    def in_collection(self) -> Question:
        """The question, as the collection asks it."""
        return self.collection.questions[NAME]

    @property
    def terms(self) -> Terms:
        """What devices know of the question."""
        return self.collection.terms[NAME]

    @cached_property
    def values(self) -> list[object]:
        """What devices may have recorded."""
        return list(recorded_values(self.collection, self.terms))

    @cached_property
    def transcript(self) -> Transcript:
        """The messages and replies of some steps, or of a whole study; devices have each value in turn."""
        devices = max(DEVICES, len(self.values))
        return self.simulate([self.values[device % len(self.values)] for device in range(devices)])

    def simulate(self, values: Sequence[object], run: int = 0, ledgers: Ledgers | None = None) -> Transcript:
        """The messages and replies if devices have these values, which they exchange at every step."""
        transcript: Transcript = []
        stream, rng = _Exchanged(values), Random(seed=self.seed).child(run)
        for _ in run_question(self.collection, NAME, stream, rng, steps=STEPS, ledgers=ledgers, transcript=transcript):
            pass
        return transcript

    @property
    def rounds(self) -> Iterator[list[Ask]]:
        for message, _ in self.transcript:
            if isinstance(message, Ask | list):
                yield message if isinstance(message, list) else [message]

    @property
    def asks(self) -> Iterator[Ask]:
        """The asks that differ in view or mechanism; the first of them before any device has answered."""
        seen = set()
        for ask in chain(Conversation(self.collection.protocol(NAME)).asks, chain.from_iterable(self.rounds)):
            key = (canonical(ask.view.spec()), ask.mechanism.spec_id)
            if key not in seen:
                seen.add(key)
                yield ask

    @property
    def releases(self) -> list[Release]:
        return [message for message, _ in self.transcript if isinstance(message, Release)]


class _Batch(list[object]):
    """Values that can be selected like rows of an array."""

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return _Batch(list.__getitem__(self, int(row)) for row in np.arange(len(self))[rows])
        return _Batch(super().__getitem__(rows)) if isinstance(rows, slice) else super().__getitem__(rows)


class _Exchanged(Stream):
    """Devices that have these values; at each step every device has the value that the next one had."""

    steps = None

    def __init__(self, values: Sequence[object]) -> None:
        self._values, self.n = list(values), len(values)

    def values(self, step: int, start: int, stop: int) -> _Batch:
        turn = step % self.n
        return _Batch([*self._values[turn:], *self._values[:turn]][start:stop])

    def truth(self, step: int) -> Floats:
        raise NotImplementedError("what is true depends on the question")
