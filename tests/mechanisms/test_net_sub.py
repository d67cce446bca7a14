"""The net rule against its definition by brute force: rates, epsilon, the online client, the choice of m and t.

And as a seed: the independence of its signs, epsilon and rates, all by enumeration of every seed.
"""

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary import net_sub as net
from hubbub.mechanisms.ternary.every_sign import columns_of, irreducible, seed_bits, solve
from hubbub.mechanisms.ternary.exsub import best_size
from hubbub.mechanisms.ternary.net_sub import best_net, net_errors
from hubbub.mechanisms.ternary.set_forms import AsBits, AsList
from hubbub.random.integers import pack
from tests.shared.streams_of_signs import Chances, filled, said

# d, s, m, t: one entry; short sets; every position, an even and an odd number of entries; all but one; t above 1
SIZES = [(2, 1, 2, 1), (3, 2, 2, 1), (3, 2, 5, 1), (3, 2, 4, 2), (3, 3, 6, 1), (3, 3, 5, 2), (4, 2, 3, 1), (3, 3, 3, 3)]
sizes = pytest.mark.parametrize(("d", "s", "m", "t"), SIZES)

# The table: d = 128, s = 8. Its numbers, and those of ExSub next to them.
TABLE = {
    0.1: (638_818, (113, 1), 956_127),
    0.5: (24_837, (136, 1), 35_625),
    1.0: (6_111, (136, 1), 7_981),
    2.0: (1_359, (6, 1), 1_484),
    4.0: (159, (1, 1), 159),
}


def every_set(positions: int, size: int) -> list[tuple[int, ...]]:
    """All sets, as signs over all positions."""
    sets = []
    for chosen in combinations(range(positions), size):
        for signs in product((1, -1), repeat=size):
            row = [0] * positions
            for position, sign in zip(chosen, signs, strict=True):
                row[position] = sign
            sets.append(tuple(row))
    return sets


def every_vector(d: int, s: int) -> list[tuple[int, ...]]:
    return [vector for vector in product((-1, 0, 1), repeat=d) if sum(map(abs, vector)) <= s]


def definition(mechanism: hb.NetSub, vector: tuple[int, ...]) -> Chances:
    """In proportion to 2^bits where trues minus reverses reach t, else to `least`: nothing of the code is used."""
    whole = filled(vector, mechanism.sparsity)
    weights = {}
    for signs in every_set(len(whole), mechanism.m):
        reached = sum(a * b for a, b in zip(signs, whole, strict=True)) >= mechanism.t
        weights[signs] = 1 << mechanism.bits if reached else mechanism.least
    total = sum(weights.values())
    return {signs: Fraction(weight, total) for signs, weight in weights.items()}


def offline(mechanism: hb.NetSub, vector: tuple[int, ...]) -> Chances:
    """What `prob` says of every report, however it is packed."""
    sets = np.array(every_set(mechanism.positions, mechanism.m), dtype=np.int8)
    columns = {c.name: mechanism.form.pack(sets)[c.name].astype(c.dtype) for c in mechanism.columns}
    reports = hb.Reports(mechanism.spec_id, private=columns)
    mechanism.check(reports)
    chances = mechanism.prob(reports, [{k: sign for k, sign in enumerate(vector) if sign}])[:, 0]
    return dict(zip(map(tuple, sets.tolist()), chances, strict=True))


