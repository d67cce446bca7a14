"""The server's half of SaO2: from counts to answers, in real time, and what they say of their bias.

A device that may not tell of every change of its value draws answers to the past.
"""

from typing import Any, Literal

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch
from hubbub.protocols.sao2 import Answers, Sao2
from hubbub_papers.sao2_exsub.online import MECHANISMS, as_printed
from tests.shared.answers import holds, sketched

MANY = 10**12
PLANS = [
    Sao2(epsilon=1.0, dimension=2, steps=8, changes=20),
    Sao2(epsilon=1.0, dimension=2, steps=8, changes=20, pooled=False),
    Sao2(epsilon=2.0, dimension=3, steps=13, changes=40, fanout=3, queries="range"),
    Sao2(epsilon=0.5, dimension=1, steps=7, changes=9, choice="uniform", queries="prefix"),
]
EVERY = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.steps}-{plan.fanout}-{plan.pooled}")


def exact_sketch(plan: Sao2, level: int, nodes: list[int], residues: np.ndarray, n: int) -> Sketch:
    """What MANY devices would say if no chance were left: as many of each sign as is expected, at these nodes."""
    mechanism, d = plan.mechanisms[level], plan.dimension
    counts = np.zeros(mechanism.sketch_shape, dtype=np.int64)
    for node in nodes:
        mean = residues[node - 1]
        changed = np.abs(mean)
        base = float(mechanism.p_false) * (1 - changed)
        up, down = (1 + np.sign(mean)) / 2 * changed, (1 - np.sign(mean)) / 2 * changed
        plus = base + float(mechanism.p_true) * up + float(mechanism.p_reverse) * down
        minus = base + float(mechanism.p_true) * down + float(mechanism.p_reverse) * up
        counts[:, (node - 1) * d : node * d] = np.rint(MANY * np.stack([plus, minus])).astype(np.int64)
    return Sketch(mechanism.spec_id, n, counts)


def level_means(plan: Sao2, means: np.ndarray, level: int) -> np.ndarray:
    span = plan.tree.span(level)
    return np.diff(np.concatenate([np.zeros((1, plan.dimension)), means])[::span], axis=0)[: plan.tree.nodes[level]]


@EVERY
def test_answers_at_every_moment_are_the_truth_where_chance_has_no_part(plan: Sao2) -> None:
    means = np.random.default_rng(1).uniform(0, 1, (plan.steps, plan.dimension))
    answers = Answers(plan)
    for step in range(1, plan.steps + 1):
        for level, node in plan.ending(step):
            residues = level_means(plan, means, level)
            answers.add(level, exact_sketch(plan, level, [node], residues, MANY if node == 1 else 0))
        answers.step = step
        for first in range(1, step + 1):
            assert np.allclose(answers.mean(first).value, means[first - 1], atol=1e-6)
            assert np.allclose(answers.range(first, step).value, means[first - 1 : step].sum(axis=0), atol=1e-6)
        assert np.allclose(answers.prefix(step).value, means[:step].sum(axis=0), atol=1e-6)
        weights = np.random.default_rng(step).normal(size=plan.steps) * (np.arange(plan.steps) < step)
        assert np.allclose(answers.weighted(weights).value, weights @ means, atol=1e-5)


@EVERY
def test_variances_are_squared_coefficients_times_those_of_the_residues(plan: Sao2) -> None:
    """The stated variance of a mean against the plan's own, which is of people who use all their changes."""
    answers, n = Answers(plan), 10**6
    for level in range(plan.tree.levels):
        mechanism = plan.mechanisms[level]
        changed = mechanism.sparsity / mechanism.dimension  # half of them up, half of them down
        sign = float(mechanism.p_false) * (1 - changed) + float(mechanism.p_true + mechanism.p_reverse) * changed / 2
        counts = np.full(mechanism.sketch_shape, round(n * sign), dtype=np.int64)
        answers.add(level, Sketch(mechanism.spec_id, n, counts))
    answers.step = plan.steps
    for step in range(1, plan.steps + 1):
        weights = np.arange(1, plan.steps + 1) == step
        coefficients = plan.reading(answers.n).coefficients(weights, plan.steps)
        expected = sum(
            float((c**2).sum()) * (variance + m.sparsity / m.dimension) / n
            for c, variance, m in zip(coefficients, plan.variances, plan.mechanisms, strict=True)
        )
        assert np.allclose(answers.mean(step).variance, expected, rtol=1e-3)


