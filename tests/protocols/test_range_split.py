"""SC: products of scores are unbiased, with the variance they say; and beat HIO where dimensions are many."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.planning.ranges import expected_stderr
from hubbub.protocols.ranges import split
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.split import SC, SplitTable
from hubbub.random.source import Random

N = 600
PLANE = (Dimension.ordinal(9, fanout=3), Dimension.categorical(4), Dimension.categorical(2))
GENERATOR = np.random.default_rng(5)
RECORDS = np.stack(
    [np.minimum(GENERATOR.geometric(0.25, N) - 1, 8), GENERATOR.integers(0, 4, N), np.arange(N) % 2], axis=1
)
PRICE = GENERATOR.exponential(3.0, N)
BOX = RangeQuery([(1, 6), {0, 1, 3}, None], "price")
TRUTH = PRICE[(RECORDS[:, 0] >= 1) & (RECORDS[:, 0] <= 6) & (RECORDS[:, 1] != 2)].sum()


def errors(runs: int) -> tuple[np.ndarray, float]:
    sc = SC(6.0, PLANE)
    answers = [
        SplitTable(sc, sc.randomize(RECORDS, Random(seed=run)), {"price": PRICE}).answer(BOX) for run in range(runs)
    ]
    difference = np.array([answer.value[0] for answer in answers]) - TRUTH
    variance = np.array([answer.variance[0] for answer in answers])
    return difference / np.sqrt(variance.mean()), float(np.mean(difference**2 < 1.96**2 * variance))


def test_the_error_is_what_the_variance_says_in_a_few_runs() -> None:
    """The bounds are some four deviations: passed by chance once in 10^4."""
    off, _ = errors(120)
    assert abs(off.mean()) < 4 / np.sqrt(120)
    assert np.mean(off**2) == pytest.approx(1.0, abs=0.55)


@pytest.mark.slow
def test_the_error_is_what_the_variance_says() -> None:
    """10,000 runs: the mean square is off by 1.4% (a deviation), and by 5% once in 2,500 by chance."""
    off, coverage = errors(10_000)
    assert abs(off.mean()) < 4 / 100
    assert np.mean(off**2) == pytest.approx(1.0, abs=0.05)
    assert 0.93 < coverage < 0.97


def test_wrong_rates_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: supports of which a fifth is lost."""
    real_supported = split._supported
    monkeypatch.setattr(split, "_supported", lambda *given: 0.8 * real_supported(*given))
    off, _ = errors(120)
    assert abs(off.mean()) > 4 / np.sqrt(120)


def test_answers_are_exact_where_nothing_is_flipped() -> None:
    sc = SC(1000.0, PLANE)
    table = SplitTable(sc, sc.randomize(RECORDS, Random(seed=1)), {"price": PRICE})
    assert table.answer(BOX).value[0] == pytest.approx(TRUTH, rel=1e-6)
    assert table.answer(RangeQuery([None] * 3)).value[0] == N


def test_sc_beats_hio_where_one_of_eight_dimensions_is_asked_for() -> None:
    dimensions = (Dimension.ordinal(625),) * 4 + (Dimension.categorical(10),) * 4
    query = RangeQuery([(100, 420), *[None] * 7])
    assert SC(5.0, dimensions).expected_stderr(query, 10**6) < expected_stderr(HIO(5.0, dimensions), query, 10**6)


def test_the_forecast_is_the_error_of_people_spread_evenly() -> None:
    """The estimated variance has a small spread of its own: 15% is far outside it."""
    sc = SC(6.0, PLANE)
    even = np.stack([np.arange(9 * N) % 9, np.arange(9 * N) // 9 % 4, np.zeros(9 * N, dtype=int)], axis=1)
    query = RangeQuery([(1, 6), {0, 1, 3}, None])
    answer = SplitTable(sc, sc.randomize(even, Random(seed=1))).answer(query)
    assert answer.stderr[0] == pytest.approx(sc.expected_stderr(query, 9 * N), rel=0.15)


def test_bad_input_is_refused() -> None:
    sc = SC(6.0, PLANE)
    reports = sc.randomize(RECORDS, Random(seed=1))
    with pytest.raises(InvalidValue, match="price: got 3; allowed: 600 numbers"):
        SplitTable(sc, reports, {"price": [1.0] * 3})
    with pytest.raises(InvalidValue, match="measure: got 'fee'"):
        SplitTable(sc, reports).answer(RangeQuery([None] * 3, "fee"))
    with pytest.raises(InvalidValue, match="box"):
        SplitTable(sc, reports).answer(RangeQuery([None]))
    with pytest.raises(InvalidValue, match="epsilon"):
        SC(1e-12, PLANE)
    assert sum(sc.oracle(level).event().spent for level in sc.levels) <= 6 * 10**12
