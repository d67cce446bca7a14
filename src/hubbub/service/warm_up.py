"""Compiles the kernels that a collector will need, before anyone waits for them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np

from hubbub.collection import Collection
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.protocols.count import Count, CountResult
from hubbub.protocols.driver import converse
from hubbub.service.logs import log


def warm_up(collections: Iterable[Collection]) -> None:
    """Run one step of every question with two invented reports, which compiles counting and estimating.

    The results are dropped. If this fails for a question, its kernels are compiled when they are needed.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> warm_up([load_collection(EXAMPLE)])
    """
    for collection in collections:
        for question in collection.questions:
            try:
                for _release in converse(collection.protocol(question), count_two_reports, count=_counted, steps=1):
                    pass
            except Exception as error:
                log("not warmed up", level=logging.WARNING, question=question, error=type(error).__name__)


def _counted(count: Count) -> CountResult:
    sketch = count.oracle.support(count.oracle.randomize(count.candidates[:2], Random(seed=0)), count.candidates)
    return CountResult(sketch.n, sketch.counts)


def count_two_reports(ask: Ask) -> Sketch:
    """The sketch of two invented reports to an ask, or what the mechanism raises.

    Example:
        >>> from hubbub import GRR
        >>> count_two_reports(Ask(mechanism=GRR(epsilon=1.0, domain=2), step=1)).n
        2
    """
    mechanism, rng = ask.mechanism, Random(seed=0)
    values = mechanism.example_values(2)
    if isinstance(mechanism, Mechanism):
        return mechanism.accumulate(mechanism.randomize(values, rng))
    assert isinstance(mechanism, Stateful)
    both = np.ones(len(values), dtype=bool)
    states, reports, speaks = mechanism.step(mechanism.enroll(len(values), rng), ask.step, values, rng, both)
    return mechanism.accumulate(mechanism.with_enrolment(states, reports, speaks, both)[0])
