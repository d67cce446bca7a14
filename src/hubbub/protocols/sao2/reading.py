"""Two ways to estimate the value at a step as a weighted sum of residues of the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.protocols.sao2.tree import Tree

Floats = NDArray[np.float64]


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

    Parameters
    ----------
    tree
        The tree.
    variances
        The variance of a residue's estimate at each level, up to a common factor; infinite if nobody reports on a
        level.
    """

    tree: Tree
    variances: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.variances) != self.tree.levels or not all(variance > 0 for variance in self.variances):
            raise InvalidValue("variances", self.variances, f"{self.tree.levels} numbers above 0")

    def trust(self) -> list[float]:
        """The weight of a node's own residue, beside the sum of its children's residues, at each level: u_h / v_h."""
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


def _checked(tree: Tree, weights: ArrayLike, now: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
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
