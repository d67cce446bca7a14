"""A clock in doubt, in words."""

from __future__ import annotations

from hubbub.service.trusted_clock import ClockStatus, moment


def clock_notice(status: ClockStatus) -> str | None:
    """What to say of the collector's clock; nothing while there is no doubt about it."""
    if status.state == "sure":
        return None
    jump = f"{_length(status.ahead)} {'ahead of' if status.ahead > 0 else 'behind'}"
    if status.state == "in doubt":
        return (
            f"The clock is in doubt: it says {moment(status.wall)}, {jump} the time that is accounted for. Collection "
            f"goes on by {moment(status.trusted)}. If the clock stays, it is believed in "
            f"{_length(status.seconds_left)}."
        )
    return (
        f"The clock has moved: within the last day it was set {jump} the time that was accounted for. Collection goes "
        "on by it. If the clock goes back, so does the collection; for a day nothing is deleted because of the jump."
    )


def _length(seconds: float) -> str:
    """A length of time in its largest unit."""
    size = abs(seconds)
    for name, unit in (("year", 365 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if size >= unit or name == "second":
            number = round(size / unit)
            return f"{number} {name}{'' if number == 1 else 's'}"
    raise AssertionError(seconds)
