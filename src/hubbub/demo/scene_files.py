"""The collections of the demonstration as files (TOML), with the length of their steps filled in."""

import json
from collections.abc import Sequence

from hubbub.core.errors import InvalidValue

_LONGEST_STEP = 3600
_SCHEDULE = """
[schedule]
step = "{step}s"
lateness = "{lateness}s"
origin = {origin}
retention = "1d"
"""
_EMOJI = """
name = "emoji"
version = 1
title = "Which emoji people use"
trust = "{trust}"
{schedule}
[privacy]
event = {epsilon}
window = {{ epsilon = {week}, steps = 7 }}
minimum_batch = 20
[fields.used]
kind = "categorical"
names = {names}
[questions.popular]
title = "Which emoji is used most?"
kind = "histogram"
field = "used"
epsilon = {epsilon}
"""
FLIGHTS = """
name = "flights"
version = 1
title = "How New York's flights fared in the blizzard of February 2013"
{schedule}
[privacy]
event = 2.0
window = {{ epsilon = 2.0, steps = 6 }}
minimum_batch = 20
[fields.departure]
kind = "categorical"
names = {names}
[questions.punctuality]
title = "Does your flight leave on time?"
kind = "stream"
field = "departure"
epsilon = 2.0
method = "LPA"
w = 6
[alarms.blizzard]
question = "punctuality"
title = "flights that are cancelled"
weights = {{ cancelled = 1 }}
above = 0.4
clears = 0.25
false_alarms = "1 in 1d"
"""
_AIRCRAFT = """
name = "aircraft"
version = 1
title = "How far New York's aircraft flew in the blizzard of February 2013"
trust = "{trust}"
{schedule}
[privacy]
window = {{ epsilon = {epsilon}, steps = {hours} }}
minimum_batch = 20
[fields.distance]
kind = "categorical"
names = {names}
[questions.went]
title = "How far did your aircraft fly, last today?"
kind = "changes"
field = "distance"
epsilon = {epsilon}
steps = {hours}
changes = 3
"""
FARES = """
name = "fares"
version = 1
title = "What a taxi ride costs in New York"
{schedule}
[privacy]
event = 2.0
window = {{ epsilon = 14.0, steps = 7 }}
minimum_batch = 20
[fields.fare]
kind = "numeric"
low = -0.25
high = 59.75
cells = 24
[questions.paid]
title = "How much was the fare, in dollars?"
kind = "distribution"
field = "fare"
epsilon = 2.0
quantiles = [0.5, 0.95]
"""
"""Fares are whole or half dollars, and no edge of a cell is: every fare is inside a cell."""
WORDS = """
name = "words"
version = 1
title = "Which words people say, of words that nobody listed"
{schedule}
[privacy]
event = 4.0
window = {{ epsilon = 4.0, steps = 3 }}
minimum_batch = 20
[fields.word]
kind = "strings"
longest = 24
[questions.common]
title = "Which words are the most common?"
kind = "top"
field = "word"
epsilon = 4.0
k = 6
longest = 4
start = "1970-01-01T00:00Z"
round = "{step}s"
every = "{thrice}s"
"""


def emoji_file(
    names: Sequence[str],
    step_seconds: int,
    *,
    epsilon: float = 1.0,
    trust: str = "local",
    lateness: int | None = None,
    origin: int = 0,
) -> str:
    """The file of the collection about emoji, for reports that go to the collector or to shufflers."""
    budget = {"trust": trust, "epsilon": epsilon, "week": 7 * epsilon}
    return scene_file(_EMOJI, step_seconds, names=names, lateness=lateness, origin=origin, **budget)


def aircraft_file(
    names: Sequence[str],
    step_seconds: int,
    *,
    steps: int,
    epsilon: float = 4.0,
    trust: str = "local",
    lateness: int | None = None,
    origin: int = 0,
) -> str:
    """The file of the collection about aircraft, followed over horizons of a number of steps."""
    given = {"hours": steps, "epsilon": epsilon, "trust": trust}
    return scene_file(_AIRCRAFT, step_seconds, names=names, lateness=lateness, origin=origin, **given)


def scene_file(
    template: str,
    step_seconds: int,
    *,
    names: Sequence[str] = (),
    lateness: int | None = None,
    origin: int = 0,
    **values: object,
) -> str:
    """The file that a template makes, with the names of its field and the length of its steps.

    Parameters
    ----------
    template
        A collection's file with places to fill in.
    lateness
        For how many seconds reports are taken after their step; unless given, so few that a stream can ask twice a
        step.
    origin
        When step 0 begins, in Unix seconds.
    values
        What else the template needs.
    """
    if isinstance(step_seconds, bool) or not 1 <= step_seconds <= _LONGEST_STEP:
        raise InvalidValue("step", step_seconds, f"from 1 to {_LONGEST_STEP} seconds")
    if lateness is None:
        lateness = 1 if step_seconds >= 3 else 0
    schedule = _SCHEDULE.format(step=step_seconds, lateness=lateness, origin=origin)
    listed = json.dumps(list(names), ensure_ascii=False)
    return template.format(schedule=schedule, names=listed, step=step_seconds, thrice=3 * step_seconds, **values)
