"""ExSub's arithmetic against brute force, and the online client against the definition, by exact enumeration."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.mechanisms.ternary.exsub import OnlineState, best_size, error_of, miss_chance
from hubbub.mechanisms.ternary.selection import COUNTERS
from hubbub.mechanisms.ternary.signed_sets import group_weights
from tests.shared.answers import outputs_of
from tests.shared.streams_of_signs import Chances, filled, said

SMALL = [(1, 1, 1), (2, 1, 1), (2, 1, 2), (2, 2, 2), (3, 2, 1), (3, 2, 2), (3, 2, 4), (4, 2, 3), (3, 3, 2)]  # d, s, m
small = pytest.mark.parametrize(("d", "s", "m"), SMALL)


def signed_sets(positions: int, size: int) -> list[frozenset[int]]:
    return [
        frozenset(2 * p + sign for p, sign in zip(held, signs, strict=True))
        for held in combinations(range(positions), size)
        for signs in product((0, 1), repeat=size)
    ]


def three_or_seven(trues: int, reverses: int) -> int:
    return 7 if trues else 3


class TestArithmetic:
    @small
    def test_the_chance_to_miss(self, d, s, m):
        every = signed_sets(d + s, m)
        held = {2 * k for k in range(s)}
        assert miss_chance(d + s, s, m) == Fraction(sum(not symbols & held for symbols in every), len(every))

    @pytest.mark.parametrize(("d", "s", "m"), [(128, 8, 9), (512, 100, 6), (5000, 3, 900), (40, 4, 30)])
    def test_group_weights_sum_to_omega(self, d, s, m):
        # Omega = 2^m C(D,m) - (1 - 1/E) sum_j C(s,j) C(D-s,m-j) 2^(m-j), over all sets; here with e^-eps = 3/7.
        total = sum(group_weights(d + s, s, m, three_or_seven).values())
        sets = math.comb(d + s, m) << m
        missed = sum(math.comb(s, j) * math.comb(d, m - j) << (m - j) for j in range(min(s, m) + 1))
        omega = 7 * sets - 4 * missed
        assert Fraction(total, math.perm(d + s, s) << s) == Fraction(omega, sets)

    @small
    def test_rates_as_printed_with_every_position_counted(self, d, s, m):
        # Section 5.4 of the paper, with D = d + s everywhere.
        positions, floor = d + s, Fraction(3, 8)
        comb = lambda n, k: math.comb(n, k) if 0 <= k <= n else 0  # noqa: E731
        omega = 2**m * comb(positions, m) - (1 - floor) * sum(
            comb(s, j) * comb(d, m - j) * 2 ** (m - j) for j in range(m + 1)
        )
        whole = 2 ** (m - 1) * comb(positions - 1, m - 1)
        false = whole - (1 - floor) * sum(2**k * comb(s, m - 1 - k) * comb(d - 1, k) for k in range(m))
        reverse = whole - (1 - floor) * sum(2**k * comb(s - 1, m - 1 - k) * comb(d, k) for k in range(m))
        exsub = hb.ExSub(epsilon=1.0, dimension=d, sparsity=s, m=m, bits=3, least=3)
        assert exsub.rates[:3] == (whole / omega, false / omega, reverse / omega)

    @pytest.mark.parametrize("of", ["mean", "frequency"])
    @pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 8.0])
    @pytest.mark.parametrize(("d", "s"), [(1, 1), (2, 1), (30, 1), (50, 2), (50, 3), (40, 5), (128, 8), (10, 10)])
    def test_no_other_size_is_better(self, d, s, epsilon, of):
        errors = {m: error_of(epsilon, d + s, s, m, of) for m in range(1, d + s)}
        assert errors[best_size(epsilon, d + s, s, of=of)] == min(errors.values())

    @pytest.mark.parametrize(("d", "s", "epsilon"), [(128, 8, 1.0), (40, 5, 0.01), (512, 100, 3.0), (4000, 2, 0.5)])
    def test_the_search_looks_at_the_exact_error(self, d, s, epsilon):
        for m in (1, 2, best_size(epsilon, d + s, s), d // 2):
            exsub = hb.ExSub(epsilon=epsilon, dimension=d, sparsity=s, m=m)
            for of in ("mean", "frequency"):
                assert error_of(epsilon, d + s, s, m, of) == pytest.approx(exsub.mse(of=of, positions=d + s), rel=1e-8)

    def test_the_printed_size_costs_more(self):
        for epsilon, s in ((0.5, 8), (1.0, 8), (1.0, 4), (3.0, 4)):
            printed = math.ceil((128 + s) / (s * math.exp(epsilon) + s + 2))
            worse = hb.ExSub(epsilon=epsilon, dimension=128, sparsity=s, m=printed).mse()
            assert 1.03 < worse / hb.ExSub(epsilon=epsilon, dimension=128, sparsity=s).mse() < 1.6


def definition(exsub: hb.ExSub, vector: tuple[int, ...]) -> Chances:
    """What Definition 5.1 gives every output, as signs over all positions."""
    outputs = outputs_of(exsub)
    value = {k: sign for k, sign in enumerate(vector) if sign}
    chances: Chances = {}
    for symbols, chance in zip(outputs.private["symbol"], exsub.prob(outputs, [value])[:, 0], strict=True):
        signs = [0] * exsub.positions
        for symbol in symbols.tolist():
            signs[symbol >> 1] = 1 - 2 * (symbol & 1)
        chances[tuple(signs)] = chance
    return chances


class TestOnlineIsOffline:
    @small
    def test_every_output_has_the_probability_of_the_definition(self, d, s, m):
        exsub = hb.ExSub(epsilon=1.0, dimension=d, sparsity=s, m=m)
        distributions = []
        for vector in product((-1, 0, 1), repeat=d):
            if sum(sign != 0 for sign in vector) <= s:
                chances = said(exsub, filled(vector, s))
                assert chances == definition(exsub, vector)
                distributions.append(chances)
        ratios = [
            max(chances[signs] for chances in distributions) / min(chances[signs] for chances in distributions)
            for signs in distributions[0]
        ]
        assert max(ratios) == exsub.ratio()  # exactly e^eps, as the integers have it
        assert math.log(max(ratios)) == pytest.approx(1.0, rel=1e-15)

    def test_entries_past_the_allowed_number_are_not_heard(self):
        exsub = hb.ExSub(epsilon=1.0, dimension=4, sparsity=1, m=2)
        assert stream_of_rows(exsub, [[0, 1, -1, 1]]) == stream_of_rows(exsub, [[0, 1, 0, 0]])


def stream_of_rows(exsub: hb.ExSub, rows: list[list[int]], n: int = 300) -> list[list[int]]:
    online, rng = hb.OnlineExSub(exsub), hb.Random(seed=4)
    return online.step(online.start(n, rng), np.tile(rows, (n, 1)), rng)[1].tolist()


class TestOnlineClient:
    EXSUB = hb.ExSub(epsilon=1.0, dimension=24, sparsity=3)
    ONLINE = hb.OnlineExSub(EXSUB)

    def test_the_state_is_a_few_integers_and_survives_a_restart(self):
        rng = hb.Random(seed=1)
        state = self.ONLINE.start(1, rng)
        assert state.counters.shape == (1, len(COUNTERS))
        whole, parts = hb.Random(seed=2), hb.Random(seed=2)
        values = np.array([[0, 1, 0, 0, -1, 0, 0, 0]])
        _, at_once = self.ONLINE.step(state, np.hstack([values] * 3), whole)
        in_parts = []
        for _ in range(3):
            state, signs = self.ONLINE.step(OnlineState.from_bytes(state.to_bytes()), values, parts)
            in_parts.append(signs)
        assert np.hstack(in_parts).tolist() == at_once.tolist()
        assert state.to_come.tolist() == [3]
        assert len(state.to_bytes()) < 80

    def test_a_device_says_what_a_batch_says(self):
        # Entries are decided from one block of words a row: the same words, one device at a time, say the same.
        rng = hb.Random(seed=3)
        state = self.ONLINE.start(400, rng)
        values = np.where(np.arange(24) % 11 == 5, 1, 0) * np.ones((400, 1), dtype=int)
        _, batch = self.ONLINE.step(state, values, hb.Random(seed=5))
        same_words = hb.Random(seed=5)
        singles = [self.ONLINE.step(state[k : k + 1], values[k], same_words)[1][0].tolist() for k in range(400)]
        assert batch.tolist() == singles

    @pytest.mark.parametrize(
        "mechanism", [EXSUB, hb.NetSub(epsilon=1.0, dimension=24, sparsity=4)], ids=["ExSub", "Net"]
    )
    def test_what_is_heard_is_a_sketch_like_any_other(self, mechanism):
        # 8 timestamps of 3 entries; estimates within five stated standard errors, failure probability below 1e-4.
        online, rng, n = hb.OnlineExSub(mechanism), hb.Random(seed=6), 30_000
        rows = np.zeros((n, 24), dtype=np.int8)
        rows[:, 2], rows[::2, 10], rows[::3, 23] = 1, -1, 1
        state, sketch = online.start(n, rng), online.enrolled(n)
        for step in range(8):
            state, signs = online.step(state, rows[:, 3 * step : 3 * step + 3], rng)
            sketch = sketch + online.count(signs, 3 * step)
        estimate = mechanism.estimate(sketch)
        assert (np.abs(estimate.value - rows.mean(axis=0)) <= 5 * estimate.stderr).all()
        assert (state.to_come == mechanism.sparsity).all()  # the stubs, which need not be signs
        assert estimate.n == n

    def test_a_device_that_joins_late_is_like_one_that_held_nothing_before(self):
        rng, n = hb.Random(seed=7), 30_000
        state = self.ONLINE.skip(self.ONLINE.start(n, rng), 12, rng)
        assert (state.to_come == 24 + 3 - 12).all()
        rows = np.zeros((n, 12), dtype=np.int8)
        rows[:, 4] = 1
        state, signs = self.ONLINE.step(state, rows, rng)
        estimate = self.EXSUB.estimate(self.ONLINE.enrolled(n) + self.ONLINE.count(signs, 12))
        off = np.abs(estimate.value[12:] - rows.mean(axis=0))
        assert (off <= 5 * estimate.stderr[12:]).all()

    def test_a_device_that_leaves_early_draws_estimates_toward_zero(self):
        rng, n = hb.Random(seed=8), 30_000
        rows = np.zeros((n, 24), dtype=np.int8)
        rows[:, 20] = 1
        state = self.ONLINE.start(n, rng)
        state, first = self.ONLINE.step(state, rows[:, :12], rng)
        _, rest = self.ONLINE.step(state[: n // 2], rows[: n // 2, 12:], rng)
        sketch = self.ONLINE.enrolled(n) + self.ONLINE.count(first, 0) + self.ONLINE.count(rest, 12)
        estimate = self.EXSUB.estimate(sketch)
        assert abs(estimate.value[20] - 0.5) <= 5 * estimate.stderr[20]

    def test_devices_at_different_entries_step_together(self):
        rng = hb.Random(seed=9)
        state = self.ONLINE.start(4, rng)
        later = self.ONLINE.skip(state[2:], 6, rng)
        mixed = OnlineState(state.spec_id, np.concatenate([state.counters[:2], later.counters]))
        after, signs = self.ONLINE.step(mixed, np.zeros((4, 18)), rng)
        assert signs.shape == (4, 18)
        assert after.to_come.tolist() == [9, 9, 3, 3]

    def test_bytes_drawn_do_not_depend_on_what_is_held(self):
        drawn = []
        for row in (np.zeros(24), np.ones(24), np.eye(24)[3]):
            rng = hb.Random(seed=10)
            state = self.ONLINE.start(1, rng)
            self.ONLINE.step(state, row, rng)
            drawn.append(rng.bytes(8))
        assert len(set(drawn)) == 1

    @pytest.mark.parametrize(
        "values",
        [[[2] * 24], [[math.nan] * 24], [[0.5] * 24], [[0] * 25], [[0] * 24] * 2, [["a"]], np.zeros((1, 2, 2))],
        ids=["two", "nan", "half", "too many entries", "too many devices", "letters", "deep"],
    )
    def test_bad_values_are_refused_and_nothing_is_drawn(self, values):
        rng = hb.Random(seed=11)
        state = self.ONLINE.start(1, rng)
        before = state.to_bytes()
        with pytest.raises(InvalidValue):
            self.ONLINE.step(state, values, rng)
        fresh = hb.Random(seed=11)
        self.ONLINE.start(1, fresh)
        assert state.to_bytes() == before
        assert rng.bytes(8) == fresh.bytes(8)

    def test_states_of_another_mechanism_and_broken_ones_are_refused(self):
        rng = hb.Random(seed=12)
        state = self.ONLINE.start(1, rng)
        other = hb.OnlineExSub(hb.ExSub(epsilon=2.0, dimension=24, sparsity=3))
        with pytest.raises(SpecMismatch):
            other.step(state, np.zeros(3), rng)
        with pytest.raises(SpecMismatch):
            other.skip(state, 3, rng)
        for data in (
            b"",
            b"state",
            state.to_bytes()[:-1],
            hb.Sketch("0" * 32, 0, np.zeros(1, dtype=np.int64)).to_bytes(),
        ):
            with pytest.raises(DecodeError):
                OnlineState.from_bytes(data)
        for counters in ([-1, 0, 0, 1, 1], [2, 0, 0, 1, 1], [0, 0, 2, 1, 1]):
            broken = OnlineState("0" * 32, np.array([counters], dtype=np.int32))
            with pytest.raises(DecodeError):
                OnlineState.from_bytes(broken.to_bytes())
        with pytest.raises(InvalidValue, match="position"):
            self.ONLINE.count(np.zeros((1, 3), dtype=np.int8), 22)
        with pytest.raises(InvalidValue):
            self.ONLINE.skip(state, 25, rng)
