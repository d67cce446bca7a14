import io
from dataclasses import FrozenInstanceError, replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from rich.console import Console

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise

VALUE = np.array([0.5, 0.3, 0.25, -0.05])
NOISES = {
    "independent": Noise(floor=1e-3, slope=2e-4),
    "negative": Noise(floor=1e-3, slope=2e-4, pair_floor=-1e-4, pair_slope=-2e-4),
    "sampled": Noise(floor=1e-3, slope=2e-4, pair_floor=-1e-4, pair_slope=-2e-4, sampling=1e-3),
}


def covariance(noise: Noise, share: np.ndarray) -> np.ndarray:
    """Noise's formulas, entry by entry."""
    matrix = np.empty((share.size, share.size))
    for i, a in enumerate(share):
        for j, b in enumerate(share):
            if i == j:
                matrix[i, j] = noise.floor + noise.slope * a + noise.sampling * a * (1 - a)
            else:
                matrix[i, j] = noise.pair_floor + noise.pair_slope * (a + b) - noise.sampling * a * b
    return matrix


def estimate(noise: Noise, value: np.ndarray = VALUE) -> Estimate:
    return Estimate(value, noise.variance(value), 1000, noise=noise)


# -- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_are_normal(level: float):
    shares = Estimate(value=[0.2, 0.7], variance=[0.01, 0.04], n=10)
    low, high = shares.interval(level)
    reach = NormalDist().inv_cdf((1 + level) / 2)
    assert low.tolist() == pytest.approx([0.2 - reach * 0.1, 0.7 - reach * 0.2])
    assert high.tolist() == pytest.approx([0.2 + reach * 0.1, 0.7 + reach * 0.2])
    assert shares.stderr.tolist() == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan")])
def test_levels_are_probabilities(level: float):
    with pytest.raises(InvalidValue, match="level"):
        Estimate(value=[0.2], variance=[0.01], n=10).interval(level)


# -- linear -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@given(weights=st.lists(st.lists(st.floats(-2, 2), min_size=4, max_size=4), min_size=1, max_size=3))
def test_linear_uses_the_whole_covariance(noise: Noise, weights: list[list[float]]):
    rows = np.array(weights)
    answer = estimate(noise).linear(rows)
    matrix = covariance(noise, VALUE)
    assert answer.value == pytest.approx(rows @ VALUE)
    assert answer.variance == pytest.approx(
        np.maximum(np.einsum("ri,ij,rj->r", rows, matrix, rows), 0), rel=1e-9, abs=1e-15
    )


def test_linear_without_a_declared_covariance_takes_the_worst():
    quantities = Estimate(value=VALUE, variance=[1e-4, 2e-4, 3e-4, 4e-4], n=10, bias="consistent", kind="quantity")
    answer = quantities.linear([1, -1, 2, 0])
    assert answer.variance.tolist() == pytest.approx([(1e-2 + 2e-4**0.5 + 2 * 3e-4**0.5) ** 2])
    assert quantities.linear([0, 0, 2, 0]).variance.tolist() == pytest.approx([4 * 3e-4])
    assert (answer.bias, answer.kind, answer.n) == ("consistent", "quantity", 10)


def test_an_exact_total_has_no_variance():
    # The counts of a mechanism that reports one value each always sum to n.
    noise = Noise(floor=3e-4, slope=0.0, pair_floor=-1e-4)
    assert estimate(noise).linear(np.ones(4)).variance.tolist() == pytest.approx([0.0], abs=1e-18)


@pytest.mark.parametrize(
    "weights", [[1, 2, 3], [[1, 2, 3]], [[[1, 2, 3, 4]]], [1, 2, 3, float("nan")], [1, 2, 3, float("inf")]]
)
def test_weights_fit_the_values(weights):
    with pytest.raises(InvalidValue, match="weights"):
        estimate(NOISES["negative"]).linear(weights)


# -- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_subtracting_the_mean_keeps_the_form(noise: Noise):
    share = np.array([0.4, 0.3, 0.2, 0.1])
    centring = np.eye(4) - 1 / 4
    expected = centring @ covariance(replace(noise, sampling=0.0), share) @ centring.T
    centred = covariance(replace(noise.centred(4, share.sum()), sampling=0.0), share)
    assert centred == pytest.approx(expected, abs=1e-15)


