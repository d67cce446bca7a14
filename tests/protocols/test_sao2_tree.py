"""The tree over time: sums of residues, coefficients and portions against brute force."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.sao2.tree import Digits, Pooled, Queries, Reading, Tree, arc_lengths, level_portions, squares

SHAPES = [(1, 2), (2, 2), (5, 2), (8, 2), (13, 2), (9, 3), (17, 3), (27, 3), (20, 4), (3, 7)]
EACH = pytest.mark.parametrize(("steps", "fanout"), SHAPES)
KINDS: tuple[Queries, ...] = ("mean", "prefix", "range")


def residues(tree: Tree, values: np.ndarray) -> list[np.ndarray]:
    """The residue of every node, from its definition."""
    from_zero = np.concatenate([[0.0], values])
    return [np.diff(from_zero[:: tree.span(h)])[: tree.nodes[h]] for h in range(tree.levels)]


def readings(tree: Tree, pick: np.random.Generator) -> list[Reading]:
    return [Digits(tree), Pooled(tree, tuple(pick.uniform(0.2, 5.0, tree.levels).tolist()))]


@EACH
def test_levels_and_nodes_are_the_floors_of_the_paper(steps: int, fanout: int) -> None:
    tree = Tree(steps, fanout)
    powers = list(itertools.takewhile(lambda power: power <= steps, (fanout**h for h in itertools.count())))
    assert tree.levels == len(powers)
    assert tree.nodes == tuple(steps // power for power in powers)


@EACH
def test_the_parts_of_a_step_sum_to_its_value(steps: int, fanout: int) -> None:
    tree, values = Tree(steps, fanout), np.random.default_rng(1).normal(size=steps)
    node_residues = residues(tree, values)
    for step in range(1, steps + 1):
        parts = tree.parts(step)
        assert np.isclose(sum(node_residues[h][node - 1] for h, node in parts), values[step - 1])
        assert len(parts) <= tree.levels * (fanout - 1)
        assert all(node * tree.span(h) <= step for h, node in parts), "a node that has not ended"
        covered = [t for h, node in parts for t in range((node - 1) * tree.span(h) + 1, node * tree.span(h) + 1)]
        assert covered == list(range(1, step + 1))


@EACH
def test_every_reading_is_unbiased_and_uses_only_what_has_ended(steps: int, fanout: int) -> None:
    tree, pick = Tree(steps, fanout), np.random.default_rng(2)
    values = pick.normal(size=steps)
    node_residues = residues(tree, values)
    for reading in readings(tree, pick):
        for now in range(1, steps + 1):
            weights = pick.normal(size=(3, steps)) * (np.arange(1, steps + 1) <= now)
            coefficients = reading.coefficients(weights, now)
            assert np.allclose(sum(c @ node_residues[h] for h, c in enumerate(coefficients)), weights @ values)
            for h, level in enumerate(coefficients):
                assert not level[:, np.arange(1, tree.nodes[h] + 1) * tree.span(h) > now].any()


@EACH
def test_digits_are_the_parts(steps: int, fanout: int) -> None:
    tree = Tree(steps, fanout)
    coefficients = Digits(tree).coefficients(np.eye(steps), np.arange(1, steps + 1))
    for step in range(1, steps + 1):
        used = [
            (h, node) for h in range(tree.levels) for node in (np.flatnonzero(coefficients[h][step - 1]) + 1).tolist()
        ]
        assert sorted(used) == sorted(tree.parts(step))
        assert all(coefficients[h][step - 1, node - 1] == 1 for h, node in used)


def incidence(tree: Tree, now: int) -> tuple[np.ndarray, np.ndarray]:
    """Every node that has ended as the sum of its leaves, and its level."""
    rows, levels = [], []
    all_nodes = [(h, node) for h in range(tree.levels) for node in range(1, tree.nodes[h] + 1)]
    for h, node in all_nodes:
        row = np.zeros(tree.steps)
        if node * tree.span(h) <= now:
            row[(node - 1) * tree.span(h) : node * tree.span(h)] = 1
        rows.append(row)
        levels.append(h)
    return np.array(rows), np.array(levels)


@pytest.mark.parametrize(("steps", "fanout"), [(1, 2), (5, 2), (8, 2), (13, 2), (17, 3), (20, 4)])
def test_pooled_is_the_best_unbiased_weighted_sum(steps: int, fanout: int) -> None:
    """Against generalised least squares over all nodes, solved as a dense system."""
    tree, pick = Tree(steps, fanout), np.random.default_rng(3)
    variances = pick.uniform(0.2, 5.0, tree.levels)
    for now in {1, steps // 2 + 1, steps}:
        table, level = incidence(tree, now)
        weighed = table / variances[level][:, None]
        inverse = np.linalg.pinv(table.T @ weighed)
        weights = pick.normal(size=(4, steps)) * (np.arange(1, steps + 1) <= now)
        leaves = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        best = leaves @ inverse @ weighed.T
        coefficients = np.concatenate(Pooled(tree, tuple(variances.tolist())).coefficients(weights, now), axis=1)
        assert np.allclose(coefficients, best)


def test_pooled_does_without_a_level_that_nobody_tells_of() -> None:
    tree, values = Tree(8, 2), np.arange(8.0)
    node_residues = residues(tree, values)
    without = Pooled(tree, (1.0, float("inf"), 1.0, float("inf"))).coefficients(np.eye(8), np.arange(1, 9))
    assert not without[1].any()
    assert not without[3].any()
    assert np.allclose(sum(c @ node_residues[h] for h, c in enumerate(without)), values)
    # Without leaves, steps that only a leaf tells of are not known: the answer leans on what nobody told.
    leafless = Pooled(tree, (float("inf"), 1.0, 1.0, 1.0)).coefficients(np.eye(8), np.arange(1, 9))
    assert [bool(row.any()) for row in leafless[0]] == [step % 2 == 1 for step in range(1, 9)]


@pytest.mark.parametrize(("steps", "fanout"), [(1, 2), (5, 2), (16, 2), (17, 3), (20, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_squares_are_the_sum_over_every_answer(steps: int, fanout: int, kind: Queries) -> None:
    tree, pick = Tree(steps, fanout), np.random.default_rng(4)
    ends = range(1, steps + 1)
    ranges: dict[str, list[tuple[int, int, int]]] = {
        "mean": [(t, t, t) for t in ends],
        "prefix": [(1, t, t) for t in ends],
        "range": [(a, b, steps) for a in ends for b in ends if a <= b],
    }
    for reading in readings(tree, pick):
        total = np.zeros(tree.levels)
        for first, last, now in ranges[kind]:
            weights = np.zeros(steps)
            weights[first - 1 : last] = 1
            total += [(level**2).sum() for level in reading.coefficients(weights, now)]
        assert np.allclose(squares(reading, tree, kind), total)


def error(tree: Tree, variances: np.ndarray, portions: np.ndarray, kind: Queries, *, pooled: bool) -> float:
    reading = Pooled(tree, tuple((variances / portions).tolist())) if pooled else Digits(tree)
    return float((squares(reading, tree, kind) * variances / portions).sum())


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("steps", "fanout"), [(16, 2), (20, 3)])
def test_no_other_portions_are_better_than_the_optimum(steps: int, fanout: int, kind: Queries, pooled: bool) -> None:
    tree, pick = Tree(steps, fanout), np.random.default_rng(5)
    variances = pick.uniform(1.0, 9.0, tree.levels)
    best = np.maximum(level_portions(tree, variances.tolist(), queries=kind, pooled=pooled), 1e-9)
    least = error(tree, variances, best, kind, pooled=pooled)
    assert np.isclose(best.sum(), 1)
    for _ in range(40):
        other = best * np.exp(pick.normal(scale=0.3, size=best.size))
        assert error(tree, variances, other / other.sum(), kind, pooled=pooled) >= least * (1 - 1e-4)


def test_the_printed_weights_leave_nobody_at_the_top() -> None:
    """At 32 steps and more the paper's portions have a zero."""
    for steps in (32, 64, 128):
        tree = Tree(steps, 2)
        assert level_portions(tree, [1.0] * tree.levels, queries="prefix", choice="paper", pooled=False)[-1] == 0
        printed = level_portions(tree, [1.0] * tree.levels, queries="range", choice="paper", pooled=False)
        equal, uniform = np.ones(tree.levels), np.full(tree.levels, 1 / tree.levels)
        assert error(tree, equal, printed, "range", pooled=False) > 1.8 * error(
            tree, equal, uniform, "range", pooled=False
        )


