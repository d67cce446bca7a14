"""Driving a protocol: its asks go out, sketches come back in order, releases come out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

from hubbub.core.errors import HubbubError, InvalidValue, SpecMismatch
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask, Release

__all__ = ["Conversation", "OutOfOrder", "Protocol", "converse"]

Protocol: TypeAlias = Generator[Ask | Release, Sketch | None, None]
"""A protocol yields Asks, is sent a Sketch for each, and yields a Release to end each step."""


class OutOfOrder(HubbubError, RuntimeError):
    """A sketch came for another ask, or a step was skipped or repeated: the conversation did not move."""


class Conversation:
    """A protocol with its place in time: what is open, and nothing else is taken.

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

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._said: Ask | Release = next(protocol)
        self._step: int | None = None
        self._check_step()

    @property
    def said(self) -> Ask | Release:
        """What the protocol says now; looking moves nothing."""
        return self._said

    def listen(self) -> Ask | Release:
        """What the protocol says now. Listening to a release moves on to the next step."""
        said = self._said
        if isinstance(said, Release):
            self._advance(None)
        return said

    def reply(self, ask_id: str, sketch: Sketch) -> None:
        """Answer the open ask. Any other answer is refused, and changes nothing."""
        if not isinstance(self._said, Ask):
            raise OutOfOrder(f"no ask is open: step {self._said.step} has its release")
        if ask_id != self._said.ask_id:
            raise OutOfOrder(f"the open ask is {self._said.ask_id} of step {self._said.step}, not {ask_id}")
        expected = self._said.mechanism
        if sketch.spec_id != expected.spec_id or sketch.counts.shape != expected.sketch_shape:
            raise SpecMismatch("spec_id", sketch.spec_id, f"a sketch of {expected.spec_id}")
        self._advance(sketch)

    def _advance(self, sketch: Sketch | None) -> None:
        before = self._said
        self._said = self._protocol.send(sketch)
        self._step = before.step + isinstance(before, Release)
        self._check_step()

    def _check_step(self) -> None:
        if self._step is not None and self._said.step != self._step:
            raise OutOfOrder(f"the protocol said step {self._said.step} where step {self._step} was due")


def converse(protocol: Protocol, answer: Callable[[Ask], Sketch], *, steps: int | None = None) -> Iterator[Release]:
    """Run a protocol against whoever answers asks, for so many steps or without end.

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
    talk = Conversation(protocol)
    done = 0
    while steps is None or done < steps:
        said = talk.listen()
        if isinstance(said, Ask):
            talk.reply(said.ask_id, answer(said))
        else:
            done += 1
            yield said