def test_sampling_is_multinomial():
    # 40,000 draws of 100 out of 10,000: variances and covariances within 5 standard errors (4%), failure 1e-5.
    share = np.array([0.6, 0.3, 0.1])
    people = np.round(share * 10_000).astype(int)
    sampled = np.random.default_rng(5).multivariate_hypergeometric(people, 100, size=40_000) / 100
    expected = covariance(Noise(0.0, 0.0).sampled(100, 10_000), share)
    assert np.cov(sampled.T) == pytest.approx(expected, rel=0.04, abs=2e-5)


def test_a_population_adds_its_sampling_variance():
    sample = estimate(NOISES["negative"])
    population = sample.of_population(4000)
    clipped = np.clip(VALUE, 0, 1)
    assert population.variance == pytest.approx(sample.variance + clipped * (1 - clipped) / 1000 * 0.75)
    assert population.value.tolist() == sample.value.tolist()
    assert population.noise is not None
    assert population.noise.sampling == pytest.approx(0.75 / 1000)
    assert sample.of_population(1000).variance.tolist() == pytest.approx(sample.variance.tolist())
    with pytest.raises(InvalidValue, match="size"):
        sample.of_population(999)


def test_a_total_of_a_sample_is_sure():
    # All shares of a sample add up to 1, however it was drawn: sampling adds nothing to their sum.
    share = np.array([0.5, 0.3, 0.2])
    population = Estimate(share, np.zeros(3), 1000, noise=Noise(0.0, 0.0)).of_population(4000)
    assert population.linear([1, 1, 1]).variance.tolist() == pytest.approx([0.0], abs=1e-15)


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_counts_and_top_and_names():
    shares = Estimate(value=[0.1, 0.6, 0.3], variance=[0, 0, 0], n=200, labels=("a", "b", "c"))
    assert shares.counts().value.tolist() == pytest.approx([20, 120, 60])
    assert shares.top(2).tolist() == [1, 2]
    assert list(shares.names()) == ["a", "b", "c"]
    assert list(replace(shares, labels=None).names()) == ["0", "1", "2"]
    with pytest.raises(InvalidValue, match="kind"):
        replace(shares, kind="quantity").counts()