class TestByEnumeration:
    @sizes
    def test_online_and_offline_are_the_definition_and_epsilon_is_exact(self, d, s, m, t):
        mechanism = hb.NetSub(epsilon=1.0, dimension=d, sparsity=s, m=m, t=t)
        distributions = []
        for vector in every_vector(d, s):
            wanted = definition(mechanism, vector)
            assert offline(mechanism, vector) == wanted
            assert said(mechanism, filled(vector, s)) == wanted
            distributions.append(wanted)
        worst = max(
            max(chances[signs] for chances in distributions) / min(chances[signs] for chances in distributions)
            for signs in wanted
        )
        assert worst == mechanism.ratio()  # every input against every other: exactly e^eps, as the integers have it
        assert math.log(worst) == pytest.approx(1.0, rel=1e-15)
        assert mechanism.effective_epsilon <= 1.0

    @sizes
    def test_rates_are_those_of_the_definition(self, d, s, m, t):
        mechanism = hb.NetSub(epsilon=1.5, dimension=d, sparsity=s, m=m, t=t)
        chances = definition(mechanism, (1, *([0] * (d - 1))))
        rate = lambda position, sign: sum(p for signs, p in chances.items() if signs[position] == sign)  # noqa: E731
        assert mechanism.rates[:3] == (rate(0, 1), rate(1, 1), rate(0, -1))
        assert rate(1, -1) == mechanism.p_false
        assert sum(mechanism.group_weights().values()) > 0

    @sizes
    def test_the_covariance_of_frequencies_and_of_means(self, d, s, m, t):
        mechanism = hb.NetSub(epsilon=1.5, dimension=d, sparsity=s, m=m, t=t)
        for vector, share in (((0,) * d, 0.0), ((-1, *([0] * (d - 1))), 1.0)):
            chances = definition(mechanism, vector)
            rows, chance = np.array(list(chances)), np.array([float(p) for p in chances.values()])
            of_means = chance @ (rows[:, 0] * rows[:, 1]) - (chance @ rows[:, 0]) * (chance @ rows[:, 1])
            assert of_means == pytest.approx(0.0, abs=1e-14)  # means of two positions, one of them not held
            if "frequency" not in mechanism.answers:
                continue
            there = np.abs(rows)
            covariance = chance @ (there[:, 0] * there[:, 1]) - (chance @ there[:, 0]) * (chance @ there[:, 1])
            gap = float(mechanism.p_true + mechanism.p_reverse - 2 * mechanism.p_false)
            noise = mechanism.frequency_noise(1)
            assert covariance / gap**2 == pytest.approx(noise.pair_floor + noise.pair_slope * share, rel=1e-9, abs=1e-9)

    @pytest.mark.parametrize("epsilon", TABLE)
    def test_the_table_by_enumeration_of_groups(self, epsilon):
        # From the printed group probabilities alone, with d = 128, s = 8: sizes of groups, weights, and the gap.
        (m, t), d, s, floor = TABLE[epsilon][1], 128, 8, Fraction(math.exp(-epsilon))
        total = signs = net_sum = Fraction(0)
        for a in range(s + 1):
            for b in range(s - a + 1):
                rest = m - a - b
                if 0 <= rest <= d:
                    sets = math.comb(s, a) * math.comb(s - a, b) * math.comb(d, rest) << rest
                    weight = sets * (1 if a - b >= t else floor)
                    total += weight
                    signs += weight * (a + b)
                    net_sum += weight * (a - b)
        gap, on_entries = net_sum / total / s, signs / total
        real = on_entries + (m - on_entries) * Fraction(d - s, d)  # symbols on the real positions, of which s are held
        error = real / gap**2 - s
        assert round(error) == TABLE[epsilon][0]
        mechanism = hb.NetSub(epsilon=epsilon, dimension=d, sparsity=s)
        assert (mechanism.m, mechanism.t) == (m, t)
        assert mechanism.mse() == pytest.approx(float(error), rel=1e-12)
        assert round(hb.ExSub(epsilon=epsilon, dimension=d, sparsity=s).mse()) == TABLE[epsilon][2]


