"""Streams of changes whose symbols are shuffled step by step: the bounds of whole reports hold for them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import Random, amplify
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Transcript
from hubbub.privacy.amplify import amplified_delta, bounds
from hubbub.privacy.shuffle_bounds import COARSE
from hubbub.protocols.changes.net_stream import NetStream
from hubbub.protocols.changes.stream import ChangeStream

Batches = tuple[tuple[bytes, ...], ...]
"""For each step, the reports of all devices without their order."""


@cache
def told(stream: ChangeStream, level: int, values: tuple[int, ...]) -> dict[Transcript, float]:
    """The chance of everything that a device with these values may send, step after step."""
    transcripts = stream.transcripts(level, list(values))
    assert transcripts is not None
    return {transcript: float(chance) for transcript, chance in transcripts.items()}


def mixed(crowd: Sequence[dict[Transcript, float]]) -> dict[Batches, float]:
    """The chance of all batches of a crowd: what each device sends in a step is mixed with the others'."""
    chances: dict[Batches, float] = {(): 1.0}
    for number, device in enumerate(crowd):
        joined: defaultdict[Batches, float] = defaultdict(float)
        for batches, chance in chances.items():
            for transcript, other in device.items():
                before = batches if number else ((),) * len(transcript)
                after = tuple(tuple(sorted((*batch, sent))) for batch, sent in zip(before, transcript, strict=True))
                joined[after] += chance * other
        chances = dict(joined)
    return chances


def exact_delta(first: dict[Batches, float], other: dict[Batches, float], epsilon: float) -> float:
    return math.fsum(max(0.0, chance - math.exp(epsilon) * other.get(seen, 0.0)) for seen, chance in first.items())


def worst_delta(stream: ChangeStream, level: int, n: int, epsilon: float) -> float:
    """The exact delta over all pairs of sequences of one device, and all sequences of the others."""
    sequences = list(product((0, 1), repeat=stream.steps))
    worst = 0.0
    for others in combinations_with_replacement(sequences, n - 1):
        crowd = [told(stream, level, values) for values in others]
        seen = {values: mixed([told(stream, level, values), *crowd]) for values in sequences}
        worst = max(
            [worst, *(exact_delta(seen[first], seen[other], epsilon) for first, other in permutations(seen, 2))]
        )
    return worst


STREAMS = [
    (ChangeStream(epsilon=1.0, dimension=1, steps=2, changes=1), 0, 2),
    (ChangeStream(epsilon=2.0, dimension=1, steps=2, changes=2), 0, 3),
    (ChangeStream(epsilon=1.5, dimension=1, steps=2, changes=1), 1, 3),
    (ChangeStream(epsilon=2.0, dimension=1, steps=3, changes=1), 0, 2),
    (NetStream(epsilon=1.0, dimension=1, steps=2, changes=1), 0, 2),
    (NetStream(epsilon=2.0, dimension=1, steps=2, changes=2, sizes=(2, 2), thresholds=(2, 1)), 0, 3),
    (NetStream(epsilon=1.5, dimension=1, steps=2, changes=2, sizes=(4, 2), thresholds=(1, 1)), 0, 2),
]


@pytest.mark.parametrize(("stream", "level", "n"), STREAMS)
def test_no_bound_is_below_brute_force(stream: ChangeStream, level: int, n: int) -> None:
    whole = stream.mechanisms[level]
    for part in (0.1, 0.4, 0.8):
        epsilon = part * stream.epsilon
        assert worst_delta(stream, level, n, epsilon) <= amplified_delta(whole, n=n, epsilon=epsilon) + 1e-12


def absent_from(transcripts: Iterable[tuple[Transcript, float]], step: int) -> dict[Transcript, float]:
    """What a device sends that is away from a step on."""
    left: defaultdict[Transcript, float] = defaultdict(float)
    for transcript, chance in transcripts:
        left[(*transcript[:step], *(b"" for _ in transcript[step:]))] += chance
    return dict(left)


def test_a_bound_that_counts_those_who_miss_a_step_is_none() -> None:
    """Five others who are away from the second step hide nothing of it: the bound of six devices does not hold."""
    stream, epsilon = ChangeStream(epsilon=2.0, dimension=1, steps=2, changes=2), 1.4
    sequences = list(product((0, 1), repeat=2))
    away = [absent_from(told(stream, 0, (0, 0)).items(), 1) for _ in range(5)]
    seen = [mixed([told(stream, 0, values), *away]) for values in sequences]
    exact = max(exact_delta(first, other, epsilon) for first, other in permutations(seen, 2))
    whole = stream.mechanisms[0]
    assert exact > amplified_delta(whole, n=6, epsilon=epsilon) + 0.05
    assert exact <= amplified_delta(whole, n=1, epsilon=epsilon) + 1e-12


def by_chance(whole: Mechanism, n: int, share: float, epsilon: float) -> float:
    """The delta proved for a device on a level, where each of n - 1 others is on it with probability `share`."""
    sizes = binom.pmf(np.arange(n), n - 1, share)
    deltas = [amplified_delta(whole, n=1 + others, epsilon=epsilon, cells=COARSE) for others in range(n)]
    return float(sizes @ deltas)


def test_how_many_are_on_a_level_is_chance() -> None:
    """The bound of the expected number on a level would be none."""
    stream, n, delta = ChangeStream(epsilon=2.0, dimension=1, steps=4, changes=2), 100, 1e-3
    found = amplify(stream, n=n, delta=delta)
    assert found.epsilon < stream.epsilon
    assert max(by_chance(whole, n, share, found.epsilon) for share, whole in stream.whole_reports) <= delta * 1.01
    expected = max(amplify(whole, n=int(n * share), delta=delta).epsilon for share, whole in stream.whole_reports)
    assert max(by_chance(whole, n, share, expected) for share, whole in stream.whole_reports) > 1.05 * delta


def test_the_central_epsilon_of_a_stream_is_that_of_its_worst_level() -> None:
    stream = ChangeStream(epsilon=2.0, dimension=5, steps=24, changes=3, one=True)
    n, delta = 100_000, 1e-6
    if_as_expected = [amplify(whole, n=int(n * share), delta=delta).epsilon for share, whole in stream.whole_reports]
    found = amplify(stream, n=n, delta=delta)
    assert 1 < found.epsilon / max(if_as_expected) < 1.005
    assert (found.delta, found.valid, found.one_batch) == (delta, True, False)
    assert found.epsilon < 0.1 < 2.0
    assert {bound.method for bound in bounds(stream, n=n, delta=delta)} == {
        "blanket",
        "clones",
        "stronger clones",
        "local",
    }
    with pytest.raises(InvalidValue, match="fakes"):
        amplify(stream, n=n, delta=delta, fakes=1)


def test_levels_are_arcs_of_the_whole_circle() -> None:
    stream = ChangeStream(epsilon=4.0, dimension=1, steps=1024, changes=2)
    assert sum(arc.length for arc in stream.parts) == 2**32
    assert min(arc.length for arc in stream.parts) > 0.001 * 2**32  # else devices would refuse to answer
    for arc, part in stream.parts.items():
        level = stream.lengths.index(arc.length)
        assert part.mechanisms == stream.mechanisms
        assert part.effective_epsilon == stream.effective_epsilon
        assert set(part.enroll(20, Random(seed=1))["level"].tolist()) == {level}
