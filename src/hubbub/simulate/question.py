"""Simulating a question of a collection as it is deployed: with its protocol, its signed terms and all ledgers."""

from __future__ import annotations

from collections.abc import Iterator

from hubbub.collection import Collection
from hubbub.collection.admits import admits, admits_parts
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.protocols.ask import Ask
from hubbub.protocols.count import Count
from hubbub.protocols.driver import Conversation
from hubbub.protocols.release import Release
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Fleet, Present
from hubbub.simulate.ledgers import Ledgers, StudyPayments


def run_question(
    collection: Collection,
    name: str,
    stream: Stream,
    rng: Random,
    *,
    steps: int | None = None,
    first: int = 0,
    present: Present | None = None,
) -> Iterator[Release]:
    """Ask a fleet a question of a collection, and yield its releases.

    Devices keep all signed promises, also those of other questions; an ask that devices would refuse is an error.
    Releases that a server would withhold because of too few reports are not withheld here.

    Parameters
    ----------
    collection, name
        The collection, and the name of the question.
    stream
        The values of the devices: step 1 is the collection's step `first`; a study uses only step 1.
    rng
        The randomness of the devices.
    steps
        How many releases; all of them unless given.
    first
        The step of the collection at which the question begins.
    present
        Which devices are present at a step of the stream; all of them unless given.
    """
    terms = collection.terms[name]
    promises = [*collection.promises, *(promise for other in collection.terms.values() for promise in other.promises)]
    ledgers, study = Ledgers(stream.n, promises), None
    if terms.study is not None:
        ends = int(collection.round_times(name, 0, 0, terms.rounds)[1]) - 1
        study = StudyPayments(ledgers, limit=terms.limit, ends=ends)
    fleet = Fleet(stream, rng, ledgers=ledgers, first=first, present=present, study=study)
    conversation = Conversation(collection.protocol(name, first=first), rounds=terms.rounds, parts=terms.parts)
    done = 0
    while (steps is None or done < steps) and (message := conversation.listen()) is not None:
        if isinstance(message, Release):
            done += 1
            yield message
        elif isinstance(message, Count):
            conversation.reply_count(fleet.count(message))
        else:
            asks = conversation.asks
            _check_admitted(collection, name, asks, conversation.round)
            step = 0 if study is not None else first + asks[0].step - 1
            now = int(collection.round_times(name, 0, step, conversation.round)[0])
            conversation.reply_all([fleet.answer(ask, now=now, account=terms.account, question=name) for ask in asks])


def _check_admitted(collection: Collection, name: str, asks: tuple[Ask, ...], round: int) -> None:
    """Raise an error if the signed terms do not admit the asks."""
    terms, least = collection.terms[name], collection.minimum_arc
    refusals = [admits(terms, ask, round=round, minimum_arc=least, fields=collection.fields) for ask in asks]
    refusal = next(filter(None, [admits_parts(terms, asks, minimum_arc=least), *refusals]), None)
    if refusal is not None:
        raise InvalidValue(refusal, asks, f"what the terms of {name} admit")
