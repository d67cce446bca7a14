"""Compiles the kernels that a collector will need, before anyone waits for them."""

import logging
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, CountResult, converse
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.service.base.logs import log


def warm_up(
    collections: Iterable[Collection],
    running: Callable[[Collection, str], AbstractContextManager[object]] = lambda *question: nullcontext(),
    without: Container[tuple[str, str]] = (),
) -> None:
    """Run one step of every question with two invented reports, which compiles counting and estimating.

    The results are dropped. `running` is entered for each question; those in `without`, by
    collection id and name, are left out. If this fails for a question, its kernels are compiled when they are needed.
    """
    for collection in collections:
        for question in collection.questions:
            if (collection.collection_id, question) in without:
                continue
            try:
                with running(collection, question):
                    for _release in converse(collection.protocol(question), count_two_reports, count=_counted, steps=1):
                        pass
            except Exception as error:
                kind, detail = type(error).__name__, str(error)  # the reports are invented: it has no values of people
                log("not warmed up", level=logging.WARNING, question=question, error=kind, detail=detail)


def _counted(count: Count) -> CountResult:
    reports = count.oracle.randomize(count.oracle.example_values(2), Random(seed=0))
    return count.among(lambda: [reports])


def count_two_reports(ask: Ask) -> Sketch:
    """The sketch of two invented reports to an ask, or what the mechanism raises."""
    return ask.mechanism.accumulate(invented_reports(ask, 2, Random(seed=0)))


def invented_reports(ask: Ask, n: int, rng: Random) -> Reports:
    """Reports to an ask of at most n invented values: of a device that remembers, the first."""
    mechanism = ask.mechanism
    values = mechanism.example_values(n)
    if isinstance(mechanism, Mechanism):
        return mechanism.randomize(values, rng)
    assert isinstance(mechanism, Stateful)
    new = np.ones(len(values), dtype=bool)
    states, reports, speaks = mechanism.step(mechanism.enroll(len(values), rng), ask.step, values, rng, new)
    return mechanism.with_enrolment(states, reports, speaks, new)[0]
