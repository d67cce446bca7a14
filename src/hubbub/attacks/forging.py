"""Forged reports: what moves an answer furthest, and what does so while it looks genuine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from hubbub.checks.influence import accepted_reports
from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import bucket, hash32
from hubbub.core.reports import Bools, Floats, Ints, Reports, Words
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.unary import Unary
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.random.integers import unpack
from hubbub.random.source import Random
from hubbub.simulate.fleet import Wire

Style = Literal["plain", "padded"]
"""Whether forged reports say nothing but what they want to, or are padded to look genuine each for itself."""
TRIES = 1000
"""The seeds that a forger looks through for one that puts all targets into one bucket."""
Read = Callable[[ReportFormat, Reports], float]
"""The number that a single report stands for."""


def forge(oracle: FrequencyOracle, targets: Sequence[int], count: int, rng: Random, style: Style) -> Reports:
    """Forged reports that each support all target codes if they can, or as many as the forger finds a way to.

    Padded ones support as many values as those of honest devices do.
    """
    if isinstance(oracle, Unary):
        return _unary(oracle, targets, count, rng, style)
    if isinstance(oracle, LocalHashing):
        return _hashed(oracle, np.asarray(targets, dtype=np.uint64), count, rng, style)
    return repeated(strongest(oracle, lambda _, report: _support(oracle, report, targets), rng), count)


def _support(oracle: FrequencyOracle, report: Reports, targets: Sequence[int]) -> float:
    return float(oracle.supports(report, np.asarray(targets, dtype=np.uint64)).sum())


def _unary(oracle: Unary, targets: Sequence[int], count: int, rng: Random, style: Style) -> Reports:
    bits = np.zeros((count, oracle.size), dtype=np.uint8)
    if style == "padded":
        honest = oracle.randomize(oracle.example_values(1) * count, rng)
        ones = unpack(honest.private["bits"], oracle.size).sum(axis=1)
        for row, number in enumerate(np.maximum(ones.astype(np.int64) - len(targets), 0)):
            others = np.setdiff1d(np.arange(oracle.size), targets)
            bits[row, others[rng.permutation(others.size)[:number]]] = 1
    bits[:, list(targets)] = 1
    packed = np.packbits(bits, axis=1, bitorder="little")
    return Reports(oracle.spec_id, private={"bits": packed})


def _hashed(oracle: LocalHashing, targets: Words, count: int, rng: Random, style: Style) -> Reports:
    """Plain: the best seed of many, over and over. Padded: a good seed for each report, found anew."""
    wanted, tries = (1, TRIES * 10) if style == "plain" else (count, TRIES if targets.size > 1 else 1)
    seeds, buckets = np.empty(wanted, dtype=np.uint64), np.empty(wanted, dtype=np.int64)
    for row in range(wanted):
        drawn = oracle.randomize(oracle.example_values(1) * tries, rng).public["seed"]
        hashed = bucket(hash32(drawn[:, None], targets[None, :]), oracle.buckets).astype(np.int64)
        votes = np.stack([(hashed == number).sum(axis=1) for number in range(min(oracle.buckets, 64))])
        best = int(votes.max(axis=0).argmax())
        seeds[row], buckets[row] = drawn[best], int(votes[:, best].argmax())
    column = next(column for column in oracle.columns if column.name == "bucket")
    public, private = {"seed": seeds}, {"bucket": buckets.astype(column.dtype)}
    return repeated(Reports(oracle.spec_id, public=public, private=private), count)


def strongest(mechanism: Mechanism, read: Read, rng: Random, most: int = 512) -> Reports:
    """The one report, among all that the format check accepts or some of many, that stands for the largest number."""
    listed, reports = accepted_reports(mechanism, rng)
    if listed and len(reports) > most:  # numbers on a grid: the ends are among the first and the last
        rows = np.unique(np.linspace(0, len(reports) - 1, most).astype(np.int64))
        reports = reports[rows]
    numbers = [read(mechanism, reports[row : row + 1]) for row in range(len(reports))]
    best = int(np.argmax(numbers))
    return reports[best : best + 1]


def repeated(reports: Reports, count: int) -> Reports:
    """The reports again and again, as many as are wanted."""
    return reports[np.resize(np.arange(len(reports)), count)]


def added(make: Callable[[Ask], Reports]) -> Wire:
    """What arrives where forged devices answer every ask, too."""

    def wire(ask: Ask, sent: Iterator[Reports]) -> Iterator[Reports]:
        yield from sent
        yield make(ask)

    return wire


def lying(value: Values, count: int, rng: Random, *, style: Style = "padded") -> Wire:
    """Forged devices that want one value to look common, whatever is asked of it (a prefix, a code, a bucket)."""

    def make(ask: Ask) -> Reports:
        oracle = ask.mechanism
        if not isinstance(oracle, FrequencyOracle) or isinstance(oracle, Stateful):
            raise InvalidValue("mechanism", type(oracle).__name__, "a frequency oracle without a memory")
        seen = ask.view.look(value, rng)
        return forge(oracle, [int(oracle.encode(seen)[0])], count, rng, style)

    return added(make)


def supports_of(oracle: FrequencyOracle, reports: Reports, values: Values) -> Bools:
    """Whether each report (row) supports each value (column): what an adversary scores guesses by."""
    own = oracle.log_prob(reports, values)
    return np.asarray(own == own.max(axis=1, keepdims=True))


@lru_cache(maxsize=64)
def code_range(size: int) -> tuple[int, ...]:
    """All codes of a domain."""
    return tuple(range(size))


def scores(oracle: Mechanism, reports: Reports, size: int) -> Floats:
    """The logarithm of each report's (row) probability given each code (column)."""
    return oracle.log_prob(reports, list(code_range(size)))


def guesses(score: Floats, rng: Random) -> Ints:
    """The code of the largest score of each row; ties are broken at random."""
    noise = rng.uint32(score.size).reshape(score.shape) * 2.0**-32 * 1e-9
    return np.asarray((score + noise).argmax(axis=1))
