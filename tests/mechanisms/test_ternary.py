"""Collision, CoCo and ExSub: the reference numbers, the measured error, the ends of every range."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Sketch
from hubbub.mechanisms.ternary.coco import coco_buckets
from hubbub.mechanisms.ternary.collision import collision_buckets
from hubbub.mechanisms.ternary.ternary import TernaryMechanism

KINDS = (hb.Collision, hb.CoCo, hb.ExSub)
every = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
PAPER = {"dimension": 128, "sparsity": 8}


def people(n: int, d: int, s: int, seed: int = 1) -> np.ndarray:
    """n vectors with exactly s entries each, at random places, more of them +1 than -1."""
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((n, d)), axis=1)[:, :s]
    rows = np.zeros((n, d), dtype=np.int8)
    np.put_along_axis(rows, order, rng.choice([-1, 1, 1], (n, s)).astype(np.int8), axis=1)
    return rows


class TestReferenceNumbers:
    @pytest.mark.parametrize(
        ("kind", "epsilon", "buckets", "error"),
        [
            (hb.Collision, 0.5, 28, 45755.058),
            (hb.CoCo, 0.5, 24, 38372.275),
            (hb.Collision, 1.0, 36, 9852.323),
            (hb.CoCo, 1.0, 32, 8872.112),
        ],
    )
    def test_errors_with_given_buckets(self, kind, epsilon, buckets, error):
        mechanism = kind(epsilon=epsilon, buckets=buckets, **PAPER)
        assert mechanism.mse() == pytest.approx(error, abs=5e-4)
        assert mechanism.mse(n=1000) == pytest.approx(error / 1000, rel=1e-6)

    def test_buckets_by_exact_search(self):
        assert hb.Collision(epsilon=0.5, **PAPER).buckets == 30
        assert hb.Collision(epsilon=1.0, **PAPER).buckets == 39
        assert hb.CoCo(epsilon=1.0, **PAPER).buckets == 32

    def test_exsub_as_in_the_paper(self):
        exsub = hb.ExSub(epsilon=1.0, m=9, **PAPER)
        assert [float(rate) for rate in exsub.rates[:3]] == pytest.approx(
            [0.063786464, 0.032188003, 0.031197425], abs=5e-10
        )
        assert exsub.mse(positions=136) == pytest.approx(8466.2136, abs=5e-5)
        assert exsub.mse(of="frequency", positions=136) == pytest.approx(8963.4685, abs=5e-5)
        assert exsub.mse() == pytest.approx(7981.293, abs=5e-4)
        assert hb.ExSub(epsilon=1.0, **PAPER).m == 9

    def test_the_small_exsub(self):
        exsub = hb.ExSub(epsilon=math.log(2), dimension=2, sparsity=1, m=2)
        assert [float(rate) for rate in exsub.rates[:3]] == pytest.approx([0.5, 0.3125, 0.25])
        assert exsub.mse(positions=3) == pytest.approx(31)
        assert exsub.mse(of="frequency", positions=3) == pytest.approx(42)

    @pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
    def test_exsub_is_at_least_a_tenth_better_than_collision(self, epsilon):
        assert hb.ExSub(epsilon=epsilon, **PAPER).mse() < 0.9 * hb.Collision(epsilon=epsilon, **PAPER).mse()

    @pytest.mark.parametrize(
        ("epsilon", "collision", "exsub"), [(0.01, 463.9, 397.5), (1.0, 4.007, 3.607), (3.0, 0.993, 0.853)]
    )
    def test_total_variation_errors_of_table_2(self, epsilon, collision, exsub):
        # d sqrt(2 Var/pi) at n = 50,000; Collision as the paper runs it, with t = int(s e^eps + 2 s - 1).
        def error(mechanism: TernaryMechanism) -> float:
            return 128 * math.sqrt(2 / math.pi * mechanism.mse(n=50_000) / 128)

        buckets = int(8 * math.exp(epsilon) + 15)
        assert error(hb.Collision(epsilon=epsilon, buckets=buckets, **PAPER)) == pytest.approx(collision, rel=0.02)
        assert error(hb.ExSub(epsilon=epsilon, **PAPER)) == pytest.approx(exsub, rel=0.02)


class TestRates:
    def test_collision_and_coco_share_out_everything(self):
        power = math.e
        for kind in (hb.Collision, hb.CoCo):
            mechanism = kind(epsilon=1.0, dimension=9, sparsity=3, buckets=16)
            omega = 3 * power + 16 - 3
            assert float(mechanism.p_false) == 1 / 16
            if kind is hb.Collision:
                assert float(mechanism.p_true) == pytest.approx(power / omega, rel=1e-15)
                assert mechanism.p_reverse == mechanism.p_false
            else:
                assert float(mechanism.p_true + mechanism.p_reverse) == pytest.approx((power + 1) / omega, rel=1e-15)
                assert mechanism.p_reverse < mechanism.p_false

    @every
    def test_rates_are_those_of_the_distribution(self, kind):
        """Summed over every output exactly, and over a sample of hash functions."""
        mechanism = kind(epsilon=1.0, dimension=3, sparsity=2, **({"m": 2} if kind is hb.ExSub else {}))
        value = {0: 1, 1: -1}
        if kind is hb.ExSub:
            outputs = mechanism.outputs()
            weights = mechanism.prob(outputs, [value])[:, 0]
            supports = [mechanism.accumulate(outputs[k : k + 1]).counts for k in range(len(outputs))]
            plus, minus = sum((w * s.astype(object) for w, s in zip(weights, supports, strict=True)), Fraction(0))
            assert plus.tolist() == [mechanism.p_true, mechanism.p_reverse, mechanism.p_false]
            assert minus.tolist() == [mechanism.p_reverse, mechanism.p_true, mechanism.p_false]
            return
        # 40,000 hash functions: a chance of at most 1/4 has a standard error below 0.0012; five of them.
        seeds, totals = hb.Random(seed=1).uint64(40_000), np.zeros((2, 3))
        for bucket in range(mechanism.buckets):
            buckets = np.full(seeds.size, bucket, dtype=np.uint8)
            reports = hb.Reports(mechanism.spec_id, public={"seed": seeds}, private={"bucket": buckets})
            chance = np.exp(mechanism.log_prob(reports, [value])[:, 0])
            totals += _weighted_support(mechanism, reports, chance)
        plus, minus = totals / seeds.size
        rates = [float(rate) for rate in mechanism.rates[:3]]
        assert plus == pytest.approx([rates[0], rates[2], rates[1]], abs=0.006)
        assert minus == pytest.approx([rates[2], rates[0], rates[1]], abs=0.006)

    @every
    def test_three_rates_leave_something_to_estimate_with(self, kind):
        for epsilon in (0.01, 0.1, 1.0, 4.0, 8.0):
            for d, s in ((2, 1), (5, 5), (128, 8), (1000, 30)):
                mechanism = kind(epsilon=epsilon, dimension=d, sparsity=s)
                true, false, reverse, *_ = mechanism.rates
                assert true > reverse
                assert true + reverse > 2 * false
                assert mechanism.effective_epsilon == pytest.approx(epsilon, rel=1e-9)


def _weighted_support(mechanism: TernaryMechanism, reports: hb.Reports, weights: np.ndarray) -> np.ndarray:
    from hubbub.core.hashing import bucket, hash32

    seeds, reported = reports.public["seed"][:, None], reports.private["bucket"][:, None].astype(np.int64)
    if isinstance(mechanism, hb.CoCo):
        own = bucket(hash32(seeds, np.arange(3)), mechanism.buckets)
        held = np.stack([own == reported, own == reported ^ 1])
    else:
        held = np.stack([bucket(hash32(seeds, 2 * np.arange(3) + k), mechanism.buckets) == reported for k in (0, 1)])
    return (held * weights[None, :, None]).sum(axis=1)


class TestSearch:
    @pytest.mark.parametrize("of", ["mean", "frequency"])
    @pytest.mark.parametrize(("d", "s", "epsilon"), [(128, 8, 1.0), (20, 1, 0.3), (30, 5, 3.0)])
    def test_no_other_number_of_buckets_is_better(self, d, s, epsilon, of):
        best = hb.Collision(
            epsilon=epsilon, dimension=d, sparsity=s, buckets=collision_buckets(epsilon, d, s, of=of)
        ).mse(of=of)
        for t in range(s + 1, 200):
            other = hb.Collision(epsilon=epsilon, dimension=d, sparsity=s, buckets=t)
            assert best <= other.mse(of=of) * (1 + 1e-12)
        best = hb.CoCo(epsilon=epsilon, dimension=d, sparsity=s, buckets=coco_buckets(epsilon, d, s, of=of)).mse(of=of)
        for t in range(2 * s + 2, 200, 2):
            assert best <= hb.CoCo(epsilon=epsilon, dimension=d, sparsity=s, buckets=t).mse(of=of) * (1 + 1e-12)


class TestMeasured:
    """400 collections of 200 people: the squared errors of 128 positions have a standard error below 0.7%.

    A band of 3% is more than four of them: failure probability below 1e-4, fixed by the seed.
    """

    @staticmethod
    def ratios(mechanism: TernaryMechanism, times: int = 400, n: int = 200) -> list[float]:
        d, s = mechanism.dimension, mechanism.sparsity
        rows = people(n, d, s)
        reports = mechanism.randomize(np.tile(rows, (times, 1)), hb.Random(seed=1))
        truths = rows.mean(axis=0), (rows != 0).mean(axis=0)
        squares = np.zeros(2)
        for k in range(times):
            sketch = mechanism.accumulate(reports[k * n : (k + 1) * n])
            for which, (of, truth) in enumerate(zip(("mean", "frequency"), truths, strict=True)):
                squares[which] += ((mechanism.estimate(sketch, of=of).value - truth) ** 2).sum()
        return [float(squares[k] / times / mechanism.mse(n, of=of)) for k, of in enumerate(("mean", "frequency"))]

    @every
    @pytest.mark.parametrize(
        "epsilon", [1.0, pytest.param(0.5, marks=pytest.mark.slow), pytest.param(3.0, marks=pytest.mark.slow)]
    )
    def test_errors_are_the_exact_ones(self, kind, epsilon):
        assert self.ratios(kind(epsilon=epsilon, **PAPER)) == pytest.approx([1.0, 1.0], abs=0.03)

    def test_an_error_off_by_eight_percent_is_noticed(self):
        class Optimist(hb.Collision):
            def mse(self, n: int = 1, **options) -> float:
                return super().mse(n, **options) / 1.08

        assert self.ratios(Optimist(epsilon=1.0, **PAPER))[0] > 1.03

    @every
    def test_intervals_of_conditional_means_hold_the_truth(self, kind):
        # 64 positions that half the people hold, 40 collections: 2,560 intervals, a standard error of 0.4%.
        mechanism = kind(epsilon=4.0, dimension=64, sparsity=4)
        rows = np.zeros((2_000, 64), dtype=np.int8)
        for k in range(4):
            rows[np.arange(2_000), (np.arange(2_000) % 2 * 32 + 8 * k + np.arange(2_000) // 2 % 8) % 64] = np.where(
                np.arange(2_000) % 5 < 3, 1, -1
            )
        rows = np.repeat(rows, 5, axis=0)
        truth = rows.sum(axis=0) / np.maximum((rows != 0).sum(axis=0), 1)
        rng, held = hb.Random(seed=2), []
        for _ in range(40):
            estimate = mechanism.estimate(mechanism.accumulate(mechanism.randomize(rows, rng)), of="conditional")
            low, high = estimate.interval(0.95)
            held.append((low <= truth) & (truth <= high))
        assert estimate.bias == "heuristic"
        assert 0.93 < np.mean(held) < 0.97

    @every
    def test_the_largest_error_stays_below_its_bound(self, kind):
        mechanism = kind(epsilon=1.0, **PAPER)
        rows, rng = people(1_000, 128, 8), hb.Random(seed=3)
        worst = [
            np.abs(
                mechanism.estimate(mechanism.accumulate(mechanism.randomize(rows, rng))).value - rows.mean(axis=0)
            ).max()
            for _ in range(40)
        ]
        bound = mechanism.max_error(1_000, beta=0.05)
        assert sum(error > bound for error in worst) <= 2
        assert bound < 2.5 * np.mean(worst)  # it says something, too


class TestValues:
    @every
    def test_every_form_of_a_vector_gives_the_same_reports(self, kind):
        mechanism = kind(epsilon=1.0, dimension=12, sparsity=3)
        rows = people(50, 12, 3)
        pairs = [{int(k): int(row[k]) for k in np.flatnonzero(row)} for row in rows]
        wanted = mechanism.randomize(rows, hb.Random(seed=1))
        for values in (pairs, rows.tolist(), rows.astype(float), hb.Ternary.dense(rows)):
            assert mechanism.randomize(values, hb.Random(seed=1)) == wanted

    @every
    def test_key_value_data_comes_back(self, kind):
        # A third holds key 0 with 0.5, the rest key 1 with -1: five standard errors, failure probability below 1e-5.
        mechanism = kind(epsilon=3.0, dimension=4, sparsity=1)
        values = ([{0: 0.5}] * 10_000) + ([{1: -1.0}] * 20_000)
        sketch = mechanism.accumulate(mechanism.randomize(values, hb.Random(seed=1)))
        for of, truth in {
            "mean": [1 / 6, -2 / 3, 0, 0],
            "frequency": [1 / 3, 2 / 3, 0, 0],
        }.items():
            estimate = mechanism.estimate(sketch, of=of)
            assert (np.abs(estimate.value - truth) <= 5 * estimate.stderr).all()
        ratio = mechanism.estimate(sketch, of="conditional")
        assert (np.abs(ratio.value - [0.5, -1, 0, 0])[:2] <= 5 * ratio.stderr[:2]).all()

    @every
    def test_more_entries_than_allowed_are_clipped_with_the_stated_bias(self, kind):
        mechanism = kind(epsilon=3.0, dimension=8, sparsity=2)
        values = [dict.fromkeys(range(6), 1)] * 40_000
        sketch = mechanism.accumulate(mechanism.randomize(values, hb.Random(seed=1)))
        estimate = mechanism.estimate(sketch)
        batch = hb.Ternary.pairs(values, dimension=8)
        clipping = batch.clipping(mechanism.sparsity)
        assert clipping.rows == 40_000
        assert (np.abs(estimate.value - batch.means() - clipping.bias) <= 5 * estimate.stderr).all()
        assert (np.abs(estimate.value - batch.means()) > 5 * estimate.stderr)[:6].all()  # without it, far off

    @every
    def test_probabilities_are_of_vectors_that_need_no_chance(self, kind):
        mechanism = kind(epsilon=1.0, dimension=8, sparsity=2)
        reports = mechanism.randomize([{0: 1}], hb.Random(seed=1))
        for value in ({0: 0.5}, dict.fromkeys(range(3), 1)):
            with pytest.raises(InvalidValue, match="at most 2"):
                mechanism.prob(reports, [value])

    @every
    def test_examples_are_all_vectors_where_they_fit(self, kind):
        mechanism = kind(epsilon=1.0, dimension=3, sparsity=2)
        assert mechanism.size == 1 + 6 + 12
        values = mechanism.example_values(19)
        assert len({tuple(sorted(value.items())) for value in values}) == 19
        large = kind(epsilon=1.0, dimension=40, sparsity=4).example_values(200)
        assert len({tuple(sorted(value.items())) for value in large}) == 200


class TestEnds:
    @every
    @pytest.mark.parametrize("epsilon", [1e-3, 0.1, 20.0, 45.0, 200.0, 1000.0])
    def test_any_epsilon_works_or_says_why_not(self, kind, epsilon):
        mechanism = kind(epsilon=epsilon, dimension=6, sparsity=2)
        assert 0 < mechanism.effective_epsilon <= epsilon
        reports = mechanism.randomize(people(200, 6, 2), hb.Random(seed=1))
        assert np.isfinite(mechanism.estimate(mechanism.accumulate(reports)).value).all()
        assert np.isfinite(mechanism.log_prob(reports, mechanism.example_values(20))).all()

    def test_exsub_spends_all_of_a_large_epsilon_and_nothing_underflows(self):
        exsub = hb.ExSub(epsilon=1000.0, dimension=4, sparsity=2, m=2)
        assert exsub.effective_epsilon == 1000.0
        chances = exsub.prob(exsub.outputs(), exsub.example_values(40))
        assert min(chances.ravel()) > 0
        assert hb.audit(exsub).enumeration.ratio == exsub.ratio()

    @every
    def test_an_epsilon_too_small_to_tell_is_refused(self, kind):
        with pytest.raises(InvalidValue):
            kind(epsilon=1e-30, dimension=6, sparsity=2)

    @every
    @pytest.mark.parametrize(
        "wrong",
        [
            {"dimension": 0},
            {"dimension": (1 << 24) + 1},
            {"dimension": 16_384 * 16_384},
            {"dimension": 1 << 80},
            {"dimension": 4.0},
            {"dimension": True},
            {"sparsity": 0},
            {"sparsity": 7},
            {"sparsity": -1},
            {"sparsity": 1.5},
        ],
        ids=str,
    )
    def test_shapes_out_of_range_are_refused(self, kind, wrong):
        with pytest.raises(InvalidValue, match=next(iter(wrong))):
            kind(**{"epsilon": 1.0, "dimension": 6, "sparsity": 2, **wrong})

    @pytest.mark.parametrize(
        ("kind", "field", "value"),
        [
            (hb.Collision, "buckets", 2),
            (hb.Collision, "buckets", 1 << 17),
            (hb.CoCo, "buckets", 4),
            (hb.CoCo, "buckets", 7),
            (hb.ExSub, "m", 8),
            (hb.ExSub, "m", -1),
        ],
    )
    def test_choices_out_of_range_are_refused(self, kind, field, value):
        with pytest.raises(InvalidValue, match=field):
            kind(epsilon=1.0, dimension=6, sparsity=2, **{field: value})

    def test_sets_whose_groups_are_too_many_are_refused(self):
        with pytest.raises(InvalidValue, match="groups"):
            hb.ExSub(epsilon=1.0, dimension=100_000, sparsity=4_000, m=4_000)

    @every
    def test_dense_vectors_and_long_ones(self, kind):
        assert kind(epsilon=1.0, dimension=5, sparsity=5).mse() > 0
        assert kind(epsilon=1.0, dimension=1, sparsity=1).mse() > 0
        assert kind(epsilon=1.0, dimension=1 << 24, sparsity=8).mse() > 0

    @every
    def test_what_cannot_be_estimated_is_refused(self, kind):
        mechanism = kind(epsilon=1.0, dimension=6, sparsity=2)
        sketch = mechanism.accumulate(mechanism.randomize(people(9, 6, 2), hb.Random(seed=1)))
        with pytest.raises(InvalidValue, match="of"):
            mechanism.estimate(sketch, of="median")
        with pytest.raises(InvalidValue, match="candidates"):
            mechanism.estimate(sketch, [1])
        with pytest.raises(InvalidValue, match="of"):
            mechanism.mse(of="conditional")
        with pytest.raises(InvalidValue, match="beta"):
            mechanism.max_error(9, beta=0.0)
        with pytest.raises(InvalidValue, match="counts"):
            mechanism.estimate(Sketch(sketch.spec_id, 3, sketch.counts + 4))

    @every
    def test_where_nobody_seems_to_hold_anything_nothing_is_known(self, kind):
        mechanism = kind(epsilon=2.0, dimension=6, sparsity=2)
        sketch = mechanism.accumulate(mechanism.randomize([{}] * 500, hb.Random(seed=1)))
        ratio, share = mechanism.estimate(sketch, of="conditional"), mechanism.estimate(sketch, of="frequency")
        assert np.isinf(ratio.variance[share.value <= 0]).all()
        assert (ratio.value[share.value <= 0] == 0).all()

    @every
    def test_a_mean_of_part_of_a_population_says_so(self, kind):
        mechanism = kind(epsilon=2.0, dimension=6, sparsity=2)
        estimate = mechanism.estimate(mechanism.accumulate(mechanism.randomize(people(900, 6, 2), hb.Random(seed=1))))
        more = estimate.of_population(9_000).variance - estimate.variance
        assert (more >= 0).all()
        assert more.max() <= 1 / 900
