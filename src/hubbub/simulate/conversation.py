"""Running a protocol or a question over a fleet of simulated devices, and comparing its releases with the truth."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.collection.admits import admits, admits_parts
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Bools, Floats, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Count, Message, Protocol, Release, Reply, converse
from hubbub.protocols.window import Statistic, window_stream
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Fleet, Present, Traffic, Wire
from hubbub.simulate.ledgers import Ledgers, StudyPayments


@dataclass(frozen=True)
class Run:
    """The released values and variances of a stream, and the truth: a row for each step."""

    values: Floats
    variances: Floats
    truth: Floats

    @property
    def tve(self) -> float:
        """The total variation error: absolute errors, summed (S. Wang, Li, Xin et al., 2023, section 7.1)."""
        return float(np.abs(self.values - self.truth).sum())

    @property
    def mae(self) -> float:
        """The maximum absolute error."""
        return float(np.abs(self.values - self.truth).max())

    @property
    def mse(self) -> float:
        """The mean squared error over steps and entries."""
        return float(np.mean((self.values - self.truth) ** 2))

    def mre(self, floor: float = 1e-3) -> float:
        """The mean relative error, with truths below `floor` counted as `floor`."""
        return float(np.mean(np.abs(self.values - self.truth) / np.maximum(np.abs(self.truth), floor)))

    def coverage(self, level: float = 0.95) -> float:
        """The share of the intervals that hold the truth."""
        reach = normal_reach(level) * np.sqrt(self.variances)
        return float(np.mean(np.abs(self.values - self.truth) <= reach))


_MOST_BYTES = 1 << 26  # of reports in memory at a time: some mechanisms have reports of kilobytes


def collect(mechanism: Mechanism, values: Any, rng: Random, *, chunk: int = 1 << 18, shards: int = 1) -> Sketch:
    """Randomise every value and fold the reports into one sketch, a part of the population at a time.

    Parameters
    ----------
    rng
        The randomness of all reports. With several shards, each has its own stream, derived from this one.
    chunk
        The most reports in memory at a time; fewer if reports are large (64 MiB in all).
    shards
        How many servers share the work: each folds its part, then the sketches are merged.
    """
    check_integer("chunk", chunk, 1)
    check_integer("shards", shards, 1)
    step = max(1, min(chunk, _MOST_BYTES // mechanism.report_bytes))
    sketch = mechanism.empty()
    if shards == 1:
        parts = [(values, rng)]
    else:
        tag = rng.bytes(16).hex()  # drawn, so that the shards of the next call have other streams
        cuts = [len(values) * shard // shards for shard in range(shards + 1)]
        parts = [(values[cuts[i] : cuts[i + 1]], rng.child("shard", tag, i)) for i in range(shards)]
    for part, stream in parts:
        for start in range(0, len(part), step):
            sketch = sketch + mechanism.accumulate(mechanism.randomize(part[start : start + step], stream))
    return sketch


@dataclass(frozen=True)
class StreamRun(Run):
    """The releases of a protocol over a stream, with the truth, what they spent and the traffic."""

    published: Bools
    spent: Floats
    traffic: Traffic
    n: int
    centres: Floats

    def coverage(self, level: float = 0.95) -> float:
        """The share of the finite intervals that hold the truth."""
        reach = normal_reach(level) * np.sqrt(self.variances)
        low, high = np.minimum(self.values, self.centres - reach), np.maximum(self.values, self.centres + reach)
        return float(np.mean(((low <= self.truth) & (self.truth <= high))[np.isfinite(self.variances)]))

    @property
    def bits_per_device_and_step(self) -> float:
        """The communication in both directions."""
        return self.traffic.per_device_and_step(self.n, len(self.values))


def run_stream(
    protocol: Protocol, stream: Stream, rng: Random, *, steps: int | None = None, ledgers: Ledgers | None = None
) -> StreamRun:
    """Run a protocol over a stream, to its end or for a number of steps."""
    steps = stream.steps if steps is None else steps
    if steps is None or steps < 1 or (stream.steps is not None and steps > stream.steps):
        raise InvalidValue("steps", steps, f"a number of steps from 1 to {stream.steps or 'as many as you like'}")
    fleet = Fleet(stream, rng, ledgers=ledgers)
    releases: list[Release] = []
    truth = []
    for release in converse(protocol, fleet.answer, count=fleet.count, steps=steps):
        releases.append(release)
        truth.append(stream.truth(release.step))
    return StreamRun(
        values=np.array([release.estimate.value for release in releases]),
        variances=np.array([release.estimate.variance for release in releases]),
        truth=np.array(truth),
        published=np.array([release.published for release in releases]),
        spent=np.array([release.spent for release in releases]),
        traffic=fleet.traffic,
        n=stream.n,
        centres=np.array([_centre(release.estimate) for release in releases]),
    )


def _centre(estimate: Estimate) -> Floats:
    return estimate.value if estimate.centre is None else estimate.centre


def run_window(
    method: str, question: Statistic, stream: Stream, rng: Random, *, epsilon: float, w: int, **options: Any
) -> StreamRun:
    """Run a window stream over a whole stream, with a ledger for every device."""
    protocol = window_stream(method, question, epsilon=epsilon, w=w, **options)
    if stream.steps is not None and w > stream.steps:
        raise InvalidValue("w", w, f"at most the {stream.steps} steps of the stream")
    if w > stream.n:
        raise InvalidValue("w", w, f"at most the {stream.n} devices, or a window has steps that nobody answers")
    return run_stream(protocol, stream, rng, ledgers=Ledgers.of_window(stream.n, epsilon=epsilon, w=w, strict=True))


def run_question(
    collection: Collection,
    name: str,
    stream: Stream,
    rng: Random,
    *,
    steps: int | None = None,
    first: int = 0,
    present: Present | None = None,
    ledgers: Ledgers | None = None,
    wire: Wire | None = None,
    transcript: list[tuple[Message, Reply]] | None = None,
) -> Iterator[Release]:
    """Ask a fleet a question of a collection, and yield its releases.

    Devices keep all signed promises, also those of other questions; an ask that devices would refuse is an error.
    Releases that a server would withhold because of too few reports are not withheld here.

    Parameters
    ----------
    stream
        The values of the devices: step 1 is the collection's step `first`; a study uses only step 1.
    first
        The step of the collection at which the question begins.
    present
        Which devices are present at a step of the stream; all of them unless given.
    ledgers
        The devices' ledgers; those of all signed promises unless given.
    wire
        What arrives of the reports to an ask: see `Fleet`.
    transcript
        Where every message of the protocol is added, with the reply to it.
    """
    terms, study = collection.terms[name], None
    ledgers = signed_ledgers(collection, stream.n) if ledgers is None else ledgers
    transcript = [] if transcript is None else transcript
    if terms.study is not None:
        ends = int(collection.round_times(name, 0, 0, terms.rounds)[1]) - 1
        study = StudyPayments(ledgers, limit=terms.limit, ends=ends)
    fleet = Fleet(stream, rng, ledgers=ledgers, first=first, present=present, group=terms.group, study=study, wire=wire)
    conversation = Conversation(collection.protocol(name, first=first), rounds=terms.rounds, parts=terms.parts)
    done = 0
    while (steps is None or done < steps) and (message := conversation.listen()) is not None:
        if isinstance(message, Release):
            done += 1
            transcript.append((message, None))
            yield message
        elif isinstance(message, Count):
            result = fleet.count(message)
            transcript.append((message, result))
            conversation.reply_count(result)
        else:
            asks = conversation.asks
            _check_admitted(collection, name, asks, conversation.round)
            step = 0 if study is not None else first + asks[0].step - 1
            now = int(collection.round_times(name, 0, step, conversation.round)[0])
            sketches = [fleet.answer(ask, now=now, account=terms.account, question=name) for ask in asks]
            transcript.append((message, sketches if isinstance(message, list) else sketches[0]))
            conversation.reply_all(sketches)


def signed_ledgers(collection: Collection, n: int) -> Ledgers:
    """The ledgers of n devices that keep all promises of a collection and of its questions."""
    of_questions = (promise for terms in collection.terms.values() for promise in terms.promises)
    return Ledgers(n, [*collection.promises, *of_questions])


def _check_admitted(collection: Collection, name: str, asks: tuple[Ask, ...], round: int) -> None:
    """Raise an error if the signed terms do not admit the asks."""
    terms, least = collection.terms[name], collection.minimum_arc
    refusals = [admits(terms, ask, round=round, minimum_arc=least, fields=collection.fields) for ask in asks]
    refusal = next(filter(None, [admits_parts(terms, asks, minimum_arc=least), *refusals]), None)
    if refusal is not None:
        raise InvalidValue(refusal, asks, f"what the terms of {name} admit")
