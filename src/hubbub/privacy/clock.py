"""What the ledger asks of a clock: which step it is, and how much time has surely passed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.spec import Json

__all__ = ["MOST_STEP", "LedgerClock", "Observation", "StepClock", "StepRefused"]

MOST_STEP = 1 << 62


class Observation(NamedTuple):
    """What a clock showed, and the trusted time up to then; whole ticks of the clock, kept by the ledger."""

    step: int
    wall: int
    monotonic: int
    trusted: int


class LedgerClock(Protocol):
    """A clock whose readings the ledger keeps between uses: `observe` continues from the last of them."""

    @property
    def interval(self) -> int:
        """The length of a step, in ticks."""
        ...

    @property
    def origin(self) -> int:
        """Where step 0 begins, in ticks of the wall clock."""
        ...

    def spec(self) -> dict[str, Json]:
        """What must not change while a ledger lives."""
        ...

    def observe(self, last: Observation | None) -> Observation:
        """The clock now. Trusted time never runs ahead of true time."""
        ...


class StepRefused(HubbubError):
    """The device does not answer this step: it is in another one, or its clock cannot be trusted.

    Example:
        >>> raise StepRefused(3, "the device is in step 5")
        Traceback (most recent call last):
            ...
        hubbub.privacy.clock.StepRefused: step 3: the device is in step 5
    """

    def __init__(self, step: int, why: str) -> None:
        self.step = step
        self.why = why
        super().__init__(f"step {step}: {why}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.step, self.why)


class StepClock:
    """A clock for simulations: the step is simply set, and trusted time follows it.

    Parameters
    ----------
    step
        Where it begins.

    Example:
        >>> clock = StepClock()
        >>> clock.step = 7
        >>> clock.observe(None).step
        7
    """

    interval = 1
    origin = 0

    def __init__(self, step: int = 0) -> None:
        self.step = step

    def spec(self) -> dict[str, Json]:
        """Its kind.

        Example:
            >>> StepClock().spec()
            {'clock': 'step'}
        """
        return {"clock": "step"}

    def observe(self, last: Observation | None) -> Observation:
        """The step that was set; one set back adds no trusted time.

        Example:
            >>> StepClock(5).observe(StepClock(3).observe(None)).trusted
            2
        """
        step = self.step
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < MOST_STEP:
            raise InvalidValue("step", step, "an integer from 0, below 2^62")
        trusted = 0 if last is None else last.trusted + max(0, step - last.step)
        return Observation(step, step, step, trusted)
