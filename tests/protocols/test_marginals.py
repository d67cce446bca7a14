"""CALM: plans, marginals that agree, marginals that nobody reported on, and what each may be off by."""

from collections.abc import Callable
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest

from hubbub import GRR, OUE
from hubbub.consistency import marginals as agreeing
from hubbub.consistency.marginals import (
    Attributes,
    MarginalAgreement,
    consistent_marginals,
    project,
    sum_variance,
    true_table,
)
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats
from hubbub.protocols.marginals.calm import CALM, MarginalCounts, measured_reconstruction, release_marginals
from hubbub.protocols.marginals.field_marginals import synthetic_records
from hubbub.protocols.marginals.plan import covering_design, fewest_sets, noise_error, plan_marginals, spread_sets
from hubbub.protocols.marginals.synopsis import ReconstructedMarginal, Synopsis, maximum_entropy
from hubbub.random.source import Random
from tests.shared.answers import holds

SIZES = (2, 3, 2, 4, 2, 3)
VIEWS: list[tuple[Attributes, ...]] = [
    ((0, 1, 2), (1, 2, 3), (2, 3, 4), (0, 4, 5), (1, 5)),
    tuple(combinations(range(6), 2)),
    ((0, 1, 2, 3), (2, 3, 4, 5), (0, 1, 4, 5)),
]


def chained_records(n: int, sizes: tuple[int, ...], rng: Random, keep: int = 60) -> np.ndarray:
    """Records in which an attribute follows the one before it in `keep` of 100 cases."""
    rows = np.zeros((n, len(sizes)), dtype=np.int64)
    for column, size in enumerate(sizes):
        fresh = rng.below(size, n)
        if column:
            copied = rng.below(100, n) < keep
            fresh = np.where(copied, rows[:, column - 1] % size, fresh)
        rows[:, column] = fresh
    return rows


def noisy_tables(views: tuple[Attributes, ...], seed: int) -> dict[Attributes, Floats]:
    draws = np.random.default_rng(seed)
    tables = {}
    for view in views:
        shape = tuple(SIZES[column] for column in view)
        table = draws.dirichlet(np.full(prod(shape), 0.3)).reshape(shape) + draws.normal(0, 0.1, shape)
        tables[view] = table + (1 - table.sum()) / table.size
    return tables


def largest_disagreement(tables: dict[Attributes, Floats]) -> float:
    gaps = [0.0]
    for first, second in combinations(tables, 2):
        common = tuple(sorted(set(first) & set(second)))
        gaps.append(float(abs(project(tables[first], first, common) - project(tables[second], second, common)).max()))
    return max(gaps)


@pytest.mark.parametrize("views", VIEWS)
def test_overlapping_marginals_agree_and_have_no_share_below_0(views: tuple[Attributes, ...]) -> None:
    noises = {view: Noise(1e-4 * (1 + place), 0.0) for place, view in enumerate(views)}
    agreement = MarginalAgreement(noises, SIZES)
    tables = noisy_tables(views, seed=5)
    assert largest_disagreement(tables) > 0.01
    assert largest_disagreement(agreement.linear(tables)) < 1e-12
    positive = agreement.positive(tables)
    assert largest_disagreement(positive) < 1e-9
    assert min(table.min() for table in positive.values()) >= 0
    assert max(abs(table.sum() - 1) for table in positive.values()) < 1e-9


def test_a_forgotten_intersection_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = agreeing.intersections
    monkeypatch.setattr(agreeing, "intersections", lambda views: right(views)[1:])
    agreement = MarginalAgreement(dict.fromkeys(VIEWS[0], Noise(1e-4, 0.0)), SIZES)
    assert largest_disagreement(agreement.linear(noisy_tables(VIEWS[0], seed=5))) > 1e-3


