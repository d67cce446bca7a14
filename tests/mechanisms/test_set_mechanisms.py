"""Shares of the items of sets: exact epsilons and errors, what of them is best, lengths, and local hashing's delta."""

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from hubbub import OLH, PSFO, ItemSets, Ordinal, PrivSet, Random, Sets, SplitUnary
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.weights import choice_rates
from hubbub.planning.item_shares import SetOption, set_options, ternary_options
from hubbub.protocols.itemsets.lengths import LengthShares
from hubbub.random.integers import exp_floor
from hubbub_papers.amplification_claims import hashing_delta, limited_amplification
from tests.shared.answers import outputs_of, sketched

SETTINGS = [(items, epsilon) for items in (40, 1000) for epsilon in (0.5, 1.0, 4.0)]
"""The six of the issue: people hold 1 to 12 of the items, 6.5 on average."""


def sets_of(items: int) -> Sets:
    return Sets(Ordinal(items), most=12)


@pytest.mark.parametrize("items", [2, 3, 4, 5])
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("kind", [SplitUnary, PrivSet, PSFO])
def test_epsilon_is_exact_for_all_sets_and_reports(kind: type[Any], items: int, most: int):
    most = min(most, items)
    options = {"oracle": "GRR"} if kind is PSFO else {}
    mechanism = kind(epsilon=1.0, domain=Sets(Ordinal(items), most=most), **options)
    every = [held for size in range(most + 1) for held in combinations(range(items), size)]
    chances = mechanism.prob(outputs_of(mechanism), every)
    assert max(max(row) / min(row) for row in chances.tolist()) == mechanism.ratio()
    assert all(sum(column, Fraction(0)) == 1 for column in chances.T.tolist())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_rates_are_those_of_all_reports(epsilon: float):
    for m, t in ((1, 1), (2, 1), (3, 2), (4, 2)):
        priv = PrivSet(epsilon=epsilon, domain=Sets(Ordinal(4), most=2), m=m, t=t)
        reports = outputs_of(priv)
        rows = priv.rows(reports)[:, :4].astype(object)
        chances = priv.prob(reports, [(1, 3)])[:, 0]
        p, q = priv.rates
        assert (chances @ rows).tolist() == [q, p, q, p]


@pytest.mark.parametrize(("items", "epsilon"), SETTINGS)
def test_privset_of_one_element_is_padding_and_sampling_over_grr(items: int, epsilon: float):
    single = PrivSet(epsilon=epsilon, domain=sets_of(items), m=1, t=1)
    grr = PSFO(epsilon=epsilon, domain=sets_of(items), oracle="GRR")
    assert single.variance(1, 0.1) == pytest.approx(grr.variance(1, 0.1), rel=1e-9)
    best = PrivSet(epsilon=epsilon, domain=sets_of(items))
    assert best.variance(1, 6 / items) <= grr.variance(1, 6 / items) * (1 + 1e-9)


@pytest.mark.parametrize("items", [5, 12, 40])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_the_size_and_threshold_are_the_best_of_all(items: int, epsilon: float):
    sets = Sets(Ordinal(items), most=3)
    chosen = PrivSet(epsilon=epsilon, domain=sets)
    errors = [
        PrivSet(epsilon=epsilon, domain=sets, m=m, t=t).variance(1, 1.5 / items)
        for m in range(1, items + 3)
        for t in range(max(1, m - items + 1), min(m, 3) + 1)
    ]
    assert chosen.variance(1, 1.5 / items) == pytest.approx(min(errors), rel=1e-9)


