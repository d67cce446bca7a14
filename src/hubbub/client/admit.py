"""Which asks a client answers, and when. Nothing here reads a recorded value, so that no refusal depends on one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.collection import Collection
from hubbub.collection.admits import admits, admits_parts


def admit(collection: Collection, published: PublishedAsk, step: int) -> None:
    """Refuse an ask that the signed terms of its question do not allow, or that is not of this step."""
    terms = collection.terms.get(published.question)
    if terms is None:
        raise ClientRefusal("question", f"there is no question {published.question}")
    if published.ask.step != (step if terms.study is None else 0):
        raise ClientRefusal("step", f"{published.ask.step} is not {step if terms.study is None else 0}")
    reason = admits(
        terms,
        published.ask,
        run=published.run,
        round=published.round,
        part=published.part,
        minimum_arc=collection.minimum_arc,
        fields=collection.fields,
    )
    if reason is not None:
        raise ClientRefusal(reason, f"not what {published.question} asks")


def admit_round(collection: Collection, parts: Sequence[PublishedAsk], step: int) -> None:
    """Refuse all asks of one round if the terms do not allow one of them, or not all of them together."""
    for published in parts:
        admit(collection, published, step)
    question = parts[0].question
    asks = [published.ask for published in parts]
    reason = admits_parts(collection.terms[question], asks, minimum_arc=collection.minimum_arc)
    if len({published.part for published in parts}) < len(parts):
        reason = "parts"
    if reason is not None:
        raise ClientRefusal(reason, f"{len(asks)} asks of {question} at once")


def part_of(parts: Sequence[PublishedAsk], place: int) -> PublishedAsk | None:
    """The part whose arc holds a place on the circle; None if no arc does. Arcs of an admitted round are disjoint."""
    return next((part for part in parts if bool(part.ask.cohort.holds(np.array([place]))[0])), None)


def run_ends(collection: Collection, question: str, run: int) -> float:
    """When the last round of a study's run closes."""
    return collection.round_times(question, run, 0, collection.terms[question].rounds)[1]


def open_studies(collection: Collection, now: float) -> Iterator[tuple[str, int, int]]:
    """The question, run and round of every study whose round can be asked now.

    The first round is asked from its beginning; a later one once the late answers to the round before have arrived.
    """
    for question, terms in collection.terms.items():
        if terms.study is None or now < terms.study.start:
            continue
        run = int((now - terms.study.start) // terms.study.every) if terms.study.every else 0
        round = int((now - terms.study.start - run * terms.study.every) // terms.study.round_seconds) + 1
        opens, _ = collection.round_times(question, run, 0, round)
        if round <= terms.rounds and now >= opens + (collection.lateness_seconds if round > 1 else 0):
            yield question, run, round
