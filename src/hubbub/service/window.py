"""An ask that was published, with what came in: open until its time is over, then final for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hubbub.collection.wire import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask
from hubbub.service.seen import Seen
from hubbub.service.store.base import AskKey
from hubbub.service.template import Template

__all__ = ["AnswerPlace", "Board", "Window"]


class AnswerPlace(NamedTuple):
    """An answer of a collection: what a report says that it is."""

    collection: str
    name: AnswerName


@dataclass(eq=False)
class Window:
    """Reports to `ask` count from `opens` until `until`, which is the collection's lateness after `closes`.

    It is the ask of a `round` of its step: the first is 1.

    Example:
        >>> from hubbub import GRR, Random
        >>> ask = Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3)
        >>> key, seen = AskKey("0" * 32, ask.ask_id), Seen(Random(seed=1))
        >>> window = Window(key, "popular", ask, 0.0, 60.0, 70.0, ask.mechanism.empty(), seen)
        >>> window.takes(69.9), window.takes(70.0), str(window.name)
        (True, False, 'popular:0:3:1:0')
    """

    key: AskKey
    question: str
    ask: Ask
    opens: float
    closes: float
    until: float
    sketch: Sketch
    seen: Seen
    final: bool = False
    keeps: bool = False
    """Whether single reports are kept."""
    round: int = 1

    @cached_property
    def name(self) -> AnswerName:
        """What its reports are called."""
        return AnswerName(self.question, run=0, step=self.ask.step, round=self.round, part=0)

    @property
    def place(self) -> AnswerPlace:
        """What its reports are called, and of which collection they are."""
        return AnswerPlace(self.key.collection, self.name)

    @cached_property
    def template(self) -> Template:
        """Reads single reports."""
        return Template(self.ask.mechanism)

    def takes(self, now: float) -> bool:
        """Whether a report that comes now still counts."""
        return not self.final and self.opens <= now < self.until


class Board:
    """The windows whose ids are held, and when asks that are not published yet will be.

    Example:
        >>> board = Board()
        >>> board.windows, board.find(AnswerPlace("0" * 32, AnswerName("popular", 0, 3, 1, 0)))
        ({}, None)
    """

    def __init__(self) -> None:
        self.windows: dict[AskKey, Window] = {}
        self.expected: dict[AnswerPlace, float] = {}
        self._places: dict[AnswerPlace, Window] = {}

    def add(self, window: Window) -> None:
        """Put up a window; another with the same name is refused: reports could not tell the two apart."""
        if self._places.setdefault(window.place, window) is not window:
            raise InvalidValue("ask", str(window.name), "a name that no other ask has")
        self.windows[window.key] = window

    def drop(self, key: AskKey) -> None:
        """Take a window away."""
        del self._places[self.windows.pop(key).place]

    def find(self, place: AnswerPlace) -> Window | None:
        """The window whose reports are called so."""
        return self._places.get(place)

    def open(self, collection: str, now: float) -> list[Window]:
        """The windows of a collection that devices may answer now, oldest first."""
        asked = [
            window
            for key, window in list(self.windows.items())  # a copy: others look while the writer opens and closes
            if key.collection == collection and not window.final and window.opens <= now < window.closes
        ]
        return sorted(asked, key=lambda window: window.question)
