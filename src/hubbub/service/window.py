"""An ask that was published, with what came in: open until its time is over, then final for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask
from hubbub.service.limits import Ceilings
from hubbub.service.seen import Seen
from hubbub.service.store.base import AskKey
from hubbub.service.template import Template

__all__ = ["Board", "Window"]


@dataclass(eq=False)
class Window:
    """Reports to `ask` count from `opens` until `until`, which is the collection's lateness after `closes`.

    Example:
        >>> from hubbub import GRR, Random
        >>> ask = Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3)
        >>> key, seen = AskKey("0" * 32, ask.ask_id), Seen(Random(seed=1), lambda numbers: [])
        >>> window = Window(key, "popular", ask, 0.0, 60.0, 70.0, ask.mechanism.empty(), seen)
        >>> window.takes(69.9), window.takes(70.0)
        (True, False)
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
        >>> Board().windows
        {}
    """

    def __init__(self, ceilings: Ceilings | None = None) -> None:
        self.windows: dict[AskKey, Window] = {}
        self.expected: dict[AskKey, float] = {}
        self.ceilings = ceilings or Ceilings()

    def held(self) -> int:
        """How many ids are held."""
        return sum(len(window.seen) for window in list(self.windows.values()))

    def room(self, window: Window) -> int:
        """How many more reports a window takes."""
        most = self.ceilings.kept_ask if window.keeps else self.ceilings.ask
        return max(min(most - len(window.seen), self.ceilings.held - self.held()), 0)

    def open(self, collection: str, now: float) -> list[Window]:
        """The windows of a collection that devices may answer now, oldest first."""
        asked = [
            window
            for key, window in list(self.windows.items())  # a copy: others look while the writer opens and closes
            if key.collection == collection and not window.final and window.opens <= now < window.closes
        ]
        return sorted(asked, key=lambda window: window.question)
