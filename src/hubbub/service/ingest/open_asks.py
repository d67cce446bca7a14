"""Published asks with the reports to them so far: open until their time is over, then final."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginFailed
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask
from hubbub.service.base.limits import Ceilings
from hubbub.service.ingest.frames import ReportOpener
from hubbub.service.ingest.report_ids import ReportIds
from hubbub.service.store.base import AskKey


class AnswerPlace(NamedTuple):
    """Which ask a report answers, as the report names it, and in which collection."""

    collection: str
    name: AnswerName


@dataclass(eq=False)
class OpenAsk:
    """Reports to `ask` count from `opens` until `until`, which is the collection's lateness after `closes`."""

    key: AskKey
    name: AnswerName
    """The name that its reports carry."""
    ask: Ask
    opens: float
    closes: float
    until: float
    sketch: Sketch
    ids: ReportIds
    final: bool = False
    keeps: bool = False
    """Whether the single reports are stored, in addition to the sketch."""
    shuffled: bytes | None = None
    """The hash of the batch that shufflers delivered; None until then."""
    failure: PluginFailed | None = None
    """What the mechanism, of another package, raised when its reports were to be counted."""

    @property
    def question(self) -> str:
        """The question that is asked."""
        return self.name.question

    @property
    def number(self) -> int:
        """The step, or the run of a study, that is asked."""
        return self.name.run or self.name.step

    @property
    def place(self) -> AnswerPlace:
        """The name that its reports carry, and their collection."""
        return AnswerPlace(self.key.collection, self.name)

    @cached_property
    def opener(self) -> ReportOpener:
        """Reads its reports from their bytes."""
        return ReportOpener(self.ask.mechanism)

    def takes(self, now: float) -> bool:
        """Whether a report that comes now still counts."""
        return not self.final and self.opens <= now < self.until


class Board:
    """The asks whose report ids are still held (`asks`), and when known later asks will open (`expected`)."""

    def __init__(self, ceilings: Ceilings | None = None) -> None:
        self.asks: dict[AskKey, OpenAsk] = {}
        self.expected: dict[AnswerPlace, float] = {}
        self.ceilings = ceilings or Ceilings()
        self.counting: tuple[str, str] | None = None
        """The collection and the question whose reports are being counted."""
        self._places: dict[AnswerPlace, OpenAsk] = {}

    def add(self, ask: OpenAsk) -> None:
        """Add an ask. Another ask with the same name is refused: reports to the two could not be told apart."""
        if self._places.setdefault(ask.place, ask) is not ask:
            raise InvalidValue("ask", str(ask.name), "a name that no other ask has")
        self.asks[ask.key] = ask

    def drop(self, key: AskKey) -> None:
        """Remove an ask."""
        del self._places[self.asks.pop(key).place]

    def find(self, place: AnswerPlace) -> OpenAsk | None:
        """The ask whose reports carry this name."""
        return self._places.get(place)

    def of(self, collection: str, question: str) -> list[OpenAsk]:
        """The asks of a question."""
        return [ask for key, ask in self.asks.items() if key.collection == collection and ask.question == question]

    def ids_held(self) -> int:
        """How many ids are held."""
        return sum(len(ask.ids) for ask in list(self.asks.values()))

    def room(self, ask: OpenAsk) -> int:
        """How many more reports an ask takes."""
        most = self.ceilings.kept_ask if ask.keeps else self.ceilings.ask
        return max(min(most - len(ask.ids), self.ceilings.held - self.ids_held()), 0)

    def open(self, collection: str, now: float) -> list[OpenAsk]:
        """The asks of a collection that devices may answer now, by question, round and part."""
        answerable = [
            ask
            for key, ask in list(self.asks.items())  # a copy: other threads read while the writer changes it
            if key.collection == collection and not ask.final and ask.opens <= now < ask.closes
        ]
        return sorted(answerable, key=lambda ask: ask.name)
