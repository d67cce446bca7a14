"""What the ledger asks of a clock: which step it is, and how much time has surely passed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hubbub.core.errors import HubbubError


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
