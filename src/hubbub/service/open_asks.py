"""Asks that were published, with what came in: open until their time is over, then final for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask
from hubbub.service.limits import Ceilings
from hubbub.service.report_ids import ReportIds
from hubbub.service.report_opener import ReportOpener
from hubbub.service.store.base import AskKey


class AnswerPlace(NamedTuple):
    """An answer of a collection: what a report says that it is."""

    collection: str
    name: AnswerName


@dataclass(eq=False)
class OpenAsk:
    """Reports to `ask` count from `opens` until `until`, which is the collection's lateness after `closes`.

    Example:
        >>> from hubbub import GRR, Random
        >>> ask = Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3)
        >>> key, ids = AskKey("0" * 32, ask.ask_id), ReportIds(Random(seed=1), lambda numbers: [])
        >>> name = AnswerName("popular", run=0, step=3, round=1, part=0)
        >>> opened = OpenAsk(key, name, ask, 0.0, 60.0, 70.0, ask.mechanism.empty(), ids)
        >>> opened.takes(69.9), opened.takes(70.0), opened.question
        (True, False, 'popular')
    """

    key: AskKey
    name: AnswerName
    """What its reports are called."""
    ask: Ask
    opens: float
    closes: float
    until: float
    sketch: Sketch
    ids: ReportIds
    final: bool = False
    keeps: bool = False
    """Whether single reports are kept."""
    shuffled: bytes | None = None
    """The hash of the batch that shufflers handed on."""

    @property
    def question(self) -> str:
        """Which question it is of."""
        return self.name.question

    @property
    def number(self) -> int:
        """Its step, or the run of a study."""
        return self.name.run or self.name.step

    @property
    def place(self) -> AnswerPlace:
        """What its reports are called, and of which collection they are."""
        return AnswerPlace(self.key.collection, self.name)

    @cached_property
    def opener(self) -> ReportOpener:
        """Opens its reports."""
        return ReportOpener(self.ask.mechanism)

    def takes(self, now: float) -> bool:
        """Whether a report that comes now still counts."""
        return not self.final and self.opens <= now < self.until


class Board:
    """The asks whose ids are held, and when asks that are not published yet will be.

    Example:
        >>> board = Board()
        >>> board.asks, board.find(AnswerPlace("0" * 32, AnswerName("popular", 0, 3, 1, 0)))
        ({}, None)
    """

    def __init__(self, ceilings: Ceilings | None = None) -> None:
        self.asks: dict[AskKey, OpenAsk] = {}
        self.expected: dict[AnswerPlace, float] = {}
        self.ceilings = ceilings or Ceilings()
        self._places: dict[AnswerPlace, OpenAsk] = {}

    def add(self, ask: OpenAsk) -> None:
        """Put up an ask; another with the same name is refused: reports could not tell the two apart."""
        if self._places.setdefault(ask.place, ask) is not ask:
            raise InvalidValue("ask", str(ask.name), "a name that no other ask has")
        self.asks[ask.key] = ask

    def drop(self, key: AskKey) -> None:
        """Take an ask away."""
        del self._places[self.asks.pop(key).place]

    def find(self, place: AnswerPlace) -> OpenAsk | None:
        """The ask whose reports are called so."""
        return self._places.get(place)

    def of(self, collection: str, question: str) -> list[OpenAsk]:
        """The asks of a question."""
        return [ask for key, ask in self.asks.items() if key.collection == collection and ask.question == question]

    def held(self) -> int:
        """How many ids are held."""
        return sum(len(ask.ids) for ask in list(self.asks.values()))

    def room(self, ask: OpenAsk) -> int:
        """How many more reports an ask takes."""
        most = self.ceilings.kept_ask if ask.keeps else self.ceilings.ask
        return max(min(most - len(ask.ids), self.ceilings.held - self.held()), 0)

    def open(self, collection: str, now: float) -> list[OpenAsk]:
        """The asks of a collection that devices may answer now, by question, round and part."""
        asked = [
            ask
            for key, ask in list(self.asks.items())  # a copy: others look while the writer opens and closes
            if key.collection == collection and not ask.final and ask.opens <= now < ask.closes
        ]
        return sorted(asked, key=lambda ask: ask.name)
