"""Chapter 4, in short forms: the tables' numbers, every figure, and what must come out of small populations."""

import math

import numpy as np
import pytest

from hubbub.random.source import Random
from hubbub.rehearse.top import find_top
from hubbub_papers import reproduce
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, FoundValues
from hubbub_papers.dissertation import chapter_4_methods
from hubbub_papers.dissertation.chapter_4_figures import covered, mean_and_deviation, stepped
from hubbub_papers.dissertation.chapter_4_methods import SearchSetting, coded, exponential, pem_lengths, score, sweep
from hubbub_papers.harness import Context

# Of Table 4.1, typed from the text a second time: eps, m, the power of ten of n, and g = 1 to 4.
TABLE_4_1 = """
1 32 4 0.119629 0.137374 0.144731 0.154686   1 48 5 0.047267 0.051595 0.052936 0.056182
1 64 6 0.017426 0.018599 0.019218 0.019845   1 128 7 0.007923 0.008173 0.008272 0.008437
2 32 7 0.001677 0.001916 0.002016 0.002158   2 48 6 0.006623 0.007235 0.007424 0.007865
2 64 5 0.024456 0.026111 0.026977 0.027844   2 128 4 0.111353 0.115030 0.116080 0.118706
"""


def test_table_4_1_is_the_papers_in_every_column() -> None:
    """The text's number of candidates, without the factor k, is 3% to 18% off where g > 1."""
    result = reproduce("wang-2021-analyzing-table-4.1")
    claims = [cell for cell in result.cells if cell.column == "claim"]
    assert [cell.note.startswith("holds") for cell in claims] == [True] * 5
    cells = {(cell.row, cell.column): cell for cell in result.cells}
    numbers = [cell for cell in result.cells if cell.column != "claim"]
    assert len(numbers) == 32 * 4
    for cell in numbers:
        near = {"10^4": 0.009, "10^5": 0.004}.get(cell.row.split("n = ")[1], 0.0012)
        assert cell.ours == pytest.approx(cell.paper, rel=near), cell
    typed = iter(TABLE_4_1.split())
    for epsilon, bits, power in zip(typed, typed, typed, strict=False):
        for groups in range(1, 5):
            assert cells[f"eps = {epsilon}, m = {bits}, n = 10^{power}", f"g = {groups}"].paper == float(next(typed))


@pytest.mark.papers
def test_tables_4_2_and_4_3() -> None:
    """A hundredth of the people: the printed numbers, the averages in range, and next to them a run of real reports."""
    cells = reproduce("wang-2021-analyzing-table-4.2", repeats=1, scale=0.01).cells
    averages = [cell for cell in cells if cell.column.startswith("g =") and cell.paper is not None]
    assert len(averages) == 16
    assert [cell.paper for cell in averages[:4]] == [6.4, 4.7, 4.1, 4.0]
    assert all(0 <= cell.ours <= 16 and "drawn from their exact" in cell.note for cell in averages)
    assert sum("real reports" in cell.column for cell in cells) == 4


@pytest.mark.slow
def test_more_groups_find_less() -> None:
    """A tenth of the people, 10 runs: PEM at eps = 2 finds most with one group (Table 4.2)."""
    cells = {(cell.row, cell.column): cell.ours for cell in reproduce("wang-2021-analyzing-table-4.2", scale=0.1).cells}
    assert cells["URL, eps = 2", "g = 1"] > cells["URL, eps = 2", "g = 4"] > 1


def test_the_exponential_population_is_the_papers() -> None:
    """The 16th most common value has a share of about 0.023 (section 4.4.2), of 1,000,000 people of 64 bits."""
    population = exponential(Context(repeats=1, rng=Random(seed=1)), Random(seed=1))
    share = np.sort(population.counts)[-16] / population.n
    assert (population.n, population.bits, round(share, 3)) == (1_000_000, 64, 0.023)


