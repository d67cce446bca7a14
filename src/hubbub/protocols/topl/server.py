"""The server of ToPL for a stream of single values: what it asks each device, and its estimates from the reports."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Means
from hubbub.protocols.topl.stream import clipping_of, topl
from hubbub.protocols.topl.threshold import search_wave

_MOST = 1 << 40


@dataclass(frozen=True, kw_only=True)
class ToPL:
    """The settings of ToPL for a stream in which every value belongs to another device and is reported once.

    The first `holdout` devices report by square waves, from which the threshold is estimated. Every later device clips
    its value to the threshold and reports by the hybrid mechanism; `every` such reports in a row make a step, whose
    mean is estimated. A report spends `effective_epsilon`, at most `epsilon`: nobody has to be trusted with a value.

    Parameters
    ----------
    epsilon
        What a report may spend.
    bound
        The largest possible value, known beforehand.
    holdout
        How many devices report for the search of the threshold (the paper's m).
    max_range
        How many values a range that is summed later has at most (the paper's r).

    References
    ----------
    T. Wang et al., 2021, section 4.
    """

    epsilon: float
    bound: float
    holdout: int = 1 << 14
    max_range: int = 1 << 20
    every: int = 1024

    def __post_init__(self) -> None:
        units_of(self.epsilon)
        bound = self.bound
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < math.inf:
            raise InvalidValue("bound", bound, "a finite number above 0")
        for name in ("holdout", "max_range", "every"):
            check_integer(name, getattr(self, name), 1, _MOST)
        _ = self.effective_epsilon  # refuse what the mechanisms refuse

    @property
    def effective_epsilon(self) -> float:
        """What a report of either mechanism spends at most, computed from the mechanisms' integers."""
        units = units_of(self.epsilon)
        hybrid = Means(0.0, self.bound).mechanism(units)
        return max(search_wave(units).effective_epsilon, hybrid.effective_epsilon)

    def spec(self) -> dict[str, Json]:
        """The settings as JSON."""
        return asdict(self)


class ToPLServer:
    """Takes the reports in their order. Its `state` is only sums of reports and the threshold, never a value.

    `state`: the `state` of an earlier server, to go on from; None to begin anew.
    """

    def __init__(self, settings: ToPL, state: Mapping[str, Any] | None = None) -> None:
        self.settings = settings
        self._memory = Memory(None if state is None else state["memory"])
        protocol = topl(
            epsilon=settings.epsilon, most=settings.bound, r=1, reach=settings.max_range, memory=self._memory
        )
        self._conversation = Conversation(protocol, rounds=1, parts=1)
        self._open = self.ask.mechanism.empty()
        if state is not None:
            self._open += Sketch.from_bytes(state["open"])

    @property
    def state(self) -> dict[str, Any]:
        """All that another server needs to go on from here."""
        return {"memory": self._memory.state(), "open": self._open.to_bytes()}

    @property
    def ask(self) -> Ask:
        """The ask for the next devices."""
        (ask,) = self._conversation.asks
        return ask

    @property
    def room(self) -> int:
        """How many more reports complete the search or the present step."""
        return (self.settings.holdout if self.theta is None else self.settings.every) - self._open.n

    @property
    def theta(self) -> float | None:
        """The threshold that values are clipped to; None during the search."""
        return None if self.ask.step == 1 else float(self.ask.mechanism.high)  # type: ignore[attr-defined]

    @property
    def clipping(self) -> dict[str, Estimate]:
        """The share of devices above the threshold, and what clipping hides of the mean; empty during the search."""
        return clipping_of(self._memory)

    @property
    def steps(self) -> int:
        """How many steps are complete."""
        return max(self.ask.step - 2, 0)

    @property
    def position(self) -> int:
        """How many devices have reported."""
        searched = 0 if self.theta is None else self.settings.holdout
        return searched + self.steps * self.settings.every + self._open.n

    def add(self, sketch: Sketch) -> Estimate | None:
        """Add at most `room` reports. Returns the mean of the step if they complete one."""
        if sketch.n > self.room:
            raise InvalidValue("sketch", f"{sketch.n} reports", f"at most {self.room}")
        self._open += sketch
        if self.room:
            return None
        searching = self.theta is None
        self._conversation.reply(self.ask.ask_id, self._open)
        release = self._conversation.listen()
        assert isinstance(release, Release)
        self._open = self.ask.mechanism.empty()
        return None if searching else release.estimate
