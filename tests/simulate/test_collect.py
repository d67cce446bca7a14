"""Collecting a population: everyone answers once, in parts, and the parts add up."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.simulate.conversation import collect
from hubbub.simulate.conversation import collect as collect_function


@pytest.mark.parametrize("chunk", [1, 7, 1000, 1 << 18])
def test_chunks_change_nothing_where_a_report_draws_one_block(chunk: int):
    oue = hb.OUE(epsilon=1.0, domain=16)
    values = np.arange(200) % 16
    assert collect(oue, values, hb.Random(seed=3), chunk=chunk) == oue.accumulate(
        oue.randomize(values, hb.Random(seed=3))
    )


@pytest.mark.parametrize("shards", [1, 2, 3, 50])
def test_everyone_is_counted_once_in_any_number_of_shards(shards: int):
    # At epsilon 40 a report is the truth but for a chance of 2e-17 a person.
    grr = hb.GRR(epsilon=40.0, domain=5)
    values = np.arange(41) % 5
    sketch = collect(grr, values, hb.Random(seed=1), chunk=3, shards=shards)
    assert sketch.n == 41
    assert sketch.counts.tolist() == np.bincount(values).tolist()


def test_shards_draw_from_streams_of_their_own_and_differ_from_call_to_call():
    grr = hb.GRR(epsilon=0.1, domain=2)
    rng = hb.Random(seed=1)
    values = np.zeros(4000, dtype=np.int64)
    first, second = (collect(grr, values, rng, shards=2).counts for _ in range(2))
    again = collect(grr, values, hb.Random(seed=1), shards=2).counts
    assert first.tolist() == again.tolist()
    # Two independent binomial counts of variance 1,000 are equal with probability 0.009; this seed's are not.
    assert first.tolist() != second.tolist()


def test_memory_is_bounded_by_the_size_of_reports(monkeypatch: pytest.MonkeyPatch):
    she = hb.SHE(epsilon=1.0, domain=1024)
    largest = 0
    randomize = hb.SHE.randomize

    def watch(self, values, rng):
        nonlocal largest
        largest = max(largest, len(values))
        return randomize(self, values[:1], rng)  # one is enough: what is asked for is what is watched

    monkeypatch.setattr(hb.SHE, "randomize", watch)
    collect(she, np.zeros(100_000, dtype=np.int64), hb.Random(seed=1))
    assert 0 < largest * she.report_bytes <= 1 << 26


def test_nobody_is_an_empty_sketch():
    grr = hb.GRR(epsilon=1.0, domain=2)
    assert collect(grr, [], hb.Random(seed=1)) == grr.empty()
    assert collect(grr, [], hb.Random(seed=1), shards=4) == grr.empty()


@pytest.mark.parametrize("field", ["chunk", "shards"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_bad_sizes_are_refused(field: str, value: object):
    with pytest.raises(InvalidValue, match=field):
        collect_function(hb.GRR(epsilon=1.0, domain=2), [0], hb.Random(seed=1), **{field: value})
