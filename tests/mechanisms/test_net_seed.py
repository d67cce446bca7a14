"""The net rule as a seed: independence of its signs, epsilon and rates, all by enumeration of every seed."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary.every_sign import _irreducible, columns_of, seed_bits, solve
from hubbub.random.integers import pack

SIZES = [(2, 1, 1), (3, 2, 1), (4, 2, 2), (4, 3, 1), (3, 3, 3)]  # d, s, t


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
    assert [_irreducible(width) for width in (2, 3, 4, 8)] == [0b111, 0b1011, 0b10011, 0b100011011]


def test_equations_are_solved_and_dependent_ones_refused():
    rng = np.random.default_rng(1)
    code = columns_of(100, 7)
    at = np.array([rng.permutation(100)[:7] for _ in range(200)])
    rows, wanted = np.moveaxis(code[:, at], 0, 2), rng.integers(0, 2, (200, 7)).astype(np.uint8)
    seeds = solve(rows, wanted)
    assert ((rows & seeds[:, None]).sum(axis=2) % 2 == wanted).all()
    with pytest.raises(InvalidValue, match="rows"):
        solve(np.ones((1, 2, 3), dtype=np.uint8), np.zeros((1, 2), dtype=np.uint8))


@pytest.mark.parametrize(("d", "s", "t"), SIZES)
def test_epsilon_and_rates_by_every_seed_and_every_input(d, s, t):
    seed = hb.NetSeed(epsilon=1.0, dimension=d, sparsity=s, t=t)
    reports = hb.Reports(seed.spec_id, private={"seed": pack(every_seed(seed.seed_length).astype(bool))})
    vectors = [v for v in product((-1, 0, 1), repeat=d) if sum(map(abs, v)) <= s]
    chances = seed.prob(reports, [{k: sign for k, sign in enumerate(v) if sign} for v in vectors])
    assert all(sum(column) == 1 for column in chances.T)
    assert max(max(row) / min(row) for row in chances) == seed.ratio()
    assert math.log(seed.ratio()) == pytest.approx(1.0, rel=1e-15)
    signs = 1 - 2 * (every_seed(seed.seed_length) @ seed._code % 2).astype(int)
    rate = lambda chance, position, sign: sum(chance[signs[:, position] == sign], Fraction(0))  # noqa: E731
    for vector, chance in zip(vectors, chances.T, strict=True):
        for position, held in enumerate(vector):
            wanted = (seed.p_true, seed.p_reverse) if held else (seed.p_false, seed.p_false)
            assert (rate(chance, position, held or 1), rate(chance, position, -(held or 1))) == wanted
    net = hb.NetSub(epsilon=1.0, dimension=d, sparsity=s, m=d + s, t=t)
    assert net.rates == seed.rates
    assert net.mse() == pytest.approx(seed.mse(), rel=1e-12)


def test_a_few_bytes_for_the_error_of_a_long_report():
    setting = {"epsilon": 1.0, "dimension": 128, "sparsity": 8}
    seed, net = hb.NetSeed(**setting), hb.NetSub(**setting)
    assert seed.mse() == pytest.approx(net.mse(), rel=1e-12)
    assert (seed.report_bits, seed.report_bytes, net.report_bits) == (33, 5, 136)
    assert hb.NetSeed(epsilon=4.0, dimension=10, sparsity=10).t == 5


def test_what_is_no_seed_is_refused():
    seed = hb.NetSeed(epsilon=1.0, dimension=4, sparsity=2)
    reports = hb.Reports(seed.spec_id, private={"seed": np.full((1, 1), 0xFF, dtype=np.uint8)})
    with pytest.raises(InvalidValue, match="seed"):
        seed.check(reports)
    for wrong in ({"t": 3}, {"t": -1}):
        with pytest.raises(InvalidValue, match="t"):
            hb.NetSeed(epsilon=1.0, dimension=4, sparsity=2, **wrong)
    with pytest.raises(InvalidValue, match="dimension"):
        hb.NetSeed(epsilon=1.0, dimension=1 << 24, sparsity=8)