@pytest.mark.parametrize("kind", KINDS)
def test_pooling_is_never_worse_than_digits(kind: Queries) -> None:
    tree = Tree(128, 2)
    variances = np.ones(tree.levels)
    plain = np.full(tree.levels, 1 / tree.levels)
    assert error(tree, variances, plain, kind, pooled=True) < 0.95 * error(tree, variances, plain, kind, pooled=False)


def test_a_long_stream_is_sampled_evenly() -> None:
    tree = Tree(3000, 2)
    equal_variances = [1.0] * tree.levels
    portions = level_portions(tree, equal_variances, queries="mean", pooled=False)
    exact = np.array([float((np.subtract(*tree.in_use(h)[::-1])).sum()) for h in range(tree.levels)])
    assert np.allclose(portions, np.sqrt(exact) / np.sqrt(exact).sum(), atol=0.01)


def test_arcs_go_once_round() -> None:
    for portions in ([1.0], [0.0, 1.0], [0.1] * 10, [1e-12, 1 - 1e-12]):
        lengths = arc_lengths(portions)
        assert sum(lengths) == CIRCLE
        assert min(lengths) >= 0
        assert np.allclose(np.array(lengths) / CIRCLE, portions, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: Tree(0), "steps"),
        (lambda: Tree(1 << 25), "steps"),
        (lambda: Tree(True), "steps"),
        (lambda: Tree(4, 1), "fanout"),
        (lambda: Tree(4).parts(5), "step"),
        (lambda: Tree(4).ending(0), "step"),
        (lambda: Digits(Tree(4)).coefficients([1, 0, 0], 3), "weights"),
        (lambda: Digits(Tree(4)).coefficients([0, 0, 1, 0], 2), "weights"),
        (lambda: Digits(Tree(4)).coefficients([0, 0, 0, 0], 5), "now"),
        (lambda: Pooled(Tree(4), (1.0, 0.0, 1.0)), "variances"),
        (lambda: Pooled(Tree(4), (1.0,)), "variances"),
        (lambda: level_portions(Tree(4), [1.0, 1.0]), "variances"),
        (lambda: level_portions(Tree(4), [1.0] * 3, queries="median"), "queries"),  # type: ignore[arg-type]
        (lambda: level_portions(Tree(4), [1.0] * 3, choice="best"), "choice"),  # type: ignore[arg-type]
        (lambda: arc_lengths([0.5, 0.4]), "portions"),
        (lambda: arc_lengths([1.5, -0.5]), "portions"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        call()
    assert refused.value.field == field