def agreed_variance(agreement: MarginalAgreement, noises: dict[Attributes, Noise], common: Attributes) -> float:
    """The exact variance of a shared cell after agreement: of a linear map of independent errors."""
    total = 0.0
    for view, noise in noises.items():
        shape = tuple(SIZES[column] for column in view)
        for cell in range(prod(shape)):
            tables = {other: np.zeros([SIZES[column] for column in other]) for other in noises}
            tables[view].ravel()[cell] = 1.0
            agreed = agreement.linear(tables)
            first = next(other for other in noises if set(common) <= set(other))
            total += noise.floor * float(project(agreed[first], first, common).ravel()[0]) ** 2
    return total


def test_weights_are_the_optimal_ones() -> None:
    noises = {(0, 1): Noise(1.0, 0.0), (1, 3): Noise(2.0, 0.0), (1, 2, 5): Noise(0.5, 0.0)}
    agreement = MarginalAgreement(noises, SIZES)
    # L_i added cells of variance v_i: 2 * 1, 4 * 2, 6 * 0.5
    assert agreed_variance(agreement, noises, (1,)) == pytest.approx(1 / (1 / 2 + 1 / 8 + 1 / 3))
    equal = MarginalAgreement(dict.fromkeys(noises, Noise(1.0, 0.0)), SIZES)  # the same weights as if all erred alike
    assert agreed_variance(equal, noises, (1,)) > 1.05 / (1 / 2 + 1 / 8 + 1 / 3)


def test_sums_of_cells_have_the_oracles_own_variance() -> None:
    for oracle in (GRR(epsilon=1.0, domain=8), OUE(epsilon=1.0, domain=8)):
        p, q = (float(rate) for rate in oracle.rates)
        if isinstance(oracle, OUE):
            expected = 4 * q * (1 - q) + 0.5 * (p * (1 - p) - q * (1 - q))
        else:  # a report supports one of four cells, or none
            expected = 0.5 * sum(chance * (1 - chance) for chance in (p + 3 * q, 4 * q))
        assert sum_variance(oracle.noise(1000), 4, 0.5) == pytest.approx(expected / (1000 * (p - q) ** 2))


def test_algorithm_2_chooses_what_the_text_says() -> None:
    for epsilon, chosen in ((0.2, (2, 28)), (0.6, (2, 28)), (1.0, (2, 28)), (1.4, (2, 28)), (2.0, (4, 14))):
        plan = plan_marginals(2**16, [2] * 8, epsilon, k=3)
        assert (plan.s, plan.t) == chosen
    wide = plan_marginals(2**16, [2] * 16, 0.5, k=6)
    assert (wide.s, wide.t, wide.covers) == (2, 65, False)  # "m = 65, s = 2, to be precise"
    few = plan_marginals(100, [2] * 9, 1.0, k=3)
    assert set().union(*few.marginals) == set(range(9))


def test_noise_error_grows_with_the_cells_and_not_with_the_marginals() -> None:
    errors = [noise_error(2**16, [2] * 8, 1.0, s) for s in range(2, 9)]
    assert errors == sorted(errors)
    assert noise_error(2**16, [3] * 8, 1.0, 2) > noise_error(2**16, [2] * 8, 1.0, 2)


@pytest.mark.parametrize(("m", "k", "s"), [(8, 3, 4), (8, 2, 4), (10, 3, 5), (16, 3, 6), (12, 4, 4), (9, 1, 2)])
def test_covering_designs_cover(m: int, k: int, s: int) -> None:
    design = covering_design(m, k, s, 10_000)
    assert design is not None
    covered = {subset for chosen in design for subset in combinations(chosen, k)}
    assert len(covered) == comb(m, k)
    assert all(len(set(chosen)) == s for chosen in design)
    assert fewest_sets(m, k, s) <= len(design) <= 2 * fewest_sets(m, k, s)


def test_sets_are_spread_evenly() -> None:
    sets = spread_sets(16, 2, 65)
    uses = np.bincount(np.array(sets).ravel(), minlength=16)
    assert len(set(sets)) == 65
    assert uses.min() == 8
    assert uses.max() <= 9


