"""PEM's rivals: what each finds where it must, what its reports spend, and that drawn supports are those of reports."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers, GroupAnswers, ReportedAnswers
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, Extensions, FoundValues
from hubbub_papers.baselines.heavy_hitters.prefixes import pem1, priv_trie, search_prefixes
from hubbub_papers.baselines.heavy_hitters.segments import (
    channel_blocks,
    cuts_of,
    multiple_channels,
    pair_segments,
    segment_pairs,
)
from hubbub_papers.baselines.heavy_hitters.tree_hist import CountSketchAnswers, tree_hist

LIMIT = 1 << 12
METHODS: dict[str, Callable[..., FoundValues]] = {
    "PEM": partial(search_prefixes, lengths=(10, 18, 24)),
    "PEM1": pem1,
    "PEM1, split": partial(pem1, divided=False),
    "SPM": partial(segment_pairs, query_limit=LIMIT),
    "SPM, divided": partial(segment_pairs, query_limit=LIMIT, divided=True),
    "HASH": partial(multiple_channels, query_limit=LIMIT),
    "HASH, divided": partial(multiple_channels, query_limit=LIMIT, divided=True),
    "PrivTrie": partial(priv_trie, printed=False),
    "PrivTrie, divided": partial(priv_trie, printed=False, divided=True),
    "TreeHist": tree_hist,
    "TreeHist, divided": partial(tree_hist, divided=True),
}
SPENT = dict.fromkeys(("PEM", "PEM1", "SPM, divided", "HASH, divided", "PrivTrie, divided"), 1.0)
SPENT |= {"PEM1, split": 0.5, "SPM": 1 / 3, "HASH": 0.5}
"""The part of epsilon that each report spends."""


def coded(numbers: list[int]) -> NDArray[np.uint64]:
    return np.array(numbers, dtype=np.uint64)


def crowd(n: int = 200_000, bits: int = 24) -> BitPopulation:
    """Three values that stand out, with different halves, and a hundred rare ones."""
    strings = [0xABC123, 0x5500FF, 0x0F9D42, *(0x100000 + 70_001 * rare for rare in range(100))]
    shares = np.array([0.4, 0.3, 0.2, *[0.001] * 100])
    shifted = [string << (bits - 24) for string in strings]
    return BitPopulation.counted(shifted, np.rint(n * shares).astype(np.int64), bits)


@pytest.mark.parametrize("name", METHODS)
def test_what_stands_out_is_found(name: str) -> None:
    people = crowd(400_000 if name.startswith("TreeHist") else 100_000)
    result = METHODS[name](people, k=4, epsilon=6.0, rng=Random(seed=3))
    assert result.values[:3] == people.ranked(3)
    assert np.abs(result.shares[:3] - [0.4, 0.3, 0.2]).max() < 0.05  # ten standard errors of the noisiest of them


@pytest.mark.parametrize("name", [name for name in METHODS if name != "PEM"])  # PEM1 takes the same way
def test_strings_of_more_than_64_bits(name: str) -> None:
    people = crowd(400_000 if name.startswith("TreeHist") else 50_000, bits=72)
    assert people.values.dtype == object
    options = {"query_limit": 1 << 16} if isinstance(METHODS[name], partial) and name[:3] in ("SPM", "HAS") else {}
    result = METHODS[name](people, k=2, epsilon=8.0, rng=Random(seed=1), **options)
    assert result.values[:1] == people.ranked(1)


@pytest.mark.parametrize("name", SPENT)
def test_what_reports_spend(name: str) -> None:
    """Each person's reports spend epsilon together: a part in each, or one report of one person."""
    spent: list[tuple[float, int]] = []

    def make_answers(codes: NDArray[Any], people: NDArray[np.int64], epsilon: float, rng: Random) -> GroupAnswers:
        spent.append((epsilon, people.size))
        return DrawnAnswers(codes, people, epsilon, rng)

    people = crowd(30_000)
    METHODS[name](people, k=4, epsilon=3.0, rng=Random(seed=1), make_answers=make_answers)
    assert {epsilon for epsilon, _ in spent} == {3.0 * SPENT[name]}
    total = sum(epsilon * size for epsilon, size in spent)
    assert total <= 3.0 * people.n * (1 + 1e-9)
    if name != "PrivTrie, divided":  # which stops where it has found enough
        assert total == pytest.approx(3.0 * people.n)


