"""Parts of estimates and comparisons of them: known covariances, independence, and what is refused."""

from dataclasses import replace

import numpy as np
import polars
import pyarrow
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.statistics.selection import Selected

DRINKS = ("tea", "coffee", "water")
TRUTH = np.array([0.5, 0.3, 0.2])
PEOPLE = np.repeat(np.arange(3), [500, 300, 200])
GRR = hb.GRR(epsilon=1.0, domain=list(DRINKS))


def estimated(seed: int) -> Estimate:
    codes = [DRINKS[code] for code in PEOPLE]
    return GRR.estimate(GRR.accumulate(GRR.randomize(codes, hb.Random(seed=seed))))


def test_a_part_has_its_value_its_error_and_its_name():
    estimate = estimated(1)
    assert estimate["coffee"].value.tolist() == [estimate.value[1]]
    assert estimate["coffee"].variance.tolist() == [estimate.variance[1]]
    assert estimate[2].labels == ("water",)
    both = estimate[["water", "tea"]]
    assert both.value.tolist() == [estimate.value[2], estimate.value[0]]
    assert both["tea"].value.tolist() == [estimate.value[0]]
    assert replace(estimate, labels=None)["1"].names() == ("1",)


@pytest.mark.parametrize("name", ["milk", 3, -1, True, 1.5, [0, "milk"]])
def test_what_is_no_part_is_refused(name):
    with pytest.raises(InvalidValue, match=r"label|position"):
        estimated(1)[name]


def test_an_estimate_is_no_sequence_of_numbers():
    with pytest.raises(TypeError):
        list(estimated(1))  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        assert "tea" in estimated(1)  # type: ignore[misc]


def test_differences_and_ratios_of_values_of_one_estimate_cover():
    # 600 runs at 95%: fewer than 543 hold the truth with probability below 1e-5. GRR's two values are negatively
    # correlated: without the covariance the interval of the difference would hold it in about 90% of the runs.
    runs, held = 600, np.zeros(3, dtype=int)
    independent = 0
    for seed in range(runs):
        estimate = estimated(seed)
        tea, coffee = estimate["tea"], estimate["coffee"]
        answers = (tea - coffee, hb.ratio(tea, coffee), hb.log_ratio(tea, coffee))
        truths = (0.2, 5 / 3, np.log(5 / 3))
        for place, (answer, truth) in enumerate(zip(answers, truths, strict=True)):
            low, high = answer.interval()
            held[place] += bool(low[0] <= truth <= high[0])
        reach = 1.96 * np.sqrt(tea.variance + coffee.variance)
        independent += bool(abs((tea - coffee).value[0] - 0.2) <= reach[0])
    assert (held >= 543).all(), held
    assert independent < 560  # the planted bug: errors taken for independent


def test_estimates_of_different_reports_are_independent():
    monday, friday = estimated(1), estimated(2)
    change = friday - monday
    assert change.value == pytest.approx(friday.value - monday.value)
    assert change.variance == pytest.approx(friday.variance + monday.variance)
    assert (change.n, change.labels, change.bounds) == (2000, DRINKS, (-1.0, 1.0))
    assert (friday["tea"] - monday["coffee"]).labels == ("tea - coffee",)
    assert (friday - monday["tea"]).labels == ("tea - tea", "coffee - tea", "water - tea")
    assert hb.ratio(friday["tea"], monday["tea"]).n == 2000


def test_estimates_that_share_reports_are_refused():
    sketch = GRR.accumulate(GRR.randomize([DRINKS[code] for code in PEOPLE], hb.Random(seed=3)))
    first, second = GRR.estimate(sketch), GRR.estimate(sketch)
    with pytest.raises(InvalidValue, match="share reports"):
        first - second
    with pytest.raises(InvalidValue, match="share reports"):
        hb.ratio(first["tea"], second["coffee"])
    with pytest.raises(InvalidValue, match="share reports"):
        first["tea"].counts() - first["coffee"].counts()
    change = first - estimated(4)
    with pytest.raises(InvalidValue, match="share reports"):
        change - second
    by_hand = Estimate([0.4, 0.6], [1e-4, 1e-4], 100)
    with pytest.raises(InvalidValue, match="share reports"):
        by_hand[0].of_population(1000) - by_hand[1]


def test_what_does_not_fit_together_is_refused():
    estimate = estimated(1)
    with pytest.raises(InvalidValue, match="as many values"):
        estimate - estimated(2)[["tea", "water"]]
    with pytest.raises(InvalidValue, match="same values"):
        estimate - estimated(2)[["water", "tea", "coffee"]]
    with pytest.raises(InvalidValue, match="normal errors"):
        estimate["tea"] - Selected(np.array([0.5]), np.array([0.01]), 10, cut=0.4)
    unknown = Estimate([0.4, 0.6], [1e-4, 1e-4], 100)
    with pytest.raises(InvalidValue, match="declares their covariance"):
        hb.ratio(unknown[0], unknown[1])
    assert (unknown[1] - unknown[0]).stderr.tolist() == pytest.approx([0.02])  # the worst covariance


def test_a_ratio_to_nothing_has_no_end():
    above, below = Estimate([0.3], [1e-4], 100), Estimate([0.001], [1e-4], 100)
    low, high = hb.ratio(above, below).interval()
    assert low[0] > 0
    assert high[0] == np.inf


def test_data_frames_have_the_intervals():
    estimate = estimated(1)
    low, high = estimate.interval()
    frame = polars.DataFrame(estimate)
    assert frame.columns == ["label", "value", "low", "high", "stderr"]
    assert frame["low"].to_list() == low.tolist()
    assert pyarrow.table(estimate)["high"].to_pylist() == high.tolist()
    assert estimate.to_polars().equals(frame)
    assert estimate.to_pandas()["label"].tolist() == list(DRINKS)


def test_notebooks_show_bars():
    text = estimated(1)._repr_html_()
    assert text.count("<tr>") == 4
    assert "1,000 reports, bias: none" in text
    assert "&lt;b&gt;" in Estimate([0.5], [0.1], 5, labels=("<b>",))._repr_html_()
    assert "<table>" in hb.plan(domain=16, n=1000, epsilon=1.0)._repr_html_()
    assert "holds" in hb.audit(GRR)._repr_html_()


def test_a_distribution_is_told_by_its_quartiles_and_drawn_in_order():
    wave = hb.SquareWave(epsilon=2.0, low=0, high=100)
    ages = np.arange(4000) % 100
    distribution = wave.estimate(wave.accumulate(wave.randomize(ages, hb.Random(seed=6))))
    assert len(repr(distribution)) < 200
    bars = distribution.bars()
    assert [bar.name for bar in bars][:2] == ["0 to 5", "5 to 10"]
    assert len(bars) == 20
    assert sum(bar.value for bar in bars) == pytest.approx(1.0)
