"""Amplification: every bound against brute force, reference numbers, and claims that are no guarantees."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Columns, Floats
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.oracle import CandidateCounts
from hubbub.mechanisms.weights import Blanket
from hubbub.privacy.amplify import Amplified, amplified_delta, amplify, bounds, compose, local_epsilon
from hubbub.privacy.binomial_tails import at_least, blocks, point
from hubbub.privacy.shuffle_bounds import COARSE, blanket_delta, clone_chance, clone_delta, stronger_clone_chance
from hubbub_papers.amplification_claims import collaborative_clones, unary_claim, variation_claim, variation_delta

SEEDS = {"seed": np.array([3, 2**63 + 17], "u8")}
TINY: list[tuple[type[Mechanism], float, dict[str, Any], Columns | None]] = [
    (hb.GRR, 0.5, {"domain": 3}, None),
    (hb.GRR, 2.0, {"domain": 2}, None),
    (hb.GRR, 1.0, {"domain": 4}, None),
    (hb.OLH, 1.0, {"domain": 3, "buckets": 2}, SEEDS),
    (hb.OLH, 1.0, {"domain": 3, "buckets": 3}, SEEDS),
    (hb.OUE, 1.0, {"domain": 3}, None),
    (hb.SUE, 2.0, {"domain": 2}, None),
    (hb.THE, 1.0, {"domain": 3}, None),
    (hb.SubsetSelection, 1.0, {"domain": 4, "subset": 2}, None),
    (hb.Hadamard, 1.0, {"domain": 3}, {"row": np.arange(4, dtype=np.uint8)}),
    (hb.Collision, 1.0, {"dimension": 2, "sparsity": 1, "buckets": 4}, SEEDS),
    (hb.Collision, 1.0, {"dimension": 3, "sparsity": 2, "buckets": 5}, SEEDS),
    (hb.CoCo, 1.0, {"dimension": 2, "sparsity": 1, "buckets": 4}, SEEDS),
    (hb.CoCo, 1.0, {"dimension": 3, "sparsity": 2, "buckets": 6}, None),
    (hb.ExSub, math.log(2), {"dimension": 2, "sparsity": 1, "m": 1}, None),
    (hb.ExSub, 1.0, {"dimension": 2, "sparsity": 1, "m": 2}, None),
    (hb.NetSub, 1.0, {"dimension": 2, "sparsity": 1, "m": 2, "t": 1}, None),
    (hb.NetSeed, 1.0, {"dimension": 2, "sparsity": 1}, None),
    (hb.SquareWave, 1.0, {"low": 0.0, "high": 1.0, "cells": 4, "band": 3}, None),
    (hb.Piecewise, 1.0, {"low": 0.0, "high": 1.0, "cells": 3, "band": 2}, None),
    (hb.StochasticRounding, 1.0, {"low": 0.0, "high": 1.0}, None),
]
"""Mechanisms whose shuffled reports can all be listed: class, epsilon, other settings, and some public parts."""
NAMES = [case[0].__name__ for case in TINY]


def report_table(mechanism: Mechanism, *, publics: Columns | None = None, values: int = 4) -> Floats:
    """The probability of every report (column) under every value (row); public parts are equally likely."""
    examples = mechanism.example_values(values)
    parts = max((len(column) for column in (publics or {}).values()), default=1)
    tables = []
    for row in range(parts):
        outputs = mechanism.outputs({name: column[row : row + 1] for name, column in (publics or {}).items()} or None)
        assert outputs is not None
        tables.append(mechanism.prob(outputs, examples).astype(np.float64).T)
    return np.concatenate(tables, axis=1) / len(tables)


def shuffled_delta(table: Floats, n: int, epsilon: float) -> float:
    """The exact delta of n shuffled reports at an epsilon: the largest over all values of everyone."""
    worst = 0.0
    for other_values in combinations_with_replacement(range(len(table)), n - 1):
        rest: dict[tuple[int, ...], float] = {(0,) * table.shape[1]: 1.0}
        for value in other_values:
            rest = _one_more(rest, table[value])
        worlds = [_one_more(rest, row) for row in table]
        for first, second in permutations(worlds, 2):
            delta = sum(max(0.0, chance - math.exp(epsilon) * second[counts]) for counts, chance in first.items())
            worst = max(worst, delta)
    return worst


def _one_more(counts: dict[tuple[int, ...], float], row: Floats) -> dict[tuple[int, ...], float]:
    """The distribution of the counts of every kind of report after one more report, whose distribution is `row`."""
    longer: dict[tuple[int, ...], float] = defaultdict(float)
    for numbers, chance in counts.items():
        for kind, more in enumerate(row.tolist()):
            longer[(*numbers[:kind], numbers[kind] + 1, *numbers[kind + 1 :])] += chance * more
    return longer


def _deltas(mechanism, n, epsilon):
    """Every valid upper bound of delta, by name."""
    ratio = math.exp(mechanism.effective_epsilon)
    yield "clones", clone_delta(ratio, n, epsilon, clone_chance(ratio))
    yield "stronger clones", clone_delta(ratio, n, epsilon, stronger_clone_chance(ratio))
    if mechanism.blanket() is not None:
        yield "blanket", blanket_delta(mechanism.blanket(), n, epsilon)
        yield "coarse blanket", blanket_delta(mechanism.blanket(), n, epsilon, cells=COARSE)


def _compare_with_brute_force(mechanism, table, parts, *, most, sizes=(2, 3, 4, 5)):
    """Compare every bound with the truth, where no more than `most` shuffled batches are possible."""
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    sizes = [n for n in sizes if math.comb(table.shape[1] + n - 1, n) <= most]
    assert sizes
    for n, part in product(sizes, parts):
        epsilon = part * mechanism.effective_epsilon
        exact = shuffled_delta(table, n, epsilon)
        for name, bound in _deltas(mechanism, n, epsilon):
            assert bound >= exact * (1 - 1e-9) - 1e-15, (name, n, epsilon, bound, exact)


@pytest.mark.parametrize(("kind", "epsilon", "settings", "publics"), TINY[::3], ids=NAMES[::3])
def test_no_bound_is_below_brute_force(kind, epsilon, settings, publics):
    mechanism = kind(epsilon=epsilon, **settings)
    table = report_table(mechanism, publics=publics, values=3)
    _compare_with_brute_force(mechanism, table, (0.0, 0.2, 0.5, 0.8), most=300)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "_", "settings", "publics"), TINY, ids=NAMES)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_no_bound_is_below_brute_force_at_many_epsilons(kind, _, epsilon, settings, publics):
    mechanism = kind(epsilon=epsilon, **settings)
    table = report_table(mechanism, publics=publics, values=4)
    _compare_with_brute_force(mechanism, table, (0.0, 0.1, 0.3, 0.6, 0.9), most=5000)


@pytest.mark.parametrize("local", [8.0, 16.0, 24.9])
@pytest.mark.parametrize("kind", [hb.GRR, hb.OUE])
def test_no_bound_is_below_brute_force_at_large_epsilons(kind, local):
    mechanism = kind(epsilon=local, domain=3)
    _compare_with_brute_force(mechanism, report_table(mechanism), (0.1, 0.5, 0.9, 0.99), most=5000, sizes=(2, 3))


@pytest.mark.parametrize("local", [25.1, 40.0, 700.0])
def test_beyond_the_digits_of_floats_nothing_is_amplified(local):
    # At 44 and a thousand reports all are true, and none hides another: 36.7, the logarithm of 2^53, was once said.
    grr = hb.GRR(epsilon=local, domain=1024)
    amplified = amplify(grr, n=1000, delta=1e-6)
    assert (amplified.epsilon, amplified.method) == (grr.effective_epsilon, "local")


def test_brute_force_finds_a_bound_that_is_none():
    # The planted bug is a paper's: clones of the mechanism's own chance.
    grr = hb.GRR(epsilon=0.5, domain=3)
    exact = shuffled_delta(report_table(grr), 2, 0.4)
    claimed = variation_delta(grr.blanket(), 2, 0.4)
    assert round(exact, 5) == 0.01943
    assert round(claimed, 5) == 0.01179
    assert blanket_delta(grr.blanket(), 2, 0.4) >= exact


def test_a_blanket_with_too_much_mass_is_found_out():
    grr = hb.GRR(epsilon=1.0, domain=3)
    true = grr.blanket()
    wrong = Blanket(min(true.mass * Fraction(5, 4), Fraction(1)), true.ratio, true.both)
    exact = shuffled_delta(report_table(grr), 4, 0.2)
    assert blanket_delta(wrong, 4, 0.2) < exact <= blanket_delta(true, 4, 0.2)


def test_equality_where_the_blanket_is_tight():
    # Three values of GRR: the others may hold the third, so that nothing is lost in the reduction.
    grr = hb.GRR(epsilon=1.0, domain=3)
    table = report_table(grr)
    for n, close in ((2, 2e-3), (3, 2e-3), (4, 0.01)):
        assert blanket_delta(grr.blanket(), n, 0.3) == pytest.approx(shuffled_delta(table, n, 0.3), rel=close)


@pytest.mark.parametrize(
    ("n", "sparsity", "reference"), [(1000, 1, 0.13071), (1000, 4, 0.11514), (10_000, 1, 0.03801), (10_000, 4, 0.03348)]
)
def test_reference_numbers_of_the_blanket(n, sparsity, reference):
    buckets = int(sparsity * math.e + 2 * sparsity - 1)
    collision = hb.Collision(epsilon=1.0, dimension=20, sparsity=sparsity, buckets=buckets)
    amplified = amplify(collision, n=n, delta=1e-6)
    assert amplified.method == "blanket"
    assert reference * (1 - 1e-4) < amplified.epsilon < reference * 1.002


@pytest.mark.parametrize(("n", "reference"), [(1000, 0.18243), (10_000, 0.05304)])
def test_reference_numbers_of_clones(n, reference):
    by_name = {bound.method: bound.epsilon for bound in bounds(hb.SHE(epsilon=1.0, domain=4), n=n, delta=1e-6)}
    assert by_name["clones"] == pytest.approx(reference, rel=1e-3)
    assert "blanket" not in by_name  # nobody worked out the blanket of Laplace noise


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.GRR(epsilon=1.0, domain=8),
        hb.OLH(epsilon=1.0, domain=100),
        hb.Collision(epsilon=1.0, dimension=50, sparsity=4),
        hb.CoCo(epsilon=1.0, dimension=50, sparsity=4),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
@pytest.mark.parametrize("n", [10**3, *(pytest.param(10**k, marks=pytest.mark.slow) for k in (4, 5, 6))])
def test_within_one_percent_of_a_finer_evaluation(mechanism, n):
    amplified = amplify(mechanism, n=n, delta=1e-6)
    assert blanket_delta(mechanism.blanket(), n, amplified.epsilon, cells=1 << 17) <= 1e-6
    assert blanket_delta(mechanism.blanket(), n, amplified.epsilon * 0.99, cells=1 << 17) > 1e-6


def test_a_billion_reports():
    amplified = amplify(hb.OLH(epsilon=2.0, domain=10**6), n=10**9, delta=1e-9)
    assert amplified.valid
    assert 1e-5 < amplified.epsilon < 3e-4


def test_fakes_protect_where_everyone_else_colludes():
    olh = hb.OLH(epsilon=4.0, domain=100, buckets=8)
    alone = amplify(olh, n=1, delta=1e-6)
    hidden = amplify(olh, n=1, delta=1e-6, fakes=10_000)
    assert (alone.epsilon, alone.method) == (olh.effective_epsilon, "local")
    assert hidden.epsilon < 0.3
    assert amplify(olh, n=1000, delta=1e-6, fakes=10_000).epsilon < hidden.epsilon


def test_fakes_that_are_not_the_blanket_are_refused():
    """Uniform rows of bits among reports of a unary encoding: the truth is above what its blanket would promise."""
    oue = hb.OUE(epsilon=3.0, domain=3)
    exact = _with_fakes(report_table(oue), 3, 1.8)
    assert exact > 2 * blanket_delta(oue.blanket(), 1, 1.8, fakes=3)
    for mechanism in (oue, hb.SHE(epsilon=1.0, domain=3), hb.Hadamard(epsilon=1.0, domain=3)):
        with pytest.raises(InvalidValue, match="drawn uniformly"):
            amplify(mechanism, n=10, delta=1e-6, fakes=5)
        with pytest.raises(InvalidValue, match="drawn uniformly"):
            amplified_delta(mechanism, n=10, epsilon=0.5, fakes=5)


def test_fakes_against_brute_force():
    grr = hb.GRR(epsilon=1.0, domain=3)
    table = report_table(grr)
    for fakes in (1, 2, 3):
        exact = _with_fakes(table, fakes, 0.3)
        assert blanket_delta(grr.blanket(), 1, 0.3, fakes=fakes) == pytest.approx(exact, rel=2e-3)


def _with_fakes(table, fakes, epsilon):
    """The delta of one report among uniform fakes, by listing every batch."""
    worlds: tuple[Counter[tuple[int, ...]], ...] = (Counter(), Counter())
    kinds = table.shape[1]
    for batch in product(range(kinds), repeat=fakes + 1):
        for world, row in zip(worlds, table[:2], strict=True):
            world[tuple(sorted(batch))] += row[batch[0]] / kinds**fakes
    return sum(max(0.0, chance - math.exp(epsilon) * worlds[1][batch]) for batch, chance in worlds[0].items())


def test_claims_are_labelled():
    collision = hb.Collision(epsilon=1.0, dimension=20, sparsity=4, buckets=17)
    claim = variation_claim(collision, n=10_000, delta=1e-6)
    assert not claim.valid
    assert claim.epsilon < amplify(collision, n=10_000, delta=1e-6).epsilon
    clones, online = collaborative_clones(epsilon=1.0, positions=1000, sparsity=20, n=10**5, delta=1e-5)
    fewer, reports = collaborative_clones(epsilon=1.0, positions=1000, sparsity=20, n=10**5, delta=1e-5, online=False)
    assert (online.valid, reports.valid) == (False, True)
    assert clones > 1.2 * fewer  # "more than 20% effective clones"
    assert all(bound.valid for bound in bounds(collision, n=10_000, delta=1e-6))


def _count_tells(table, n, epsilon):
    """A lower bound of delta at any n: how well the count of one kind of report tells two values apart, exactly.

    Everyone else holds one value; the test is whether at least k reports of a kind came.
    """
    best = 0.0
    for others in table:
        for chance, column in zip(others, table.T, strict=True):
            spread = max(1.0, math.sqrt((n - 1) * chance * (1 - chance)))
            counts = np.unique(np.maximum(0, np.ceil((n - 1) * chance + np.linspace(-1, 7, 33) * spread)))
            rest, one_less = binom.sf(counts - 1, n - 1, chance), binom.sf(counts - 2, n - 1, chance)
            first, second = (part * one_less + (1 - part) * rest for part in (column.max(), column.min()))
            best = max(best, float((first - math.exp(epsilon) * second).max()))
    return best


def _slow(*values):
    return (pytest.param(value, marks=pytest.mark.slow) for value in values)


@pytest.mark.parametrize("kind", [hb.GRR, hb.SUE, *_slow(hb.OUE, hb.THE, hb.SubsetSelection)])
@pytest.mark.parametrize("local", [10.0, *_slow(0.5, 2.0, 6.0, 14.0)])
def test_no_bound_is_below_what_one_count_tells(kind, local):
    mechanism = kind(epsilon=local, domain=3)
    table = report_table(mechanism)
    for n in (100, 10_000, 10**6):
        for bound in bounds(mechanism, n=n, delta=1e-6):
            assert _count_tells(table, n, bound.epsilon) <= bound.delta * (1 + 1e-6) + 1e-12, (n, bound)


def test_bits_that_stand_together_tell_more_than_their_sums():
    # Everyone else holds the third value. A report of the first bit alone is then the victim's, but for few.
    n, sue = 10**6, hb.SUE(epsilon=2 * math.log(999), domain=3)
    claim = unary_claim(sue, n=n, delta=1e-6)
    assert not claim.valid
    assert claim.epsilon < 0.93
    assert _count_tells(report_table(sue), n, claim.epsilon) > 0.06


def test_no_formula_is_below_the_numerical_bounds():
    # Those are tight, or nearly: a formula that promises more is a mistake, as that of unary encodings was.
    several = (hb.GRR(epsilon=2.0, domain=9), hb.SUE(epsilon=6.0, domain=9), hb.OLH(epsilon=3.0, domain=50))
    for mechanism in (*several, *(hb.GRR(epsilon=epsilon, domain=2) for epsilon in (1.7, 3.0, 6.0))):
        for n in (10**3, 10**6):
            epsilons = {bound.method: bound.epsilon for bound in bounds(mechanism, n=n, delta=1e-6)}
            numerical = min(epsilons.get(name, math.inf) for name in ("blanket", "clones", "stronger clones"))
            formulas = [epsilons[name] for name in ("EFMRTT19", "FMT21", "BBGN19", "CSUZZ19") if name in epsilons]
            assert all(epsilon >= numerical for epsilon in formulas), epsilons


def test_the_bound_of_two_answers_applies_to_them_alone_and_where_it_is_proved():
    # sqrt(32 ln(4/delta) (e^2 + 1)/n); it is not above sqrt(192 ln(4/delta)/n) unless e^epsilon is above 5.
    def known(epsilon, domain, n):
        mechanism = hb.GRR(epsilon=epsilon, domain=domain)
        return {bound.method: bound.epsilon for bound in bounds(mechanism, n=n, delta=1e-9)}

    printed = math.sqrt(32 * math.log(4e9) * (math.exp(2) + 1) / 100_000)
    assert known(2.0, 2, 100_000)["CSUZZ19"] == pytest.approx(printed, rel=1e-6)
    assert all("CSUZZ19" not in known(*setting) for setting in ((2.0, 3, 10**5), (1.6, 2, 10**5), (6.0, 2, 10**5)))


def test_the_inverse_keeps_to_its_target():
    def olh(local):
        return hb.OLH(epsilon=local, domain=1000, buckets=16)

    mechanism = local_epsilon(olh, epsilon=0.1, n=100_000, delta=1e-6)
    assert amplify(mechanism, n=100_000, delta=1e-6).epsilon <= 0.1
    assert amplify(olh(mechanism.epsilon * 1.01), n=100_000, delta=1e-6).epsilon > 0.1
    with pytest.raises(InvalidValue, match="epsilon"):
        local_epsilon(olh, epsilon=0.0, n=10, delta=1e-6)


def test_composition():
    day = Amplified(0.01, 1e-9, "blanket")
    assert compose([day]).epsilon == 0.01
    year = compose([day] * 365, slack=1e-6)
    assert year.epsilon < 365 * 0.01
    assert year.delta == pytest.approx(365e-9 + 1e-6)
    assert not compose([day, Amplified(0.01, 0.0, "a claim", False)]).valid
    with pytest.raises(InvalidValue, match="batches"):
        compose([])


def test_binomial_tails():
    for trials in (1, 7, 1000, 10**6, 10**9):
        counts = np.unique(np.clip(trials / 2 + np.linspace(-6, 6, 41) * math.sqrt(trials) / 2, 0, trials).round())
        np.testing.assert_allclose(point(counts, float(trials)), binom.pmf(counts, trials, 0.5), rtol=3e-6)
        np.testing.assert_allclose(at_least(counts, float(trials)), binom.sf(counts - 1, trials, 0.5), rtol=1e-6)
        cut = blocks(trials, 0.3, 50)
        assert cut.chance.sum() + cut.outside.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", 0), ("n", 1.5), ("delta", 0.0), ("delta", math.nan), ("fakes", -1)],
)
def test_bad_input(field, value):
    with pytest.raises(InvalidValue, match=field):
        amplify(hb.GRR(epsilon=1.0, domain=3), **{"n": 100, "delta": 1e-6, field: value})
    with pytest.raises(InvalidValue, match="mechanism"):
        amplify("GRR", n=10, delta=1e-6)  # type: ignore[arg-type]


def test_public_numbers_that_single_a_report_out_are_refused():
    """Among reports with known, different numbers a shuffle hides nothing: delta is that of one report alone."""
    measured = hb.Measured(epsilon=2.0, domain=3)
    with pytest.raises(InvalidValue, match="public part"):
        amplify(measured, n=100_000, delta=1e-6)
    with pytest.raises(InvalidValue, match="public part"):
        amplified_delta(measured, n=100_000, epsilon=0.1)
    with pytest.raises(InvalidValue, match="public part"):
        local_epsilon(lambda local: hb.Measured(epsilon=local, domain=3), epsilon=0.1, n=1000, delta=1e-6)


def test_a_mechanism_that_does_not_state_whether_it_is_linkable_is_refused(monkeypatch):
    monkeypatch.delattr(CandidateCounts, "linkable")
    with pytest.raises(InvalidValue, match="public part"):
        amplify(hb.GRR(epsilon=1.0, domain=3), n=100, delta=1e-6)


@pytest.mark.parametrize("kind", [hb.BasicRappor, hb.Loloha])
def test_memoised_reports_are_protected_in_one_batch_only(kind):
    """A device keeps its function, or its permanent answer: a second report can be linked to the first."""
    every = list(bounds(kind(epsilon=2.0, domain=8), n=1000, delta=1e-6))
    assert all(bound.one_batch for bound in every)
    assert every[0].to_dict()["one_batch"] is True
    assert compose(every[:1]).one_batch
    with pytest.raises(InvalidValue, match="batches"):
        compose(every[:2])
    assert not amplify(hb.GRR(epsilon=2.0, domain=8), n=1000, delta=1e-6).one_batch
