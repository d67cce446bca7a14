"""The tree over time, two ways to read the value at a step from it, and the share of people that reports on each level.

Node j of level h, counted from 1, spans the steps (j-1) r^h + 1 to j r^h. Its *residue* is the change of the value over
these steps, x_(j r^h) - x_((j-1) r^h), where x_0 = 0; devices report it when the node ends. The value at step t is a
sum of few residues: those of the nodes that the base-r digits of t name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.ask import CIRCLE

MOST_STEPS = 1 << 24


@dataclass(frozen=True)
class Tree:
    """A tree of floor(log_r T) + 1 levels; level h has floor(T / r^h) nodes.

    `steps`: how many steps there are, T. `fanout`: how many nodes of a level make up one node of the level above, r.
    """

    steps: int
    fanout: int = 2

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("fanout", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= MOST_STEPS:
                raise InvalidValue(name, value, f"an integer from {least} to {MOST_STEPS}")
            object.__setattr__(self, name, int(value))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        counts = [self.steps]
        while counts[-1] >= self.fanout:
            counts.append(counts[-1] // self.fanout)
        return tuple(counts)

    @property
    def levels(self) -> int:
        return len(self.nodes)

    def span(self, level: int) -> int:
        """How many steps a node of a level spans."""
        span: int = self.fanout**level
        return span

    def ending(self, step: int) -> list[tuple[int, int]]:
        """The nodes that end with a step, as (level, node)."""
        self._check(step)
        return [(h, step // self.span(h)) for h in range(self.levels) if step % self.span(h) == 0]

    def parts(self, step: int) -> list[tuple[int, int]]:
        """The nodes whose residues sum to the value at a step, as (level, node), earliest first (Algorithm 2)."""
        self._check(step)
        nodes = []
        for level in reversed(range(self.levels)):
            last = step // self.span(level)
            # Nodes whose parent has ended too are part of the parent.
            first = 0 if level == self.levels - 1 else last // self.fanout * self.fanout
            nodes += [(level, node) for node in range(first + 1, last + 1)]
        return nodes

    def in_use(self, level: int) -> tuple[Ints, Ints]:
        """For each node of a level, the first step whose `parts` include it, and the first later step that does not."""
        node = np.arange(1, self.nodes[level] + 1)
        if level == self.levels - 1:
            end = np.full(node.size, self.steps + 1)
        else:
            end = np.minimum(-(-node // self.fanout) * self.span(level + 1), self.steps + 1)
        return node * self.span(level), end

    def _check(self, step: int) -> None:
        if isinstance(step, bool) or not isinstance(step, int | np.integer) or not 1 <= step <= self.steps:
            raise InvalidValue("step", step, f"a step from 1 to {self.steps}")


class Reading(Protocol):
    """A way to write a weighted sum of the values of steps as a weighted sum of residues."""

    def coefficients(self, weights: ArrayLike, now: ArrayLike) -> list[Floats]:
        """The coefficient of every residue: an array for each level, with a row for each row of weights.

        A row of weights has a weight for every step. Only nodes that ended by step `now` (one for each row) are used,
        and no weight may be on a later step.
        """
        ...


@dataclass(frozen=True)
class Digits:
    """As in the paper (Algorithm 2): the value at a step is the sum of the residues that its base-r digits name."""

    tree: Tree

    def coefficients(self, weights: ArrayLike, now: ArrayLike) -> list[Floats]:
        rows, _ = _checked(self.tree, weights, now)
        before = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
        coefficients = []
        for level in range(self.tree.levels):
            start, end = self.tree.in_use(level)
            coefficients.append(_shaped(before[:, end - 1] - before[:, start - 1], weights))
        return coefficients


@dataclass(frozen=True)
class Pooled:
    """The unbiased weighted sum of all residues of ended nodes that has the smallest variance.

    There are two independent estimates of a node's change: its own residue, and the sum of its children's residues.
    They are combined with weights in proportion to their precision, from the leaves up, u_h = 1/(1/v_h + 1/(r
    u_(h-1))), and then down again for earlier steps. For the value at the last step this about halves the variance of
    `Digits`, which does not use one node in r at all.

    `variances`: the variance of a residue's estimate at each level, up to a common factor; infinite if nobody reports
    on a level.
    """

    tree: Tree
    variances: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.variances) != self.tree.levels or not all(variance > 0 for variance in self.variances):
            raise InvalidValue("variances", self.variances, f"{self.tree.levels} numbers above 0")

    def trust(self) -> list[float]:
        """The weight of a node's own residue, against the sum of its children's residues, at each level: u_h / v_h."""
        shares, precision = [], 0.0
        for level, variance in enumerate(self.variances):
            own, below = 1 / variance, precision / self.tree.fanout
            precision = own + below
            # There is no other estimate of a leaf, even if nobody reports on the lowest level.
            shares.append(own / precision if level and precision else 1.0)
        return shares

    def coefficients(self, weights: ArrayLike, now: ArrayLike) -> list[Floats]:
        rows, ended = _checked(self.tree, weights, now)
        tree, r = self.tree, self.tree.fanout
        # As a weighted sum of leaves: a leaf's change counts in its own step and in all later ones.
        leaf = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
        rest, above = [], leaf
        for level in range(1, tree.levels):
            count = tree.nodes[level]
            has_ended = np.arange(1, count + 1) * tree.span(level) <= ended[:, None]
            mean = above[:, : count * r].reshape(len(rows), count, r).mean(axis=2) * has_ended
            # The parent takes what its children have in common; the differences stay with the children.
            own = above.copy()
            own[:, : count * r] -= np.repeat(mean, r, axis=1)
            rest.append(own)
            above = mean
        rest.append(above)
        trust, coefficients = self.trust(), [np.empty(0)] * tree.levels
        for level in reversed(range(tree.levels)):
            coefficients[level] = _shaped(trust[level] * rest[level], weights)
            if level:
                passed = (1 - trust[level]) * rest[level]
                rest[level - 1][:, : tree.nodes[level] * r] += np.repeat(passed, r, axis=1)
        return coefficients


def _checked(tree: Tree, weights: ArrayLike, now: ArrayLike) -> tuple[Floats, Ints]:
    rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != tree.steps:
        raise InvalidValue("weights", np.shape(weights), f"{tree.steps} weights, one for each step")
    ended = np.broadcast_to(np.asarray(now, dtype=np.int64), len(rows))
    if not ((ended >= 0) & (ended <= tree.steps)).all():
        raise InvalidValue("now", now, f"steps from 0 to {tree.steps}")
    if (rows * (np.arange(1, tree.steps + 1) > ended[:, None])).any():
        raise InvalidValue("weights", weights, "no weight on steps after `now`")
    return rows, ended


def _shaped(coefficients: Floats, weights: ArrayLike) -> Floats:
    return coefficients[0] if np.ndim(weights) == 1 else coefficients


Queries = Literal["mean", "prefix", "range"]
Choice = Literal["optimum", "uniform", "paper"]

_QUERIES = 512  # of a longer stream, this number of steps is looked at, spread evenly over it
_CELLS = 1 << 21
_ITERATIONS = 200


def squares(reading: Reading, tree: Tree, queries: Queries) -> Floats:
    """For each level, the sum of squared coefficients over all its nodes and all estimates of a kind.

    The estimates are the values of all steps, each at its own step ("mean"); the sums over steps 1 to t, each at step t
    ("prefix"); or the sums over any steps t1 to t2, at the end ("range"). Exact up to 512 steps.
    """
    if queries not in get_args(Queries):
        raise InvalidValue("queries", queries, f"one of {', '.join(get_args(Queries))}")
    steps = tree.steps
    count = min(steps, max(16, min(_QUERIES, _CELLS // steps)))
    times = np.unique(np.linspace(1, steps, count).round().astype(np.int64))
    step = np.arange(1, steps + 1)
    total, squared_sums, sums = np.zeros(tree.levels), [], []
    for block in np.array_split(times, -(-times.size * steps // _CELLS)):
        weights = (step == block[:, None]) if queries == "mean" else (step <= block[:, None])
        now = np.full(block.size, steps) if queries == "range" else block
        coefficients = reading.coefficients(weights, now)
        total += [float((level**2).sum()) for level in coefficients]
        if queries == "range":
            squared_sums.append([(level**2).sum(axis=0) for level in coefficients])
            sums.append([level.sum(axis=0) for level in coefficients])
    if queries != "range":
        return total * (steps / times.size)
    # A range is the difference of two prefixes a < b, of which the first may be empty: the sum of all (C_b - C_a)^2.
    for level in range(tree.levels):
        squared, plain = sum(block[level] for block in squared_sums), sum(block[level] for block in sums)
        total[level] = float(((times.size + 1) * squared - plain**2).sum())
    return total * (steps / times.size) ** 2


def level_portions(
    tree: Tree,
    variances: Sequence[float],
    *,
    queries: Queries = "mean",
    choice: Choice = "optimum",
    pooled: bool = True,
) -> Floats:
    """The share W_h of the population that reports on each level.

    The mean squared error of all estimates is the sum of A_h / W_h, where A_h are their `squares` times the variance of
    a residue: the optimum is W_h in proportion to the root of A_h. With `Pooled`, A_h depends on W itself; there the
    proportion holds at the optimum, which is found by fixed-point iteration.

    Parameters
    ----------
    tree, variances
        The tree, and for each level the variance of a residue from one report.
    queries
        The estimates whose error is minimised: the values of steps, sums from the first step on, or sums over any
        range.
    choice
        "optimum"; "uniform"; or "paper", as printed in section 4: W_h in proportion to A_h. That is no better than
        uniform for prefixes, two to three times worse for ranges, and leaves the top level empty if T is a power of r.
    pooled
        Whether estimates are made by `Pooled` or by `Digits`.
    """
    by_level = np.asarray(variances, dtype=np.float64)
    if by_level.shape != (tree.levels,) or not (np.isfinite(by_level) & (by_level > 0)).all():
        raise InvalidValue("variances", variances, f"{tree.levels} numbers above 0")
    if choice not in get_args(Choice):
        raise InvalidValue("choice", choice, f"one of {', '.join(get_args(Choice))}")
    if choice == "paper":
        return _printed(tree, queries)
    portions = np.full(tree.levels, 1 / tree.levels)
    if choice == "uniform" or tree.levels == 1:
        return portions
    if not pooled:
        return _normal(np.sqrt(squares(Digits(tree), tree, queries) * by_level))
    for _ in range(_ITERATIONS):
        before = portions
        relative = by_level / np.maximum(portions, 1e-12)
        errors = squares(Pooled(tree, tuple((relative / relative.min()).tolist())), tree, queries) * by_level
        portions = _normal(np.sqrt(portions * _normal(np.sqrt(errors))))  # the plain step overshoots
        if np.abs(portions - before).max() < 1e-5:
            break
    return portions


def arc_lengths(portions: Sequence[float] | Floats) -> list[int]:
    """The portions as integers that sum to 2^32: the lengths of arcs that cover the circle."""
    shares = np.asarray(portions, dtype=np.float64)
    if shares.ndim != 1 or not (shares >= 0).all() or not abs(shares.sum() - 1) < 1e-6:
        raise InvalidValue("portions", portions, "numbers of at least 0 that sum to 1")
    edges = [round(edge * CIRCLE) for edge in np.cumsum(shares / shares.sum()).tolist()]
    edges[-1] = CIRCLE
    return [end - start for start, end in zip([0, *edges[:-1]], edges, strict=True)]


def _printed(tree: Tree, queries: Queries) -> Floats:
    if queries == "mean":
        return np.full(tree.levels, 1 / tree.levels)
    span = np.array([tree.span(level) for level in range(tree.levels)], dtype=np.float64)
    return _normal(span * (tree.steps - span) if queries == "prefix" else span)


def _normal(portions: Floats) -> Floats:
    total = portions.sum()
    return portions / total if total > 0 else np.full(portions.size, 1 / portions.size)