def test_drawn_supports_are_those_of_reports() -> None:
    """Of the same people, over 300 runs: means and variances of a held, a rare and an absent code, and of the best of
    1,024. A mean is within 5 standard errors (below 1e-5 in all), a variance within 40% (7 of its errors)."""
    codes, people = coded([7, 900, 12]), np.repeat([0, 1], [900, 100])
    rows: dict[type[GroupAnswers], list[list[float]]] = {DrawnAnswers: [], ReportedAnswers: []}
    for kind, samples in rows.items():
        for run in range(300):
            answers = kind(codes, people, 1.0, Random(seed=run))
            best, supports = answers.best(Extensions.everything(10), 40)
            support_of = dict(zip(best.tolist(), supports.tolist(), strict=True))
            not_held = [support for code, support in support_of.items() if code not in (7, 900)]
            best_of_each = answers.best_of_each(Extensions(np.arange(2), 9))
            samples.append([*answers.support(codes), not_held[0], not_held[-1], int(best_of_each[0] == 7)])
    drawn, reported = (np.array(rows[kind]) for kind in rows)
    errors = np.sqrt((drawn.var(axis=0) + reported.var(axis=0)) / 300) + 1e-9
    assert (np.abs(drawn.mean(axis=0) - reported.mean(axis=0)) < 5 * errors).all()
    ratio = drawn[:, :5].var(axis=0) / reported[:, :5].var(axis=0)
    assert ((ratio > 0.6) & (ratio < 1.67)).all()
    # What a report supports by chance, off by 30%, is far outside.
    assert abs(1.3 * drawn[:, 2].mean() - reported[:, 2].mean()) > 20 * errors[2]


def test_supporters_are_as_many_as_the_support() -> None:
    codes, people = coded([7, 900]), np.repeat([0, 1], [900, 100])
    for kind in (DrawnAnswers, ReportedAnswers):
        answers = kind(codes, people, 1.0, Random(seed=1))
        best, supports = answers.best(Extensions.everything(10), 5)
        assert answers.supporters(best).sum(axis=1).tolist() == supports.tolist()


@pytest.mark.parametrize("name", ["SPM", "SPM, divided", "HASH", "HASH, divided", "PEM1"])
def test_on_real_reports(name: str) -> None:
    people = crowd(30_000)
    result = METHODS[name](people, k=4, epsilon=8.0, rng=Random(seed=2), make_answers=ReportedAnswers)
    assert result.values[:2] == people.ranked(2)


def test_real_reports_are_of_64_bits() -> None:
    with pytest.raises(InvalidValue, match="64 bits"):
        ReportedAnswers(np.array([1 << 70], dtype=object), np.zeros(1, dtype=np.int64), 1.0, Random(seed=1))


def test_queries_stay_within_the_limit() -> None:
    for bits, k in ((64, 16), (64, 32), (160, 16), (48, 64)):
        cuts = cuts_of(bits, channel_blocks(bits, k, 1 << 20))
        assert sum(math.ceil(k**1.5) << (stop - start) for start, stop in cuts) <= 1 << 20
        segments = pair_segments(bits, k, 1 << 20)
        values = sum(1 << (stop - start) for start, stop in cuts_of(bits, segments))
        assert values + math.comb(segments, 2) * k * k <= 1 << 20
        assert (cuts[0][0], cuts[-1][1]) == (0, bits)


def test_a_threshold() -> None:
    for name in ("PEM", "PEM1", "SPM, divided", "HASH, divided", "PrivTrie", "TreeHist"):
        people = crowd(400_000 if name == "TreeHist" else 100_000)
        result = METHODS[name](people, k=8, epsilon=6.0, rng=Random(seed=1), threshold=0.25)
        assert result.values == people.ranked(2), name
    assert METHODS["PEM"](crowd(), k=8, epsilon=6.0, rng=Random(seed=1), threshold=0.9).values == []


def test_known_prefixes_are_extended() -> None:
    """Where the last group's prefixes are the true ones (Table 4.3), what only they can lead to is found."""
    people = BitPopulation.counted([0xABC123], np.array([20_000]), 24)
    for run in range(5):  # the first groups' answers are noise
        found = search_prefixes(people, (2, 4, 24), k=1, epsilon=0.05, rng=Random(seed=run), known=True)
        assert [value >> 20 for value in found.values] == [0xA]


def test_a_count_sketch_is_unbiased() -> None:
    """Means of 200 runs within 5 standard errors: below 1e-5. Its deviation is what it says, to a third."""
    codes = np.repeat(coded([3, 500]), [600, 400])
    sketches = [CountSketchAnswers(codes, 1.0, Random(seed=run)) for run in range(200)]
    shares = np.array([sketch.shares(coded([3, 500, 9])) for sketch in sketches])
    errors = shares.std(axis=0) / math.sqrt(200)
    assert (np.abs(shares.mean(axis=0) - [0.6, 0.4, 0.0]) < 5 * errors).all()
    assert shares[:, 2].std() == pytest.approx(sketches[1].deviation, rel=0.34)
