"""The guarantees of alarms in words."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.alarms.watch import WatchedQuantity

JUMPS = (1.0, 4.0)
"""The jumps whose delays are given, in standard errors of a step."""


def once_in(seconds: float) -> str:
    """A long time in words, rounded down."""
    for size, name in ((365.25 * 86400, "year"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 2 * size:
            return f"{int(seconds / size * (1 + 1e-9)):,} {name}s"
    return f"{seconds:.0f} seconds"


def false_alarms_a_day(watches: Sequence[WatchedQuantity], step_seconds: int) -> float:
    """The most false alarms a day to expect of all watched quantities together, on average, if no step is missed."""
    return sum(watch.false_alarms for watch in watches) * 86400 / step_seconds


def guarantee_text(watches: Sequence[WatchedQuantity], step_seconds: int) -> str:
    """The guarantee for the watched quantities of one alarm, or of all alarms of a collection."""
    rate = sum(watch.false_alarms for watch in watches)
    learnt = [watch.test.threshold is None for watch in watches]
    null = "nothing ever changes" if all(learnt) else "the truth is always at the threshold"
    if any(learnt) and not all(learnt):
        null = "the truth is always at the threshold, or never changes"
    error = ", with the error of the baseline counted" if any(learnt) else ""
    of = f" of all {len(watches)} watched together" if len(watches) > 1 else ""
    return f"at most one false alarm in {once_in(step_seconds / rate)} on average{of}, even if {null}{error}"


def delays_text(watch: WatchedQuantity) -> str:
    """How fast jumps of some standard errors of a step are found."""
    texts: list[str] = []
    for jump in JUMPS:
        delay = watch.delay(jump)
        errors = f"{jump:g}" if texts else f"{jump:g} standard error"
        found = "not in time" if delay is None else f"within {delay} step{'s' * (delay != 1)}"
        texts.append(f"of {errors} {found}")
    return f"half of the jumps {', '.join(texts)}"