def test_an_estimate_cannot_be_written_to():
    given_value = np.array([0.5, 0.5])
    shares = Estimate(value=given_value, variance=[0, 0], n=5)
    given_value[0] = 9
    assert shares.value.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        shares.value[0] = 1
    with pytest.raises(FrozenInstanceError):
        shares.n = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong", [{"variance": [0.0]}, {"labels": ("a",)}, {"bias": "some"}], ids=["variance", "labels", "bias"]
)
def test_estimates_fit_together(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Estimate(**{"value": [0.5, 0.5], "variance": [0.0, 0.0], "n": 5, **wrong})


HOSTILE = ("<script>alert(1)</script>", "\"&'", "[bold]red[/bold] [/x]", r"$\bad$")


def test_html_is_escaped():
    page = replace(estimate(NOISES["negative"]), labels=HOSTILE)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "&quot;&amp;&#x27;" in page


def shown(estimate: Estimate) -> str:
    """The table of an estimate, as text."""
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(estimate)
    return console.export_text()


def test_a_table_shows_the_largest_with_intervals():
    text = shown(Estimate(value=np.linspace(1, 0, 30), variance=np.full(30, 1e-4), n=12345))
    assert "12,345 reports" in text
    assert "10 more" in text
    assert "0.9804 to 1 " in text  # 1.02 is no share
    assert "bias: none" in text


def test_labels_in_a_table_are_not_markup():
    assert "[bold]red[/bold] [/x]" in shown(replace(estimate(NOISES["negative"]), labels=HOSTILE))


def test_repr_is_short():
    text = repr(Estimate(value=np.linspace(1, 0, 3000), variance=np.zeros(3000), n=7))
    assert len(text) < 300
    assert "n=7" in text


def test_plots_are_axes_without_a_display():
    labelled = replace(estimate(NOISES["negative"]), labels=("a", "b", "c", "d"))
    axes = labelled.plot(most=3)
    assert axes.get_xlabel() == "share of 1,000 reports"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c", "b", "a"]
    assert len(axes.patches) == 3
    again = labelled.plot(ax=axes, color="red")
    assert again is axes
    for drawn in (axes, replace(labelled, labels=HOSTILE).plot()):  # labels are not formulas
        assert isinstance(drawn.figure, Figure)
        drawn.figure.savefig(io.BytesIO())


def test_a_value_of_which_nothing_is_known_spoils_only_the_sums_it_is_in() -> None:
    estimate = Estimate(value=np.array([0.5, 0.0]), variance=np.array([0.01, np.inf]), n=10)
    sums = estimate.linear([[1, 0], [0, 1], [2, 1]])
    assert sums.variance.tolist() == [0.01, np.inf, np.inf]


def test_an_interval_around_another_centre_holds_the_value_too():
    smooth = Estimate([0.0, 0.5, 9.0], [0.01, 0.01, 0.01], 10, centre=[1.0, 0.5, 8.9])
    low, high = smooth.interval(0.95)
    assert low.round(3).tolist() == [0.0, 0.304, 8.704]
    assert high.round(3).tolist() == [1.196, 0.696, 9.096]
    both = smooth.linear([1, 1, 0])
    assert (both.value.tolist(), both.centre) == ([0.5], np.array([1.5]))
    with pytest.raises(InvalidValue, match="centre"):
        Estimate([0.0], [0.0], 1, centre=[0.0, 1.0])


# -- what is possible -----------------------------------------------------------------------------------------------


def test_what_is_shown_is_possible_and_holds_the_truth_as_often():
    rng = np.random.default_rng(1)
    truth = np.array([0.0, 0.001, 0.5, 0.999, 1.0])
    for _ in range(500):
        estimate = Estimate(truth + 0.05 * rng.standard_normal(5), np.full(5, 0.05**2), n=100)
        value, low, high = estimate.possible(0.9)
        assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 1)).all()
        uncut = estimate.interval(0.9)
        meets = (uncut[1] >= 0) & (uncut[0] <= 1)  # else the nearest number that is possible is left
        assert (((low <= truth) & (truth <= high)) == ((uncut[0] <= truth) & (truth <= uncut[1])))[meets].all()


def test_a_sum_knows_pairs_only_if_all_of_its_parts_do():
    known, unknown = Noise(1.0, 0.0), Noise(1.0, 0.0, pairs=False)
    assert Noise.of_sum([(0.5, known), (0.5, known)]).pairs is True
    assert Noise.of_sum([(0.5, known), (0.5, unknown)]).knows_pairs is False


def test_bounds_of_sums_follow_the_weights():
    estimate = Estimate([0.9, 0.4], [0.1, 0.1], n=9)
    assert estimate.linear([1, 1]).possible()[2][0] <= 2
    assert estimate.linear([10, -10]).bounds == (-10.0, 10.0)
    mean = Estimate([3.0], [4.0], n=9, kind="quantity", bounds=(0.0, 10.0))
    assert mean.possible()[1].tolist() == [0.0]
    assert mean.linear([-2]).bounds == (-20.0, 0.0)
    unknown = Estimate([3.0], [4.0], n=9, kind="quantity")
    assert unknown.possible()[1].tolist() == unknown.interval()[0].tolist()
    assert unknown.linear([2]).bounds is None


def test_bounds_are_two_numbers_in_order():
    with pytest.raises(InvalidValue, match="bounds"):
        Estimate([0.5], [0.1], n=9, bounds=(1.0, 0.0))
    with pytest.raises(InvalidValue, match="bounds"):
        Estimate([0.5], [0.1], n=9, bounds=(float("nan"), 0.0))


def test_tables_show_what_is_possible():
    shares = Estimate([1.05, -0.05], [0.01, 0.01], n=9)
    text = shown(shares) + repr(shares) + shares._repr_html_()
    assert "1.05" not in text
    assert "-0.05" not in text
