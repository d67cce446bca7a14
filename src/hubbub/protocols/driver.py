"""Driving a protocol: its asks, its counts of candidates among kept reports, and its releases."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from hubbub.core.errors import HubbubError, InvalidValue, SpecMismatch
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Ints, Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ask import Ask, disjoint

if TYPE_CHECKING:
    from hubbub.core.reports import Reports


@dataclass(frozen=True)
class Count:
    """A request to count how many of the reports kept of an earlier ask support each of some candidates.

    It is evaluated where the reports are stored.

    `ask`: the earlier ask, of a frequency oracle and with `kept`. If it was asked several times, the last time counts.
    `candidates`: different values of the oracle's domain.
    """

    ask: Ask
    candidates: tuple[int | str, ...]

    def __post_init__(self) -> None:
        if not self.ask.kept:
            raise InvalidValue("ask", self.ask, "an ask whose reports are kept")
        if not self.candidates:
            raise InvalidValue("candidates", self.candidates, "at least one")
        self.oracle._codes(self.candidates)

    @property
    def step(self) -> int:
        """The step whose reports are counted."""
        return self.ask.step

    @property
    def oracle(self) -> FrequencyOracle:
        """The mechanism that made the reports."""
        if not isinstance(self.ask.mechanism, FrequencyOracle):
            raise InvalidValue("ask", type(self.ask.mechanism).__name__, "an ask of a frequency oracle")
        return self.ask.mechanism

    def among(self, batches: Callable[[], Iterable[Reports]]) -> CountResult:
        """Count among the reports of these batches; `batches` is called once for each pass over them."""
        n = sum(len(reports) for reports in batches())
        return self.choose(n, (self.supports(batches(), start) for start in self.starts()))

    def starts(self) -> range:
        """Where each block of candidates begins; each takes a pass over the reports, wherever they are."""
        return range(1)

    def supports(self, batches: Iterable[Reports], start: int) -> Ints:
        """How many of the reports support each candidate of a block. Those of several parts are added up."""
        from hubbub.backends import LOCAL

        return LOCAL.support(batches, self.oracle, self.candidates).counts

    def choose(self, n: int, supports: Iterable[Ints]) -> CountResult:
        """The result among n reports, of which these many support the candidates of each block."""
        (support,) = supports
        return CountResult(n, support)

    def work(self, n: int) -> int:
        """How many times a report is tested against a candidate, if there are n reports."""
        return n * len(self.candidates)

    def candidates_json(self) -> Json:
        """The candidates as JSON. The result depends on them and on the ask alone."""
        return list(self.candidates)

    def check(self, result: CountResult) -> None:
        """Refuse a result whose shape is not that of the candidates."""
        support = np.asarray(result.support)
        if support.shape != (len(self.candidates),) or support.dtype != np.int64:
            raise InvalidValue("support", support, f"{len(self.candidates)} integers, one per candidate")

    def estimate(self, result: CountResult) -> Estimate:
        """The estimated shares of the candidates."""
        sketch = self.oracle.support_sketch(self.candidates, result.n, result.support)
        return self.oracle.estimate(sketch, self.candidates)


class CountResult(NamedTuple):
    """The answer to a `Count`: of n reports, how many support each candidate.

    A search has many candidates and returns only the best. It adds their `places` in the list of all candidates, and
    how many candidates were `tested`.
    """

    n: int
    support: Ints
    places: tuple[int, ...] = ()
    tested: int = 0


MAIN = "estimate"
"""The name of the only estimate of a release, or of the first where the protocol gives no other name."""
OWN = "own"
"""The name of the estimate from the step's own reports, released with a main estimate that is smoothed over time."""


class MissingReports(NamedTuple):
    """How many reports of a standing stream were due at a step, and how many of them came in time.

    `bias` is the expected bias of each number of the release from all reports that did not come so far, if they would
    have been like the reports that came. It is NaN where no report came.
    """

    due: int
    came: int
    bias: tuple[float, ...]
    present: int = 0
    """On the level where they are fewest: how many devices at least have missed no step of the horizon so far."""


class NodeReports(NamedTuple):
    """The reports of a node of a tree over time: how many came, and the +1 and -1 of each entry.

    `plus` and `minus` are None where the reports that came are too few for their sums to be stored.
    """

    level: int
    node: int
    came: int
    plus: tuple[int, ...] | None
    minus: tuple[int, ...] | None