def crowd(items: int, n: int, seed: int) -> ItemSets:
    """People who hold 1 to 12 items each, popular ones more often."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, items + 1)
    sizes = rng.integers(1, 13, n)
    held = [rng.choice(items, size=size, replace=False, p=popularity / popularity.sum()) for size in sizes]
    return ItemSets(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(held), domain=items)


def measured(option: SetOption, people: ItemSets, times: int) -> float:
    """The mean squared error over a number of repetitions."""
    values, rng, truth = option.values(people), Random(seed=1), people.support() / people.n
    estimates = [option.estimate(sketched(option.mechanism, values, rng)) for _ in range(times)]
    return float(np.mean([(estimate.value - truth) ** 2 for estimate in estimates]))


@pytest.mark.parametrize("number", range(5))
def test_shares_by_ternary_mechanisms_err_as_predicted(number: int):
    # 60 means of 40 squared errors, which are near independent: known to 3%. A false alarm is 5 standard errors, 6e-7.
    people = crowd(40, 200, seed=7)
    held = people.items.size / people.n
    option = ternary_options(epsilon=1.0, domain=sets_of(40), held=held)[number]
    predicted = option.error(held, 40) / people.n
    assert measured(option, people, times=60) == pytest.approx(predicted, rel=0.15)
    assert option.influence().least < 0 < 1 < option.influence().most


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), SETTINGS)
def test_the_pick_is_within_5_percent_of_the_best_measured(items: int, epsilon: float):
    # 40 squared errors 500 times, or 1,000 of them 30 times: known to 1%, and each as predicted within 6 of those.
    people = crowd(items, 1_000, seed=7)
    given: dict[str, Any] = {"epsilon": epsilon, "domain": sets_of(items), "held": people.items.size / people.n}
    errors = {}
    for option in [*set_options(**given), *ternary_options(**given)]:
        errors[option.name] = measured(option, people, times=500 if items == 40 else 30)
        predicted = option.error(given["held"], items) / people.n
        assert errors[option.name] == pytest.approx(predicted, rel=0.06), option.name
    assert errors[set_options(**given)[0].name] <= 1.05 * min(errors.values()), errors


@pytest.mark.parametrize(("items", "epsilon"), SETTINGS)
def test_no_ternary_mechanism_errs_less_than_the_pick(items: int, epsilon: float):
    given: dict[str, Any] = {"epsilon": epsilon, "domain": sets_of(items), "held": 6.5}
    picked, ternary = set_options(**given)[0], ternary_options(**given)[0]
    assert picked.error(6.5, items) <= ternary.error(6.5, items)


def test_the_update_factor_is_what_padding_takes_away():
    # Where all items are alike, every share is too small by the same factor, exactly.
    psfo = PSFO(epsilon=1.0, domain=6, length=2)
    people = [tuple((start + k) % 6 for k in range(size)) for size in (0, 1, 2, 4, 6) for start in range(6)]
    lengths = LengthShares(np.bincount([len(held) for held in people]) / len(people))
    whole = np.bincount([item for held in people for item in held]) / len(people)
    assert psfo.truth(people) * lengths.update_factor(2) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("epsilon", "length", "delta", "wanted"),
    [(4.0, 5, 1e-3, 4.91), (1.0, 20, 1e-3, 1.42), (4.0, 100, 1e-3, 7.49), (2.0, 10, 1e-9, 2.09), (0.5, 2, 1e-9, 0.5)],
)
def test_limited_amplification_follows_the_theorem(epsilon: float, length: int, delta: float, wanted: float):
    amplified = limited_amplification(epsilon, length, delta)
    assert round(amplified.epsilon, 2) == wanted
    assert amplified.delta <= delta
    olh = OLH(epsilon=amplified.epsilon, domain=500, buckets=amplified.buckets)
    assert hashing_delta(olh, length, epsilon) <= delta
    assert hashing_delta(olh, length, amplified.epsilon) == 0.0


@pytest.mark.parametrize(("g", "length"), [(2, 2), (3, 2), (2, 3), (3, 3)])
def test_hashing_delta_is_the_worst_of_all_pairs_of_sets_of_any_size(g: int, length: int):
    """Every hash function of 7 elements, every pair of filled sets, in common or not, up to one element longer."""
    olh = OLH(epsilon=1.5, domain=9, buckets=g)
    truth, other = choice_rates(olh.other, g)
    power = exp_floor(0.8)
    functions = np.array(list(product(range(g), repeat=7)))

    def chances(held: tuple[int, ...]) -> np.ndarray:
        counts = (functions[:, list(held)][:, :, None] == np.arange(g)).sum(axis=1)
        return float(other) + counts / len(held) * float(truth - other)

    filled = [held for size in (length, length + 1) for held in combinations(range(7), size)]
    first = [chances(tuple(range(size))) for size in (length, length + 1)]  # elements are alike
    worst = max(
        float(np.maximum(chance - float(power) * chances(held), 0).sum(axis=1).mean())
        for chance in first
        for held in filled
    )
    assert hashing_delta(olh, length, 0.8) == pytest.approx(worst, rel=1e-9)


UNARY = [
    ("one", {"one": 1 << 32}),
    ("zero", {"one": 1 << 31, "zero": 1 << 31}),
    ("epsilon", {"one": 1 << 31, "zero": 1}),
]
CHOSEN = [("m", 11, 1), ("m", 0, 1), ("t", 2, 0), ("t", 2, 3), ("t", 10, 1)]


@pytest.mark.parametrize(
    ("kind", "field", "given"),
    [(SplitUnary, *spec) for spec in UNARY] + [(PrivSet, field, {"m": m, "t": t}) for field, m, t in CHOSEN],
)
def test_bad_specs_are_refused(kind: type[Any], field: str, given: dict[str, int]):
    with pytest.raises(InvalidValue, match=f"^{field}:"):
        kind(epsilon=1.0, domain=Sets(Ordinal(9), most=2), **given)


@pytest.mark.parametrize("held", [0.5, 3.0, 6.0, 11.0])
def test_parameters_are_the_best_at_what_people_hold(held: float):
    sets = sets_of(40)
    for kind in (PrivSet, SplitUnary):
        best = kind.best_for(epsilon=4.0, domain=sets, held=held).variance(1, held / 40)
        for other in (0.0, 6.0, 12.0):
            rival = kind.best_for(epsilon=4.0, domain=sets, held=other)
            assert best <= rival.variance(1, held / 40) * (1 + 1e-9)
    options = {option.name: option.error(held, 40) for option in set_options(epsilon=4.0, domain=sets, held=held)}
    assert options["PrivSet"] <= next(iter(options.values())) * (1 + 1e-9)


def test_too_many_elements_are_refused_and_planned_without() -> None:
    large = Sets(Ordinal(1 << 20), most=2)
    with pytest.raises(InvalidValue, match=r"^domain:.*at most 1,048,574 items"):
        PrivSet(epsilon=1.0, domain=large)
    assert set_options(epsilon=1.0, domain=large, held=1)[0].name == "Wheel"
