"""A private collection from end to end: people, their devices, a server in several parts, and what it learns."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency import norm_sub
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch
from hubbub.data import fetch
from hubbub.mechanisms import FAMILIES, MECHANISMS
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect

SINGLES = 5
SHARDS = 8
_FEWEST, _MOST = 100, 10_000_000
_EMOJI, _TWEETS = 969, 156_941


@dataclass(frozen=True, eq=False)
class Crowd:
    """People with one value each: the truth, which only a simulation has.

    Parameters
    ----------
    source
        Where they come from, in a sentence.
    labels, names
        The values, and each spelled out in letters, for a font without emoji.
    codes
        The value of each person.
    """

    source: str
    labels: tuple[str, ...]
    names: tuple[str, ...]
    codes: NDArray[np.int64]

    @property
    def n(self) -> int:
        """How many people there are."""
        return self.codes.size

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """The share of the people that holds each value."""
        return np.bincount(self.codes, minlength=len(self.labels)) / self.n

    def values(self, start: int, stop: int) -> list[str]:
        """What some of the people hold."""
        return [self.labels[code] for code in self.codes[start:stop]]

    def error(self, estimate: Estimate) -> float:
        """The root mean square of an estimate's errors, over all values."""
        return float(np.sqrt(np.mean((estimate.value - self.truth) ** 2)))


def emoji_crowd(n: int | None, rng: Random, say: Callable[[str], None] | None = None) -> Crowd:
    """One person for each of 156,941 emoji seen in tweets, or n people drawn from them.

    Raises `DataError` where the data set is not cached and cannot be fetched; `say` is told when it is fetched.
    """
    from hubbub.data import emoji

    _check_n(n)
    fetch("emoji", progress=say)
    counts = emoji()
    labels = tuple(map(str, counts.labels))
    names = tuple(unicodedata.name(label[0], f"u+{ord(label[0]):04x}").lower() for label in labels)
    sampled = "" if n is None else f"{n:,} people drawn from "
    source = f"{sampled}{counts.n:,} uses of {len(labels)} emoji in tweets (Emoji Sentiment Ranking 1.0, CC BY-SA 4.0)"
    return Crowd(source, labels, names, counts.population(rng, n))


def zipf_crowd(n: int | None, rng: Random) -> Crowd:
    """An invented crowd of the same size: value k is held in proportion to 1/k."""
    from hubbub.data import zipf

    _check_n(n)
    names = tuple(f"value {k}" for k in range(1, _EMOJI + 1))
    people = _TWEETS if n is None else n
    source = f"{people:,} invented people over {_EMOJI} values, value k in proportion to 1/k (Zipf)"
    return Crowd(source, names, names, zipf(people, _EMOJI, 1.0, rng))


@dataclass(frozen=True)
class CrowdSender:
    """One device: the value of its owner, the report it sent, and what the report reveals.

    `before` and `after` are the probabilities that an observer gives to the owner's value, without and with the report,
    if the observer thought all values equally likely before.
    """

    holds: str
    sent: bytes
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Demo:
    """The result of one collection, from devices to estimate.

    Parameters
    ----------
    crowd, mechanism
        Who reported, and how.
    clients
        The first few devices, one by one.
    shards
        The sketches of the parts of the server; the first is of those few devices.
    merged
        The sketch that merging the shards gave. `digests` are the sha256 of its bytes for each order of merging.
    estimate
        What the server learns.
    """

    crowd: Crowd
    mechanism: FrequencyOracle
    clients: tuple[CrowdSender, ...]
    shards: tuple[Sketch, ...]
    merged: Sketch
    digests: dict[str, str]
    estimate: Estimate

    @property
    def identical(self) -> bool:
        """Whether every order of merging gave the same bytes."""
        return len(set(self.digests.values())) == 1

    @cached_property
    def covered(self) -> int:
        """How many of the values lie within their 95% intervals."""
        low, high = self.estimate.interval(0.95)
        return int(((low <= self.crowd.truth) & (self.crowd.truth <= high)).sum())

    @cached_property
    def consistent(self) -> Estimate:
        """The estimate after Norm-Sub: shares of at least 0 that sum to 1."""
        return norm_sub(self.estimate)

    @cached_property
    def threshold(self) -> float:
        """The share above which an estimate is more than chance (Eq 3.13)."""
        return self.mechanism.threshold(self.crowd.n)