class TestChoice:
    @pytest.mark.parametrize("of", ["mean", "frequency"])
    @pytest.mark.parametrize(("d", "s"), [(1, 1), (5, 5), (10, 3), (12, 12), (30, 2)])
    def test_no_other_pair_is_better(self, d, s, of):
        for epsilon in (0.05, 0.5, 1.3, 3.0, 6.0, 9.0):
            every = {
                (m, t): hb.NetSub(epsilon=epsilon, dimension=d, sparsity=s, m=m, t=t).mse(of=of)
                for m in range(1, d + s + 1)
                for t in range(1, min(m, s) + 1)
            }
            m, t, error = best_net(epsilon, d, s, of=of)
            assert every[m, t] <= min(every.values()) * (1 + 1e-9)
            assert error == pytest.approx(every[m, t], rel=1e-9)

    @pytest.mark.parametrize(("d", "s"), [(1_500, 3), (3_000, 8), (2_000, 40)])
    def test_the_grid_finds_what_a_look_at_every_size_finds(self, d, s, monkeypatch):
        for epsilon in (0.1, 0.7, 1.0, 1.6, 3.0, 5.0):
            errors = net_errors(epsilon, d, s, np.arange(1, d + s + 1), of="mean")
            monkeypatch.setattr(net, "GRID_POINTS", 256)
            best_net.cache_clear()
            assert best_net(epsilon, d, s).error <= errors.min() * (1 + 1e-7)

    def test_never_worse_than_exsub(self):
        for d, s in ((1, 1), (2, 2), (8, 3), (20, 2), (40, 10), (128, 8), (300, 1)):
            for epsilon in (0.1, 0.8, 1.5, 2.5, 4.0, 7.0):
                ours, theirs = (kind(epsilon=epsilon, dimension=d, sparsity=s) for kind in (hb.NetSub, hb.ExSub))
                assert ours.mse() <= theirs.mse() * (1 + 1e-12)

    def test_with_one_entry_it_is_exsub(self):
        exsub, netsub = (
            kind(epsilon=1.0, dimension=9, sparsity=1, m=4) for kind in (hb.ExSub, lambda **k: hb.NetSub(t=1, **k))
        )
        assert exsub.rates == netsub.rates
        assert exsub.mse(of="frequency") == netsub.mse(of="frequency")

    def test_frequencies_are_better_told_by_exsub(self):
        setting: Any = {"epsilon": 1.0, "dimension": 128, "sparsity": 8}
        ours, theirs = (kind.best_for("frequency", **setting).mse(of="frequency") for kind in (hb.NetSub, hb.ExSub))
        assert ours > 1.5 * theirs
        assert hb.ExSub.best_for("frequency", **setting).m == best_size(1.0, 136, 8, of="frequency")

    @pytest.mark.parametrize(("m", "t"), [(9, 0), (0, 1), (7, 1), (3, 3), (1, 2), (3, -1), (3.0, 1)])
    def test_sizes_that_are_none_are_refused(self, m, t):
        with pytest.raises(InvalidValue, match=r"^[mt]: "):
            hb.NetSub(epsilon=1.0, dimension=4, sparsity=2, m=m, t=t)
        for kind in (hb.NetSub, hb.ExSub):
            with pytest.raises(InvalidValue):
                kind.best_for("frequency", epsilon=-1.0, dimension=4, sparsity=2)


class TestReports:
    def test_a_sign_at_every_position_is_one_bit_a_position(self):
        whole = hb.NetSub(epsilon=1.0, dimension=128, sparsity=8)
        assert (whole.report_bits, whole.report_bytes) == (136, 17)
        most = hb.NetSub(epsilon=0.1, dimension=128, sparsity=8)
        assert isinstance(most.form, AsBits)
        assert (most.report_bits, most.report_bytes) == (216, 34)
        assert isinstance(hb.NetSub(epsilon=2.0, dimension=128, sparsity=8).form, AsList)

    def test_where_every_position_is_said_there_are_no_frequencies(self):
        whole = hb.NetSub(epsilon=1.0, dimension=6, sparsity=2, m=8, t=1)
        sketch = whole.accumulate(whole.randomize([{0: 1}] * 50, hb.Random(seed=1)))
        assert whole.answers == ("mean",)
        assert whole.mse(of="frequency") == math.inf
        for of in ("frequency", "conditional"):
            with pytest.raises(InvalidValue, match="of"):
                whole.estimate(sketch, of=of)
        assert whole.estimate(sketch, signs=True).spread is None
        assert "frequency" in hb.NetSub(epsilon=1.0, dimension=6, sparsity=2, m=7, t=1).answers

    @pytest.mark.parametrize(("m", "field"), [(5, "plus"), (4, "plus"), (2, "symbol")])
    def test_what_is_no_such_set_is_refused(self, m, field):
        mechanism = hb.NetSub(epsilon=1.0, dimension=300, sparsity=5, m={5: 305, 4: 250, 2: 4}[m], t=1)
        reports = mechanism.randomize([{0: 1}], hb.Random(seed=1))
        columns = {name: array.copy() for name, array in reports.private.items()}
        columns[field][0, -1] |= 0x80 if field == "plus" else 0
        if field == "symbol":
            columns[field][0, 0] = columns[field][0, 1]
        with pytest.raises(InvalidValue, match=field):
            mechanism.check(hb.Reports(mechanism.spec_id, private=columns))
        if m == 4:
            columns = {name: array.copy() for name, array in reports.private.items()}
            columns["plus"][0, 0] = columns["minus"][0, 0] = 1
            with pytest.raises(InvalidValue, match="both signs"):
                mechanism.check(hb.Reports(mechanism.spec_id, private=columns))
            columns["plus"][:] = columns["minus"][:] = 0
            with pytest.raises(InvalidValue, match="too few"):
                mechanism.check(hb.Reports(mechanism.spec_id, private=columns))


# -- as a seed ------------------------------------------------------------------------------------------------------

