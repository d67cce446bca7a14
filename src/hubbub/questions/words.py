"""What an epsilon means, in plain words. Every number is an upper bound and is rounded up, so the words stay true."""

import math
from decimal import ROUND_CEILING, Context, Decimal

from hubbub.core.event import UNITS_PER_EPSILON

_LARGEST = 700.0
NO_LIMIT = 20.0
"""Beyond this an observer can be all but certain: a number would only look like a promise."""


def rounded_up(number: float, digits: int = 3) -> str:
    """The number with `digits` significant digits, rounded up."""
    exact = Context(prec=12).create_decimal(Decimal(number))
    return f"{Context(prec=digits, rounding=ROUND_CEILING).plus(exact).normalize():,f}"


def epsilon_text(units: int) -> str:
    """An amount in units of 1e-12 epsilon, written as an epsilon."""
    return rounded_up(units / UNITS_PER_EPSILON, digits=4)


def times_text(epsilon: float) -> str:
    """How many times as likely a report can be under one value as under another: e^epsilon."""
    return rounded_up(math.exp(epsilon)) if epsilon < NO_LIMIT else f"e^{rounded_up(min(epsilon, 1e15))}"


def sure_text(epsilon: float) -> str:
    """How sure of a value an observer can become who thought two values equally likely before."""
    if epsilon > NO_LIMIT:
        return "all but 100%"
    unsure = 100 / (1 + math.exp(min(epsilon, _LARGEST)))
    digits = 3 + max(0, -math.floor(math.log10(unsure)) - 1)
    return f"{rounded_up(100 - unsure, digits)}%"


def odds_text(epsilon: float) -> str:
    """What a report can reveal at most, as a likelihood ratio and as an observer's certainty."""
    return (
        f"at most {times_text(epsilon)} times as likely under one value as under any other: an observer who thought "
        f"two values equally likely before can be at most {sure_text(epsilon)} sure of either after"
    )


def listed(names: list[str]) -> str:
    """Names joined as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