def test_maximum_entropy_has_no_interaction_that_the_marginals_do_not_ask_for() -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(8)).reshape(2, 2, 2)
    pairs: dict[Attributes, Floats] = {pair: project(table, (0, 1, 2), pair) for pair in combinations(range(3), 2)}
    table = maximum_entropy(pairs, (2, 2, 2))
    for pair, wanted in pairs.items():
        assert abs(project(table, (0, 1, 2), pair) - wanted).max() < 1e-8
    even = table[0, 0, 0] * table[0, 1, 1] * table[1, 0, 1] * table[1, 1, 0]
    odd = table[0, 0, 1] * table[0, 1, 0] * table[1, 0, 0] * table[1, 1, 1]
    assert even == pytest.approx(odd, rel=1e-5)


def test_without_noise_or_sampling_the_marginals_are_the_true_ones() -> None:
    records = chained_records(4000, SIZES, Random(seed=1))
    calm = CALM(40.0, SIZES, (tuple(range(6)),))
    synopsis = calm.estimate(calm.accumulate(calm.randomize(records, Random(seed=2))))
    for attributes in [(0,), (1, 3), (5, 0, 2)]:
        wanted = sorted(attributes)
        truth = true_table(records, wanted, SIZES).transpose([wanted.index(column) for column in attributes])
        assert abs(synopsis.table(attributes) - truth).max() < 1e-9


def coverage(synopses: list[Synopsis], attributes: Attributes, truth: Floats) -> float:
    """How often 90% intervals hold the shares, but for rounding."""
    shares, intervals = truth.ravel(), [synopsis.marginal(attributes).interval(0.9) for synopsis in synopses]
    return float(np.mean([(low <= shares + 1e-12) & (shares - 1e-12 <= high) for low, high in intervals]))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    # 100 runs of about 5 independent cells at 90%: below 84% by chance with probability under 1e-5
    sizes = (2, 3, 2, 2)
    records = chained_records(3000, sizes, Random(seed=3), keep=90)
    calm = CALM(1.0, sizes, ((0, 1), (1, 2), (2, 3)))
    reports = (calm.randomize(records, Random(seed=f"run {run}")) for run in range(100))
    synopses = [calm.estimate(calm.accumulate(batch)) for batch in reports]
    covered, reconstructed = (0, 1), (0, 1, 3)
    assert coverage(synopses, covered, true_table(records, covered, sizes)) > 0.84
    assert coverage(synopses, reconstructed, true_table(records, reconstructed, sizes)) > 0.9
    assert not synopses[0].covers(reconstructed)
    truth, direct = true_table(records, covered, sizes).ravel(), [synopsis.direct(covered) for synopsis in synopses]
    off = np.array([(estimate.value - truth) / estimate.stderr for estimate in direct])
    assert np.mean(np.abs(off) < 1.645 * np.sqrt(0.25)) < 0.8  # a variance four times too small is seen
    assert 0.8 < np.std(off) < 1.2


def test_reconstruction_says_that_it_is_one_and_its_interval_holds_what_is_possible() -> None:
    # three attributes whose pairs are independent and whose third is the parity of the others
    draws = Random(seed=4)
    records = np.stack([draws.below(2, 60_000), draws.below(2, 60_000)], axis=1)
    records = np.column_stack([records, records.sum(axis=1) % 2])
    calm = CALM(2.0, (2, 2, 2), ((0, 1), (0, 2), (1, 2)))
    answer = calm.estimate(calm.accumulate(calm.randomize(records, Random(seed=5)))).marginal((0, 1, 2))
    assert isinstance(answer, ReconstructedMarginal)
    assert answer.bias == "heuristic"
    truth = true_table(records, (0, 1, 2), (2, 2, 2)).ravel()
    assert abs(answer.value - truth).max() > 0.1  # no pair tells the parity
    assert holds(answer, truth, 0.99).all()
    assert answer.stderr.min() > 0.1