SEEDS = [(2, 1, 1), (3, 2, 1), (4, 2, 2), (4, 3, 1), (3, 3, 3)]  # d, s, t


def every_seed(length: int) -> np.ndarray:
    return (np.arange(1 << length)[:, None] >> np.arange(length) & 1).astype(np.uint8)


@pytest.mark.parametrize(("positions", "strength"), [(1, 2), (2, 2), (5, 2), (7, 3), (8, 3), (9, 4), (6, 5), (8, 5)])
def test_any_few_signs_are_independent_and_fair(positions, strength):
    code = columns_of(positions, strength)
    rows = every_seed(seed_bits(positions, strength)) @ code % 2
    for chosen in combinations(range(positions), min(strength, positions)):
        patterns = rows[:, chosen] @ (1 << np.arange(len(chosen)))
        counts = np.bincount(patterns, minlength=1 << len(chosen))
        assert len(set(counts.tolist())) == 1


def test_the_fields_are_fields():
    assert [irreducible(width) for width in (2, 3, 4, 8)] == [0b111, 0b1011, 0b10011, 0b100011011]


def test_equations_are_solved_and_dependent_ones_refused():
    rng = np.random.default_rng(1)
    code = columns_of(100, 7)
    at = np.array([rng.permutation(100)[:7] for _ in range(200)])
    rows, wanted = np.moveaxis(code[:, at], 0, 2), rng.integers(0, 2, (200, 7)).astype(np.uint8)
    seeds = solve(rows, wanted)
    assert ((rows & seeds[:, None]).sum(axis=2) % 2 == wanted).all()
    with pytest.raises(InvalidValue, match="rows"):
        solve(np.ones((1, 2, 3), dtype=np.uint8), np.zeros((1, 2), dtype=np.uint8))


@pytest.mark.parametrize(("d", "s", "t"), SEEDS)
def test_epsilon_and_rates_by_every_seed_and_every_input(d, s, t):
    seed = hb.NetSeed(epsilon=1.0, dimension=d, sparsity=s, t=t)
    reports = hb.Reports(seed.spec_id, private={"seed": pack(every_seed(seed.seed_length).astype(bool))})
    vectors = [v for v in product((-1, 0, 1), repeat=d) if sum(map(abs, v)) <= s]
    chances = seed.prob(reports, [{k: sign for k, sign in enumerate(v) if sign} for v in vectors])
    assert all(sum(column) == 1 for column in chances.T)
    assert max(max(row) / min(row) for row in chances) == seed.ratio()
    assert math.log(seed.ratio()) == pytest.approx(1.0, rel=1e-15)
    signs = 1 - 2 * (every_seed(seed.seed_length) @ seed.code % 2).astype(int)
    rate = lambda chance, position, sign: sum(chance[signs[:, position] == sign], Fraction(0))  # noqa: E731
    for vector, chance in zip(vectors, chances.T, strict=True):
        for position, held in enumerate(vector):
            wanted = (seed.p_true, seed.p_reverse) if held else (seed.p_false, seed.p_false)
            assert (rate(chance, position, held or 1), rate(chance, position, -(held or 1))) == wanted
    whole = hb.NetSub(epsilon=1.0, dimension=d, sparsity=s, m=d + s, t=t)
    assert whole.rates == seed.rates
    assert whole.mse() == pytest.approx(seed.mse(), rel=1e-12)


def test_a_few_bytes_for_the_error_of_a_long_report():
    seed, sets = (kind(epsilon=1.0, dimension=128, sparsity=8) for kind in (hb.NetSeed, hb.NetSub))
    assert seed.mse() == pytest.approx(sets.mse(), rel=1e-12)
    assert (seed.report_bits, seed.report_bytes, sets.report_bits) == (33, 5, 136)
    assert hb.NetSeed(epsilon=4.0, dimension=10, sparsity=10).t == 5


def test_what_is_no_seed_is_refused():
    seed = hb.NetSeed(epsilon=1.0, dimension=4, sparsity=2)
    reports = hb.Reports(seed.spec_id, private={"seed": np.full((1, 1), 0xFF, dtype=np.uint8)})
    with pytest.raises(InvalidValue, match="seed"):
        seed.check(reports)
    for t in (3, -1):
        with pytest.raises(InvalidValue, match="t"):
            hb.NetSeed(epsilon=1.0, dimension=4, sparsity=2, t=t)
    with pytest.raises(InvalidValue, match="dimension"):
        hb.NetSeed(epsilon=1.0, dimension=1 << 24, sparsity=8)
