"""Driving a protocol: its asks go out, sketches come back in order, releases come out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeAlias

from hubbub.core.errors import HubbubError, InvalidValue, SpecMismatch
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask, Count, Counted, Heard, Release, Said
from hubbub.protocols.cohort import disjoint

Protocol: TypeAlias = Generator[Said, Heard, None]
"""A protocol yields asks, is sent a sketch for each, counts, and yields a Release to end each step; it may return."""

Hears: TypeAlias = Generator[Said, Heard, Sketch]
"""A part of a protocol that ends with a sketch."""


def ask_once(ask: Ask) -> Hears:
    """Ask, in a protocol: `sketch = yield from ask_once(ask)`.

    Example:
        >>> from hubbub import GRR
        >>> next(ask_once(Ask(mechanism=GRR(epsilon=1.0, domain=2), step=1))).step
        1
    """
    sketch = yield ask
    assert isinstance(sketch, Sketch)
    return sketch


def ask_all(asks: Sequence[Ask]) -> Generator[Said, Heard, list[Sketch]]:
    """Ask several at once, of people who are apart: `sketches = yield from ask_all(asks)`.

    Example:
        >>> from hubbub import GRR
        >>> from hubbub.protocols.cohort import Arc
        >>> grr = GRR(epsilon=1.0, domain=2)
        >>> parts = [Ask(mechanism=grr, step=1, cohort=Arc(start, 100)) for start in (0, 100)]
        >>> [ask.cohort.start for ask in next(ask_all(parts))]
        [0, 100]
    """
    sketches = yield list(asks)
    assert isinstance(sketches, list)
    return sketches


def count(of: Ask, candidates: Sequence[int | str]) -> Generator[Said, Heard, Counted]:
    """Count among the reports that were kept: `counted = yield from count(ask, candidates)`.

    Example:
        >>> from hubbub import OLH
        >>> ask = Ask(mechanism=OLH(epsilon=1.0, domain=1000), step=1, kept=True)
        >>> next(count(ask, [7, 12])).candidates
        (7, 12)
    """
    return (yield from count_out(Count(of, tuple(candidates))))


def count_out(message: Count) -> Generator[Said, Heard, Counted]:
    """Count what a message says: `counted = yield from count_out(message)`.

    Example:
        >>> from hubbub import OLH
        >>> ask = Ask(mechanism=OLH(epsilon=1.0, domain=1000), step=1, kept=True)
        >>> next(count_out(Count(ask, (7, 12)))).step
        1
    """
    counted = yield message
    assert isinstance(counted, Counted)
    return counted


class OutOfOrder(HubbubError, RuntimeError):
    """An answer came for another ask, or the protocol said what it may not: the conversation did not move."""


class Conversation:
    """A protocol with its place in time: what is open, and nothing else is taken.

    Steps follow each other; in a study all is step 0. `round` is the number of the open ask, or asks, in its step.

    Parameters
    ----------
    protocol
        What is said.
    rounds, parts
        How many rounds a step (or a whole study) may have, and how many asks a round; any number, unless given.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.window import Frequencies, window_stream
        >>> talk = Conversation(window_stream("LBU", Frequencies(2), epsilon=1.0, w=2))
        >>> ask = talk.listen()
        >>> sketch = ask.mechanism.accumulate(ask.mechanism.randomize([0, 1, 1], Random(seed=1)))
        >>> talk.reply(ask.ask_id, sketch)
        >>> talk.listen().published
        True
    """

    def __init__(self, protocol: Protocol, *, rounds: int | None = None, parts: int | None = None) -> None:
        self._protocol, self._rounds, self._parts = protocol, rounds, parts
        self._step: int | None = None
        self.round = 0
        self._said: Said | None = None
        self._take(next(protocol, None))

    @property
    def said(self) -> Said | None:
        """What the protocol says now, None after its end; looking moves nothing."""
        return self._said

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The asks that are open: one, or the parts of a round."""
        message = self._said
        return (message,) if isinstance(message, Ask) else tuple(message) if isinstance(message, list) else ()

    def listen(self) -> Said | None:
        """What the protocol says now, None after its end. Listening to a release moves on to the next step."""
        message = self._said
        if isinstance(message, Release):
            self._advance(None)
        return message

    def reply(self, ask_id: str, sketch: Sketch) -> None:
        """Answer the open ask. Any other answer is refused, and changes nothing."""
        if not self.asks:
            raise OutOfOrder("no ask is open: " + ("the protocol has ended" if self._said is None else "none is due"))
        if [ask_id] != [ask.ask_id for ask in self.asks]:
            raise OutOfOrder(f"the open ask is {self.asks[0].ask_id} of step {self.asks[0].step}, not {ask_id}")
        self.reply_all([sketch])

    def reply_all(self, sketches: Sequence[Sketch]) -> None:
        """Answer the open asks, each with its sketch. Any other answer is refused, and changes nothing."""
        if not self.asks or len(sketches) != len(self.asks):
            raise OutOfOrder(f"{len(self.asks)} asks are open, and {len(sketches)} sketches came")
        for ask, sketch in zip(self.asks, sketches, strict=True):
            expected = ask.mechanism
            if sketch.spec_id != expected.spec_id or sketch.counts.shape != expected.sketch_shape:
                raise SpecMismatch("spec_id", sketch.spec_id, f"a sketch of {expected.spec_id}")
        self._advance(list(sketches) if isinstance(self._said, list) else sketches[0])

    def tell(self, counted: Counted) -> None:
        """Answer the count that is due."""
        if not isinstance(self._said, Count):
            raise OutOfOrder("no count is due")
        self._said.check(counted)
        self._advance(counted)

    def _advance(self, heard: Heard) -> None:
        if isinstance(self._said, Release):
            self._step, self.round = self._said.step + (self._said.step > 0), 0 if self._said.step else self.round
        try:
            message = self._protocol.send(heard)
        except StopIteration:
            message = None
        self._take(message)

    def _take(self, message: Said | None) -> None:
        """Stand where the protocol is now, if it may be there."""
        self._said = message
        for ask in self.asks or ([] if message is None or isinstance(message, Count | list) else [message]):
            self._step = ask.step if self._step is None else self._step
            if ask.step != self._step:
                raise OutOfOrder(f"the protocol said step {ask.step} where step {self._step} was due")
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
    count: Callable[[Count], Counted] | None = None,
    steps: int | None = None,
    rounds: int | None = None,
    parts: int | None = None,
) -> Iterator[Release]:
    """Run a protocol against whoever answers asks, for so many steps or to its end.

    Parameters
    ----------
    protocol, rounds, parts
        As of `Conversation`.
    answer
        The sketch of an ask; of several at once, it is called for one after another.
    count
        What is counted among the reports that `answer` kept, for protocols that count.
    steps
        How many releases; all that there are, unless given.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.window import Frequencies, window_stream
        >>> def answer(ask):
        ...     return ask.mechanism.accumulate(ask.mechanism.randomize([0] * 500 + [1] * 500, Random(seed=ask.step)))
        >>> stream = window_stream("LBU", Frequencies(2), epsilon=4.0, w=2)
        >>> [round(float(release.estimate.value[1]), 1) for release in converse(stream, answer, steps=3)]
        [0.5, 0.5, 0.5]
    """
    if steps is not None and steps < 1:
        raise InvalidValue("steps", steps, "at least 1")
    talk = Conversation(protocol, rounds=rounds, parts=parts)
    done = 0
    while (steps is None or done < steps) and (message := talk.listen()) is not None:
        if isinstance(message, Release):
            done += 1
            yield message
        elif isinstance(message, Count):
            if count is None:
                raise InvalidValue("count", None, "given, as the protocol counts among kept reports")
            talk.tell(count(message))
        else:
            talk.reply_all([answer(ask) for ask in talk.asks])