class EndedNodes(NamedTuple):
    """The nodes of a tree over time that ended with a step, which sums over the steps of a horizon are made of.

    `enrolled` is how many enrolments came of each level so far, and `earlier` how many reports came at earlier
    steps of the horizon.
    """

    enrolled: tuple[int, ...]
    earlier: int
    nodes: tuple[NodeReports, ...]


@dataclass(frozen=True, kw_only=True)
class Release:
    """What a protocol publishes of a step, or at some point of a study.

    Parameters
    ----------
    step
        The step that it describes; 0 in a study.
    estimates
        Any number of named estimates of the population at that step, of any size, the main one first. Variances include
        the randomisation and the sampling of a part of the population. The values of the main estimate may be smoothed
        over time; its intervals are still those of the step's own reports, and infinite if there were none. Only a
        release with `stopped` may have no estimates.
    published
        Whether fresh reports were asked for this release; otherwise it repeats or predicts (approximation).
    spent
        The part of the window's budget that the asks of this step took.
    lost
        The reports that did not come, in a stream in which devices enrol and are then awaited.
    ended
        The sums of the step's reports, in a stream that can be asked for sums over steps.
    stopped
        Why a study ended before its last round.
    """

    step: int
    estimates: Mapping[str, Estimate]
    published: bool
    spent: float
    n: float
    lost: MissingReports | None = None
    ended: EndedNodes | None = None
    stopped: str | None = None

    def __post_init__(self) -> None:
        if not self.estimates and self.stopped is None:
            raise InvalidValue("estimates", {}, "at least one")
        object.__setattr__(self, "estimates", MappingProxyType(dict(self.estimates)))

    @property
    def main(self) -> str:
        """The name of the main estimate."""
        return next(iter(self.estimates), MAIN)

    @property
    def estimate(self) -> Estimate:
        """The main estimate, which is the first; an empty estimate where there is none."""
        return next(iter(self.estimates.values()), Estimate(np.zeros(0), np.zeros(0), 0))

    @property
    def own(self) -> Estimate | None:
        """The estimate from all of the step's own reports, unbiased and not smoothed; None if there were no reports."""
        own = self.estimates.get(OWN, self.estimate)
        return own if len(own) and np.isfinite(own.variance).all() else None


Message: TypeAlias = Ask | list[Ask] | Count | Release
"""What a protocol yields: an ask, several asks of disjoint arcs (the parts of a round), a count, or a release."""
Reply: TypeAlias = Sketch | list[Sketch] | CountResult | None
"""What a protocol is sent: the sketch of an ask, the sketches of several, the result of a count, None for a release."""
Protocol: TypeAlias = Generator[Message, Reply, None]
"""A generator of messages that is sent a reply to each. In a stream a release ends a step; a study returns."""


def ask_once(ask: Ask) -> Generator[Message, Reply, Sketch]:
    """Yield an ask and return its sketch: `sketch = yield from ask_once(ask)`."""
    sketch = yield ask
    assert isinstance(sketch, Sketch)
    return sketch


def ask_all(asks: Sequence[Ask]) -> Generator[Message, Reply, list[Sketch]]:
    """Yield several asks of disjoint arcs at once and return their sketches: `sketches = yield from ask_all(asks)`."""
    sketches = yield list(asks)
    assert isinstance(sketches, list)
    return sketches


def ask_count(count: Count) -> Generator[Message, Reply, CountResult]:
    """Yield a count and return its result: `result = yield from ask_count(count)`."""
    result = yield count
    assert isinstance(result, CountResult)
    return result


class OutOfOrder(HubbubError, RuntimeError):
    """A reply that fits no open ask, or a message that the protocol may not send; the conversation does not move."""