def test_populations() -> None:
    context = Context(repeats=1, rng=Random(seed=1), scale=0.001)
    populations = {name: make(context, Random(seed=1)) for name, make in chapter_4_methods.DATA.items()}
    sizes = {name: (people.n, people.bits) for name, people in populations.items()}
    exact = {"Exponential": (1000, 64), "URL": (1200, 160), "Query": (500, 48)}
    assert sizes == {**exact, "Names": (1000, 64), "Short names": (3637, 48)}
    short = coded(context, "Query", Random(seed=1))
    assert (short.bits, short.n) == (32, 500)
    assert np.array_equal(
        np.sort(short.counts), np.sort(chapter_4_methods.DATA["Query"](context, Random(seed=1)).counts)
    )


def test_scores() -> None:
    crowd = BitPopulation.counted([5, 9, 3], np.array([50, 30, 20]), 4)
    assert score(FoundValues([5, 9], np.array([0.5, 0.3])), crowd, 2).f1 == 1
    alone = score(FoundValues([5], np.array([0.6])), crowd, 2)
    assert list(alone) == pytest.approx([1, 2 / 3, 2 / 3, 100])
    assert math.isnan(score(FoundValues([], np.zeros(0)), crowd, 2).error)
    assert score(FoundValues([5, 9], np.array([0.5, 0.3])), crowd, 64, threshold=0.25).f1 == 1


def test_every_method_runs_in_a_sweep() -> None:
    context = Context(repeats=1, rng=Random(seed=1), scale=0.005)
    settings = [SearchSetting("Exponential", method, 4.0, 4) for method in chapter_4_methods.METHODS]
    runs = sweep(context, settings)
    assert {rows.shape for rows in runs.values()} == {(1, 4)}


def test_drawn_and_real_reports_find_as_much() -> None:
    """PEM over 12 runs each, 20,000 people and 16 bits: the means of found of the top 8 differ by less than 5 standard
    errors (below 1e-5)."""
    drawn, real = [], []
    for run in range(12):
        rng = Random(seed=run)
        ranks = rng.below(1 << 10, 20_000) & rng.below(1 << 10, 20_000) & rng.below(1 << 10, 20_000)
        people = BitPopulation.of(ranks * 61, 16)
        found = chapter_4_methods.METHODS["PEM"](people, k=8, epsilon=1.0, query_limit=1 << 10, rng=rng)
        drawn.append(score(found, people, 8).hits)
        values_of_people = people.values[people.people]
        values = find_top(values_of_people, bits=16, k=8, epsilon=1.0, query_limit=1 << 10, rng=rng).values
        real.append(len({int(value) for value in values} & set(people.ranked(8))))
    assert pem_lengths(16, 8, 1 << 10) == (8, 12, 16)
    error = math.sqrt((np.var(drawn) + np.var(real)) / 12)
    assert 1 < np.mean(drawn) < 8
    assert abs(np.mean(drawn) - np.mean(real)) < 5 * error


@pytest.mark.slow
def test_intervals_hold_the_truth_given_that_they_are_told() -> None:
    """40 runs of 16 found values, a few of which are chance: at least 93% of the intervals hold the truth. With a
    coverage of 95% of 640 dependent intervals, below 90% is more than 5 standard errors away."""
    inside = total = 0
    for run in range(40):
        rng = Random(seed=run)
        people = exponential(Context(repeats=1, rng=rng, scale=0.05), rng)
        values_of_people = people.values[people.people] >> np.uint64(40)
        found = find_top(values_of_people, bits=24, k=16, epsilon=2.0, query_limit=1 << 14, rng=rng)
        covering = covered(found, BitPopulation.of(values_of_people, 24))
        inside, total = inside + covering[0], total + covering[1]
    assert inside / total > 0.93


def test_pem_in_steps_of_eight_bits_finds_the_two_values_that_people_hold() -> None:
    # Both values are hundreds of standard deviations above the noise.
    crowd = BitPopulation.counted([77, 5000], np.array([30_000, 20_000]), 16)
    found = stepped(8)(crowd, k=2, epsilon=4.0, query_limit=1 << 20, rng=Random(seed=1))
    assert found.values == [77, 5000]


def test_runs_that_found_nothing_are_left_out_of_the_mean() -> None:
    assert mean_and_deviation(np.array([1.0, np.nan, 3.0])) == (2.0, 1.0)