def test_the_measured_error_of_reconstruction_is_not_the_noise() -> None:
    draws = Random(seed=10)
    independent = np.stack([draws.below(2, 40_000) for _ in range(6)], axis=1)
    calm = CALM(0.5, (2,) * 6, tuple(combinations(range(6), 2)))
    estimates = calm.unbiased(calm.accumulate(calm.randomize(independent, Random(seed=11))))
    error = measured_reconstruction(estimates, (2,) * 6)
    own = float(np.mean([estimate.variance.sum() for estimate in estimates.values()]))
    assert error.marginals == 15
    # what pairs of independent attributes are off by is the noise of their 1-way marginals, a small part of their own
    assert abs(error.squared) < 4 * error.stderr + own / 4
    assert error.squared + own > 4 * error.stderr + own / 4  # had the noise not been taken off


def test_sketches_of_shards_merge_and_others_are_refused() -> None:
    calm = CALM(1.0, (2, 2), ((0,), (1,)))
    first, second = (calm.accumulate(calm.randomize([[0, 1]] * 40, Random(seed=s))) for s in (1, 2))
    assert (first + second).n == 80
    merged = (first + second).sketches[0,].counts
    assert (merged == first.sketches[0,].counts + second.sketches[0,].counts).all()
    with pytest.raises(InvalidValue, match="sketches"):
        _ = first + MarginalCounts({})


def test_synthetic_records_are_distributed_as_the_marginals() -> None:
    sizes = (2,) * 14  # 16,384 cells: along a tree
    records = chained_records(60_000, sizes, Random(seed=6), keep=80)
    synopsis = release_marginals(records, sizes, 4.0, k=2, rng=Random(seed=7))
    drawn = synthetic_records(synopsis, 40_000, Random(seed=8))
    assert drawn.shape == (40_000, 14)
    for pair in [(0, 1), (6, 7), (12, 13), (3, 5)]:
        # 5 standard errors of 40,000 draws, and the error of the release
        assert abs(true_table(drawn, pair, sizes) - true_table(records, pair, sizes)).max() < 0.04
    independent = np.stack([np.roll(drawn[:, column], column * 7) for column in range(14)], axis=1)
    assert abs(true_table(independent, (6, 7), sizes) - true_table(records, (6, 7), sizes)).max() > 0.1
    few = synthetic_records(synopsis, 40_000, Random(seed=9), [7, 6])
    swapped = true_table(few, (0, 1), (2, 2)).T
    assert abs(swapped - true_table(records, (6, 7), sizes)).max() < 0.04


ONES = Estimate(np.ones(3), np.ones(3), 9, noise=Noise(1.0, 0.0))
PLAN = CALM(1.0, (2, 2), ((0,), (1,)))


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("sizes", lambda: CALM(1.0, (), ())),
        ("epsilon", lambda: CALM(float("nan"), (2,), ((0,),))),
        ("marginals", lambda: CALM(1.0, (2, 2), ((0,),))),
        ("marginals", lambda: CALM(1.0, (2, 2), ((0, 1), (1, 0)))),
        ("attributes", lambda: CALM(1.0, (2, 2), ((0, 2),))),
        ("records", lambda: release_marginals([[0, 5]], [2, 2], 1.0, k=2, rng=Random(seed=1))),
        ("records", lambda: release_marginals(np.zeros((0, 2), int), [2, 2], 1.0, k=2, rng=Random(seed=1))),
        ("k", lambda: plan_marginals(10, [2, 2], 1.0, k=3)),
        ("theta", lambda: plan_marginals(10, [2, 2], 1.0, k=2, theta=0.0)),
        ("estimates", lambda: consistent_marginals({(0,): ONES}, (2,))),
        ("estimates", lambda: consistent_marginals({}, (2,))),
        ("counts", lambda: PLAN.estimate(PLAN.accumulate({}))),
    ],
)
def test_bad_input_is_refused_by_name(named: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue, match=named):
        call()
