"""Measured squared errors of every ternary mechanism against the exact ones, at the papers' settings.

At least 60,000 squared errors a setting, nearly independent and nearly normal: their mean has a standard error of 0.6%,
so that the band of 3% is five of them, a failure probability below 1e-6 a setting, fixed by the seed. Some 2,000 people
a collection let even the rarest reports (one key of 512, one of 1,024 symbols) come several times.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import hubbub as hb
from hubbub.data import sparse_vectors
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.ternary.ternary import TernaryMechanism

KINDS = [kind for kind in MECHANISMS.values() if issubclass(kind, TernaryMechanism)]
SETTINGS = [(128, 8, 0.5), (128, 8, 1.0), (128, 8, 3.0), (256, 32, 1.0), (512, 4, 2.0)]
PEOPLE, ERRORS, MOST_WORDS = 2_000, 60_000, 1 << 26


def measured(mechanism: TernaryMechanism, *, errors: int = ERRORS, of: str = "mean") -> float:
    """The mean squared error over all positions, to the exact one."""
    rng, d, s = hb.Random(seed=1), mechanism.dimension, mechanism.sparsity
    collections = math.ceil(errors / d)
    block = max(1, MOST_WORDS // (PEOPLE * (d + mechanism.words)))
    total = 0.0
    for start in range(0, collections, block):
        count = min(block, collections - start)
        people = sparse_vectors(PEOPLE * count, d, s, rng)
        reports = mechanism.randomize(people, rng)
        for k in range(count):
            some = slice(k * PEOPLE, (k + 1) * PEOPLE)
            value = mechanism.estimate(mechanism.accumulate(reports[some]), of=of).value  # type: ignore[arg-type]
            truth = people[some].means() if of == "mean" else people[some].frequencies()
            total += float(((value - truth) ** 2).sum())
    return total / collections / mechanism.mse(PEOPLE, of=of)  # type: ignore[arg-type]


def test_every_mechanism_of_the_papers_is_here() -> None:
    assert {"Collision", "CoCo", "ExSub", "PrivKV", "KVUE", "PCKVGRR", "PCKVAGRR", "PCKVUE", "Succinct"} <= {
        kind.__name__ for kind in KINDS
    }
    assert len(KINDS) >= 13


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_measured_errors_of_means_are_the_exact_ones(
    kind: Callable[..., TernaryMechanism], setting: tuple[int, int, float]
) -> None:
    d, s, epsilon = setting
    assert abs(measured(kind(epsilon=epsilon, dimension=d, sparsity=s)) - 1) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_net_rules_table_as_measured(epsilon: float) -> None:
    assert abs(measured(hb.NetSub(epsilon=epsilon, dimension=128, sparsity=8)) - 1) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS[1:3], ids=str)
@pytest.mark.parametrize("kind", [k for k in KINDS if "frequency" in k.answers], ids=lambda kind: kind.__name__)
def test_measured_errors_of_frequencies_are_the_exact_ones(
    kind: type[TernaryMechanism], setting: tuple[int, int, float]
) -> None:
    d, s, epsilon = setting
    mechanism = kind.best_for("frequency", epsilon=epsilon, dimension=d, sparsity=s)
    assert abs(measured(mechanism, of="frequency") - 1) < 0.03


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_measured_errors_are_about_right_in_a_quick_look(kind: Callable[..., TernaryMechanism]) -> None:
    # 3,000 errors: a standard error of 2.6%, and 15% is more than five of them.
    assert abs(measured(kind(epsilon=1.0, dimension=64, sparsity=4), errors=3_000) - 1) < 0.15


def test_an_error_that_is_off_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = hb.Collision.estimate

    def stretched(self: hb.Collision, *arguments: object, **options: object) -> hb.Estimate:
        estimate = right(self, *arguments, **options)  # type: ignore[arg-type]
        return hb.Estimate(1.1 * estimate.value, estimate.variance, estimate.n, kind="quantity")  # 21% more

    monkeypatch.setattr(hb.Collision, "estimate", stretched)
    assert measured(hb.Collision(epsilon=1.0, dimension=64, sparsity=4), errors=3_000) > 1.15