def demo(crowd: Crowd, *, epsilon: float, rng: Random, progress: Callable[[int, int], object] | None = None) -> Demo:
    """Randomise everyone's value as their device would, fold the reports in shards, merge, and estimate.

    Parameters
    ----------
    crowd
        The people.
    epsilon
        What one report may spend; `adaptive` chooses the mechanism for it.
    rng
        A seeded stream: a simulation. A device leaves the seed out.
    progress
        Called with how many people have reported, and of how many.
    """
    mechanism = adaptive(epsilon=epsilon, domain=crowd.labels)
    clients, first = _singles(crowd, mechanism, rng)
    edges = np.linspace(SINGLES, crowd.n, SHARDS + 1).astype(int).tolist()
    shards = [first]
    for shard, (start, stop) in enumerate(pairwise(edges)):
        shards.append(collect(mechanism, crowd.values(start, stop), rng.child("shard", shard)))
        if progress is not None:
            progress(stop, crowd.n)
    merged = reduce(add, shards)
    orders = {
        "first to last": merged,
        "last to first": reduce(add, shards[::-1]),
        "shuffled": reduce(add, [shards[i] for i in rng.child("order").permutation(len(shards))]),
    }
    digests = {order: hashlib.sha256(sketch.to_bytes()).hexdigest() for order, sketch in orders.items()}
    return Demo(crowd, mechanism, clients, tuple(shards), merged, digests, mechanism.estimate(merged))


@dataclass(frozen=True)
class Other:
    """The result of another mechanism with the same people.

    `predicted` is the root mean square standard error over all values by its formula, None if there is none;
    `measured` is the root mean square error; `estimates` are those of the most common values.
    """

    mechanism: str
    report_bytes: int
    predicted: float | None
    measured: float
    estimates: dict[str, float]


def compare(
    run: Demo, rng: Random, *, most: int = 3, progress: Callable[[int, int, str], object] | None = None
) -> list[Other]:
    """The mechanism of a demo, then every other, each of which collects from everyone again.

    Parameters
    ----------
    run, rng
        The demo, and a seeded stream.
    most
        How many of the values held by most people to show the estimates of.
    progress
        Called with how many mechanisms are done, of how many, and which is next.
    """
    crowd = run.crowd
    everyone = crowd.values(0, crowd.n)
    compared = [_other(run.mechanism, crowd, run.estimate, most)]
    kinds: list[type[Any]] = [
        MECHANISMS[name] for name in FAMILIES["frequency"] if name != type(run.mechanism).__name__
    ]
    for done, kind in enumerate(kinds):
        if progress is not None:
            progress(done, len(kinds), kind.__name__)
        mechanism = kind(epsilon=run.mechanism.epsilon, domain=crowd.labels)
        sketch = collect(mechanism, everyone, rng.child("other", kind.__name__))
        compared.append(_other(mechanism, crowd, mechanism.estimate(sketch), most))
    return compared


def _other(mechanism: Mechanism, crowd: Crowd, estimate: Estimate, most: int) -> Other:
    predicted = None
    if isinstance(mechanism, FrequencyOracle):
        # The variance is linear in the share and the shares sum to 1: its mean is the variance at their mean.
        predicted = math.sqrt(mechanism.variance(crowd.n, 1 / mechanism.size))
    top = np.argsort(-crowd.truth, kind="stable")[:most]
    return Other(
        type(mechanism).__name__,
        mechanism.report_bytes,
        predicted,
        crowd.error(estimate),
        {crowd.labels[i]: float(estimate.value[i]) for i in top},
    )


def _singles(crowd: Crowd, mechanism: FrequencyOracle, rng: Random) -> tuple[tuple[CrowdSender, ...], Sketch]:
    clients, sketch = [], mechanism.empty()
    for person, holds in enumerate(crowd.values(0, SINGLES)):
        report = mechanism.randomize([holds], rng.child("client", person))
        sketch = sketch + mechanism.accumulate(report)
        sent = b"".join(column.tobytes() for column in (*report.public.values(), *report.private.values()))
        likelihood = np.exp(mechanism.log_prob(report, crowd.labels)[0])
        after = float(likelihood[crowd.codes[person]] / likelihood.sum())
        clients.append(CrowdSender(holds, sent, 1 / len(crowd.labels), after))
    return tuple(clients), sketch


def _check_n(n: int | None) -> None:
    if n is not None and not _FEWEST <= n <= _MOST:
        raise InvalidValue("n", n, f"an integer from {_FEWEST} to {_MOST}")
