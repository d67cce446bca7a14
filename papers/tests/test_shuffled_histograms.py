"""What chapter 9 compares: AUE's guarantee and estimates, draws against real reports, the figures in small."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import GRR, OLH, SUE, Hadamard, Random
from hubbub.core.errors import InvalidValue
from hubbub_papers import reproduce
from hubbub_papers.baselines import shuffled
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.heavy_hitters.tree_hist import reported_shares, shuffled_tree_hist
from hubbub_papers.baselines.shuffled import ByOracle, HistogramSetting, fewest_people, printed_sh, printed_solh, room

COUNTS = np.array([4000, 2500, 2000, 1000, 500])


def test_aue_keeps_to_its_guarantee_where_it_applies():
    # At one place, two neighbouring inputs give Binomial(n, p) and one more. Two places have half of both each.
    for epsilon, delta, times in ((0.5, 1e-6, 1.5), (1.0, 1e-6, 4.0), (1.0, 1e-9, 20.0)):
        n = round(fewest_people(epsilon, delta) * times)
        aue = shuffled.AUE(epsilon=epsilon, delta=delta, n=n, domain=2)
        totals = np.arange(n + 2)
        first, second = binom.pmf(totals, n, aue.chance), binom.pmf(totals - 1, n, aue.chance)
        for world, other in ((first, second), (second, first)):
            assert np.maximum(world - np.exp(epsilon / 2) * other, 0).sum() <= delta / 2
    with pytest.raises(InvalidValue, match="n: "):
        shuffled.AUE(epsilon=0.5, delta=1e-6, n=1000, domain=2)
    assert shuffled.COMPARATORS["AUE"](HistogramSetting(0.5, 1e-6, 1000, 2)) is None


def test_aue_reports_are_unbiased_and_as_variable_as_stated():
    # 300 batches of five shares: means within 5 standard errors (fails once in 10^5), variance within 12%.
    aue, values = shuffled.AUE(epsilon=1.0, delta=1e-2, n=2000, domain=5), np.repeat(np.arange(5), COUNTS // 5)
    rng = Random(seed=3)
    real = np.array([aue.estimate(aue.randomize(values, rng).sum(axis=0)) for _ in range(300)])
    drawn = np.array([aue.estimate(aue.drawn_totals(COUNTS // 5, rng)) for _ in range(300)])
    for errors in (real - COUNTS / 10_000, drawn - COUNTS / 10_000):
        assert (np.abs(errors.mean(axis=0)) < 5 * np.sqrt(aue.variance / 300)).all()
        assert errors.var() == pytest.approx(aue.variance, rel=0.12)
    shifted = np.abs((real + 0.01 - COUNTS / 10_000).mean(axis=0))
    assert shifted.min() > 5 * np.sqrt(aue.variance / 300)  # it would be seen


ORACLES = GRR(epsilon=1.0, domain=5), SUE(epsilon=1.0, domain=5), Hadamard(epsilon=1.0, domain=5)


@pytest.mark.parametrize(
    "oracle", [*ORACLES, OLH(epsilon=2.0, domain=5, buckets=8)], ids=lambda oracle: type(oracle).__name__
)
def test_draws_are_as_real_reports(oracle):
    # 200 runs of each: the mean squared errors of both are the formula's but for 15% (4 standard errors).
    method, rng, truth = ByOracle(oracle), Random(seed=5), COUNTS / COUNTS.sum()
    drawn = [((method.shares(COUNTS, rng) - truth) ** 2).mean() for _ in range(200)]
    real = [((reported_shares(method, COUNTS, rng) - truth) ** 2).mean() for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(method.error(COUNTS), rel=0.15)
    assert np.mean(real) == pytest.approx(method.error(COUNTS), rel=0.15)


def test_formulas_of_the_chapter():
    assert printed_solh(0.4, 990_002, 1e-9, 42_178).buckets == 177
    # "no privacy amplification for SH when eps_c is below sqrt(14 ln(2/delta) d/(n-1))"
    n, delta, domain = 602_325, 1e-9, 915
    threshold = np.sqrt(14 * np.log(2 / delta) * domain / (n - 1))
    assert printed_sh(threshold * 0.999, n, delta, domain).epsilon == pytest.approx(threshold * 0.999)
    assert printed_sh(1.2 * threshold, n, delta, domain).epsilon > 2
    assert room(threshold, n, delta) == pytest.approx(domain)
    setting = HistogramSetting(0.5, 1e-9, n, domain)
    removal, twice = shuffled.COMPARATORS["RAP_R"](setting), setting._replace(epsilon=1.0, delta=2e-9)
    plain = shuffled.COMPARATORS["RAP"](twice)  # of two counts, each has half of delta: of the one that changes, all
    assert isinstance(removal, ByOracle)
    assert isinstance(plain, ByOracle)
    assert removal.oracle.epsilon == pytest.approx(plain.oracle.epsilon, rel=1e-12)
    assert shuffled.ByGuess().error(np.array([5, 5])) == 0


@pytest.mark.parametrize("name", ["SH", pytest.param("SOLH", marks=pytest.mark.slow)])
def test_numerical_bounds_improve_on_formulas(name):
    setting = HistogramSetting(0.5, 1e-6, 10_000, 5)
    numerical, formula = shuffled.NUMERICAL[name](setting), shuffled.COMPARATORS[name](setting)
    assert numerical is not None
    assert formula is not None
    assert numerical.error(COUNTS) < formula.error(COUNTS)


def test_strings_are_found_and_lengths_checked():
    words = [int.from_bytes(word.ljust(3, b"\0"), "big") for word in (b"the", b"of", b"and", b"zoo")]
    crowd = BitPopulation.counted(words, np.array([60_000, 40_000, 30_000, 10]), 24)
    options: dict[str, Any] = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "make": shuffled.COMPARATORS["SOLH"]}
    assert shuffled_tree_hist(crowd, rng=Random(seed=2), **options) == words[:3]
    few = {**options, "make": shuffled.COMPARATORS["AUE"], "epsilon": 0.01}
    assert shuffled_tree_hist(crowd, rng=Random(seed=2), **few) is None
    with pytest.raises(InvalidValue, match="population"):
        shuffled_tree_hist(BitPopulation.counted([1], np.array([5]), 12), rng=Random(seed=1), **options)


@pytest.mark.papers
@pytest.mark.parametrize(
    ("name", "scale"), [("wang-2021-analyzing-figure-9.3", 0.05), ("wang-2021-analyzing-figure-9.4", 0.1)]
)
def test_figures_in_small(name, scale):
    result = reproduce(name, scale=scale, repeats=3)
    assert result.figure is not None
    claims = [cell for cell in result.cells if cell.column == "claim" and "SOLH to its formula" in cell.row]
    assert all(0.8 < cell.ours < 1.2 for cell in claims), claims


@pytest.mark.papers
def test_table_9_3():
    cells = {(cell.row, cell.column): cell for cell in reproduce("wang-2021-analyzing-table-9.3", scale=0.01).cells}
    assert len(cells) == 24
    for shufflers, size in ((3, 400), (7, 432)):
        assert cells[f"PEOS, r = {shufflers}", "user bytes"].ours == size  # as the paper's
        assert cells[f"PEOS, r = {shufflers}", "server megabytes"].ours == pytest.approx(size, rel=0.05)


@pytest.mark.papers
def test_table_9_2_follows_from_the_formulas():
    cells = {(cell.row, cell.column): cell for cell in reproduce("wang-2021-analyzing-table-9.2").cells}
    printed = [cell for cell in cells.values() if isinstance(cell.paper, int | float)]
    assert len(printed) == 24
    for cell in printed:
        repeated = (cell.row, cell.column) == ("eps_c = 0.8", "d' = 100")
        assert ("repeats" in cell.note) == repeated
        assert cell.ours == pytest.approx(cell.paper, rel=0.1 if repeated else 0.005), cell  # three digits are printed
    for row in (f"eps_c = {central:g}" for central in (0.2, 0.4, 0.6, 0.8)):
        assert cells[row, "best by valid bounds"].ours < cells[row, "SOLH"].ours / 20


@pytest.mark.papers
@pytest.mark.parametrize("name", ["wang-2023-vectors-figure-2", "wang-2023-sao2-figure-2"])
def test_claims_stand_next_to_valid_bounds(name):
    claims = [cell for cell in reproduce(name).cells if cell.column == "claim"]
    assert claims
    assert all("holds" in cell.note for cell in claims), claims


def test_table_9_1_has_every_formula():
    cells = {(cell.row, cell.column): cell for cell in reproduce("wang-2021-analyzing-table-9.1").cells}
    later = {"FMT21", "clones", "stronger clones", "blanket"}
    assert {name for _, name in cells} == {"EFMRTT19", "CSUZZ19", "BBGN19", *later}
    second = cells["eps = 2, d = 2, n = 100,000", "CSUZZ19"]
    assert second.ours == pytest.approx(np.sqrt(32 * np.log(4e9) * (np.exp(2) + 1) / 1e5))
    assert "second row" in second.note