class Conversation:
    """A running protocol: its current message, and checks that only a fitting reply moves it on.

    The steps of a stream must be consecutive; all messages of a study have step 0. `round` is the number of the current
    round in its step: the open asks are those of that round.

    `rounds`, `parts`: the most rounds that a step (or a whole study) may have, and the most asks in a round; no limit
    unless given.
    """

    def __init__(self, protocol: Protocol, *, rounds: int | None = None, parts: int | None = None) -> None:
        self._protocol, self._rounds, self._parts = protocol, rounds, parts
        self._step: int | None = None
        self.round = 0
        self._message: Message | None = None
        self._advance(None)

    @property
    def message(self) -> Message | None:
        """The current message of the protocol; None after its end. Reading it changes nothing."""
        return self._message

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The open asks: one, or the parts of a round."""
        message = self._message
        return (message,) if isinstance(message, Ask) else tuple(message) if isinstance(message, list) else ()

    def listen(self) -> Message | None:
        """The current message; None after the end of the protocol. After a release, the conversation moves on."""
        message = self._message
        if isinstance(message, Release):
            self._advance(None)
        return message

    def reply(self, ask_id: str, sketch: Sketch) -> None:
        """Answer the only open ask. Any other answer is refused and changes nothing."""
        if not self.asks:
            ended = self._message is None
            raise OutOfOrder("no ask is open: " + ("the protocol has ended" if ended else "none is due"))
        if [ask_id] != [ask.ask_id for ask in self.asks]:
            raise OutOfOrder(f"the open ask is {self.asks[0].ask_id} of step {self.asks[0].step}, not {ask_id}")
        self.reply_all([sketch])

    def reply_all(self, sketches: Sequence[Sketch]) -> None:
        """Answer all open asks, one sketch each and in their order. Any other answer is refused and changes nothing."""
        if not self.asks or len(sketches) != len(self.asks):
            raise OutOfOrder(f"{len(self.asks)} asks are open, and {len(sketches)} sketches came")
        for ask, sketch in zip(self.asks, sketches, strict=True):
            mechanism = ask.mechanism
            if sketch.spec_id != mechanism.spec_id or sketch.counts.shape != mechanism.sketch_shape:
                raise SpecMismatch("spec_id", sketch.spec_id, f"a sketch of {mechanism.spec_id}")
        self._advance(list(sketches) if isinstance(self._message, list) else sketches[0])

    def reply_count(self, result: CountResult) -> None:
        """Answer the count that is due."""
        if not isinstance(self._message, Count):
            raise OutOfOrder("no count is due")
        self._message.check(result)
        self._advance(result)

    def _advance(self, reply: Reply) -> None:
        if isinstance(self._message, Release) and self._message.step > 0:
            self._step, self.round = self._message.step + 1, 0
        try:
            message = self._protocol.send(reply)
        except StopIteration:
            self._message = None
        else:
            self._accept(message)

    def _accept(self, message: Message) -> None:
        """Make this the current message, and refuse what the protocol may not send."""
        self._message = None
        for part in message if isinstance(message, list) else [message]:
            if not isinstance(part, Ask if isinstance(message, list) else Ask | Count | Release):
                raise OutOfOrder(f"the protocol sent a {type(part).__name__}: not an ask, a count or a release")
        self._message = message
        for step in [message.step] if isinstance(message, Release) else [ask.step for ask in self.asks]:
            self._step = step if self._step is None else self._step
            if step != self._step:
                raise OutOfOrder(f"the protocol said step {step} where step {self._step} was due")
        if not self.asks and not isinstance(message, list):
            return
        self.round += 1
        if self._rounds is not None and self.round > self._rounds:
            raise OutOfOrder(f"the protocol asks round {self.round}, and {self._rounds} are signed")
        if not self.asks or (self._parts is not None and len(self.asks) > self._parts):
            raise OutOfOrder(
                f"the protocol asks {len(self.asks)} parts, and from 1 to {self._parts or 'any'} are signed"
            )
        if not disjoint(ask.cohort for ask in self.asks):
            raise OutOfOrder("the protocol asks parts whose arcs meet")


def converse(
    protocol: Protocol,
    answer: Callable[[Ask], Sketch],
    *,
    count: Callable[[Count], CountResult] | None = None,
    steps: int | None = None,
    rounds: int | None = None,
    parts: int | None = None,
) -> Iterator[Release]:
    """Run a protocol with functions that answer its messages, for a number of steps or to its end; yield its releases.

    Parameters
    ----------
    protocol, rounds, parts
        As of `Conversation`.
    answer
        Returns the sketch of an ask. It is called for each part of a round in turn.
    count
        Returns the result of a count among the reports that `answer` kept; needed only by protocols that count.
    """
    if steps is not None and steps < 1:
        raise InvalidValue("steps", steps, "at least 1")
    conversation = Conversation(protocol, rounds=rounds, parts=parts)
    done = 0
    while (steps is None or done < steps) and (message := conversation.listen()) is not None:
        if isinstance(message, Release):
            done += 1
            yield message
        elif isinstance(message, Count):
            if count is None:
                raise InvalidValue("count", None, "given, as the protocol counts among kept reports")
            conversation.reply_count(count(message))
        else:
            conversation.reply_all([answer(ask) for ask in conversation.asks])
