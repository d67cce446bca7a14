"""Running a stream of changes over simulated devices, and comparing its releases with the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.changes.protocol import change_protocol
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import Conversation, Release
from hubbub.protocols.sao2 import Answers
from hubbub.random.source import Random
from hubbub.simulate.conversation import Run
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Fleet, Present
from hubbub.simulate.ledgers import Ledgers

CHUNK = 1 << 24  # entries that are read at a time
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ChangingRun(Run):
    """The releases of all steps of a stream of changes, next to the truth.

    `answers` has the counts of all reports, from which sums over steps can be estimated too; `spent` is the most that
    any device has spent, in units of 1e-12 epsilon.
    """

    answers: Answers
    spent: int


def run_changing(changes: ChangeStream, stream: Stream, rng: Random, *, present: Present | None = None) -> ChangingRun:
    """Run a stream of changes over one horizon, with a ledger for each device that allows epsilon for life.

    The values of the stream are codes, or rows of 0 and 1; the numbers 0 and 1 if there is one entry. All devices are
    present at every step unless `present` says which.
    """
    if stream.steps is not None and stream.steps < changes.steps:
        raise InvalidValue("steps", changes.steps, f"at most the {stream.steps} steps of the stream")
    ledgers = Ledgers.of_window(stream.n, epsilon=changes.epsilon, w=0, strict=True)
    fleet, answers = Fleet(stream, rng, ledgers=ledgers, present=present), Answers(changes.plan)
    conversation = Conversation(change_protocol(changes, answers=answers))
    estimates: list[Estimate] = []
    while len(estimates) < changes.steps:
        if estimates:
            conversation.listen()  # not after the last release: the next horizon would clear the answers
        conversation.reply_all([fleet.answer(ask) for ask in conversation.asks])
        assert isinstance(conversation.message, Release)
        estimates.append(conversation.message.estimate)
    return ChangingRun(
        values=np.array([estimate.value for estimate in estimates]),
        variances=np.array([estimate.variance for estimate in estimates]),
        truth=true_means(stream, changes.steps, changes.dimension),
        answers=answers,
        spent=ledgers.most,
    )


def true_means(stream: Stream, steps: int, dimension: int) -> Floats:
    """The true share of the devices whose entry is 1: a row for each step, a column for each entry."""
    means, chunk = np.zeros((steps, dimension)), max(1, CHUNK // dimension)
    for step in range(1, steps + 1):
        for start in range(0, stream.n, chunk):
            values = stream.values(step, start, min(start + chunk, stream.n))
            if values.ndim == 1 and dimension > 1:
                codes = values[(values >= 0) & (values < dimension)]
                means[step - 1] += np.bincount(codes, minlength=dimension)
            else:
                means[step - 1] += bits_of(values, dimension).sum(axis=0)
    return means / stream.n


def bits_of(values: NDArray[Any], dimension: int) -> NDArray[Any]:
    """Values as 0/1 vectors: vectors stay as they are, codes become vectors; a code out of range becomes all zeros."""
    if values.ndim == 2:
        return values
    return values[:, None] if dimension == 1 else (values[:, None] == np.arange(dimension)).astype(np.int8)