def test_the_optimum_minimises_the_stated_variance() -> None:
    """What the portions were chosen for is what the answers state: uniform portions state more."""

    def stated(choice: Literal["optimum", "uniform"]) -> float:
        plan = Sao2(epsilon=1.0, dimension=1, steps=32, changes=8, choice=choice, queries="prefix")
        answers = Answers(plan)
        answers.step = 32
        for level, portion in enumerate(plan.portions):
            m = plan.mechanisms[level]
            n = max(1, round(portion * 10**7))
            answers.add(level, Sketch(m.spec_id, n, np.full(m.sketch_shape, round(n * float(m.p_false)))))
        total = 0.0
        for step in range(1, 33):
            answers.step = step
            total += float(answers.prefix(step).variance.sum())
        return total

    assert 0.70 < stated("optimum") / stated("uniform") < 0.90


def test_who_says_nothing_is_estimated_without_knowing_who_it_is() -> None:
    plan = Sao2(epsilon=1.0, dimension=4, steps=4, changes=2, choice="uniform")
    answers, rng = Answers(plan), hb.Random(seed=1)
    for level, m in enumerate(plan.mechanisms):
        no_changes = hb.Ternary(np.empty((20_000, 0), dtype=np.int64), m.dimension)
        answers.add(
            level, Sketch(m.spec_id, 25_000, sketched(m, no_changes, rng).counts)
        )  # a fifth enrolled, and fell silent
    silent = answers.silent(4)
    assert abs(silent.value[0] - 0.2) < 5 * silent.stderr[0] < 0.1  # fails once in two million seeds


@pytest.mark.parametrize("name", MECHANISMS)
def test_rivals_are_under_the_same_promise(name: str) -> None:
    plan = as_printed(name, epsilon=1.0, dimension=2, steps=8, changes=3)
    assert all(m.effective_epsilon <= 1.0 for m in plan.mechanisms)
    assert plan.online == (name != "Collision")
    assert np.allclose(plan.portions, 1 / 4)


def test_foreign_sketches_are_refused_and_change_nothing() -> None:
    plan = PLANS[0]
    answers = Answers(plan)
    with pytest.raises(SpecMismatch):
        answers.add(0, plan.mechanisms[1].empty())
    with pytest.raises(SpecMismatch):
        answers.add(0, Sketch(plan.mechanisms[0].spec_id, 1, np.zeros((2, 3), dtype=np.int64)))
    assert not answers.n.any()


@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 4), (3, 2), (True, 2), (1.0, 2)])
def test_steps_that_are_not_known_are_refused(first: Any, last: int) -> None:
    answers = Answers(PLANS[0])
    answers.step = 3
    with pytest.raises(InvalidValue):
        answers.range(first, last)


# -- bias -----------------------------------------------------------------------------------------------------------


def last_answer(changes: int, mechanism: str) -> Estimate:
    """A population that drifts from item to item, 3 changes for each of 4,000 people a level, seen at the last step."""
    plan = Sao2(epsilon=8.0, dimension=4, steps=4, changes=changes, mechanism=mechanism)
    answers, rng = Answers(plan), hb.Random(seed=1)
    history = np.eye(4, dtype=np.int8)[None, :, :].repeat(4_000, axis=0)  # item t at step t
    for level, (view, told) in enumerate(zip(plan.views, plan.mechanisms, strict=True)):
        answers.add(level, sketched(told, view(history), rng))
    answers.step = 4
    return answers.mean(4)


def test_where_changes_are_lost_the_bias_is_said() -> None:
    estimate = last_answer(changes=3, mechanism="Collision")
    assert not holds(estimate, [0.0, 0.0, 0.0, 1.0]).all()  # the last item is not seen by all
    assert estimate.bias == "heuristic"


def test_where_none_can_be_lost_there_is_no_bias() -> None:
    estimate = last_answer(changes=16, mechanism="Collision")
    assert estimate.value[3] == pytest.approx(1.0, abs=5 * estimate.stderr[3])
    assert estimate.bias == "none"


@pytest.mark.parametrize(
    ("plan", "clips"),
    [
        (Sao2(epsilon=1.0, dimension=3, steps=4, changes=7, one=True), False),
        (Sao2(epsilon=1.0, dimension=3, steps=4, changes=6, one=True), True),
        (Sao2(epsilon=1.0, dimension=1, steps=4, changes=4), False),
        (Sao2(epsilon=1.0, dimension=1, steps=4, changes=3), True),
    ],
    ids=str,
)
def test_a_plan_knows_whether_changes_can_be_lost(plan: Sao2, clips: bool) -> None:
    assert plan.clips(4) == clips
    assert not plan.clips(1) or plan.dimension > plan.changes
