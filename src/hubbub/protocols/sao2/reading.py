"""Reading answers off the tree: which residues an answer is the weighted sum of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.protocols.sao2.tree import Tree

Floats = NDArray[np.float64]


class Reading(Protocol):
    """How a weighted sum of the values of steps is read off the residues."""

    def coefficients(self, weights: ArrayLike, now: ArrayLike) -> list[Floats]:
        """The coefficient of every residue, an array a level; a row for each row of weights, one weight a step.

        Only what ended by step `now` (one for each row) is used. No weight may be on a later step.
        """
        ...


@dataclass(frozen=True)
class Digits:
    """The paper's: the value of a step is the sum of the residues that the digits of the step name (Algorithm 2).

    Example:
        >>> tree = Tree(steps=5, fanout=2)
        >>> [level.tolist() for level in Digits(tree).coefficients([0, 0, 1, 0, 0], now=3)]  # x_3: steps 1 and 2, 3
        [[0.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0], [0.0]]
    """

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
    """The best: of all unbiased weighted sums of residues that have ended, the one with the smallest variance.

    A node's change is told twice, by its own residue and by the sum of its children's, from other people. Both are
    weighed by how sure they are, all the way up from the leaves, u_h = 1/(1/v_h + 1/(r u_(h-1))), and back down for
    steps of the past. For the value at the last step this about halves the variance of `Digits`, since those use one
    node in r not at all.

    Parameters
    ----------
    tree
        The tree.
    variances
        Of a residue's estimate at each level, up to a common factor; infinite where nobody tells of a level.

    Example:
        >>> tree = Tree(steps=4, fanout=2)
        >>> pooled = Pooled(tree, (1.0, 1.0, 1.0))
        >>> [level.round(3).tolist() for level in pooled.coefficients([0, 1, 0, 0], now=2)]
        [[0.333, 0.333, 0.0, 0.0], [0.667, 0.0], [0.0]]
    """

    tree: Tree
    variances: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.variances) != self.tree.levels or not all(variance > 0 for variance in self.variances):
            raise InvalidValue("variances", self.variances, f"{self.tree.levels} numbers above 0")

    def trust(self) -> list[float]:
        """How far each level's own residue is trusted, beside the sum of its children's: u_h / v_h.

        Example:
            >>> Pooled(Tree(steps=2), (1.0, float("inf"))).trust()
            [1.0, 0.0]
        """
        shares, precision = [], 0.0
        for level, variance in enumerate(self.variances):
            own, below = 1 / variance, precision / self.tree.fanout
            precision = own + below
            # A leaf is all that tells of its step, even where nobody tells of it.
            shares.append(own / precision if level and precision else 1.0)
        return shares

    def coefficients(self, weights: ArrayLike, now: ArrayLike) -> list[Floats]:
        rows, ended = _checked(self.tree, weights, now)
        tree, r = self.tree, self.tree.fanout
        # An answer is a weighted sum of leaves: of a leaf's change, all steps from it on have their weight.
        leaf = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
        rest, above = [], leaf
        for level in range(1, tree.levels):
            count = tree.nodes[level]
            there = np.arange(1, count + 1) * tree.span(level) <= ended[:, None]
            mean = above[:, : count * r].reshape(len(rows), count, r).mean(axis=2) * there
            # The parent answers for what its children have in common, they themselves for their differences.
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
        raise InvalidValue("weights", np.shape(weights), f"{tree.steps} weights, one a step")
    ended = np.broadcast_to(np.asarray(now, dtype=np.int64), len(rows))
    if not ((ended >= 0) & (ended <= tree.steps)).all():
        raise InvalidValue("now", now, f"steps from 0 to {tree.steps}")
    if (rows * (np.arange(1, tree.steps + 1) > ended[:, None])).any():
        raise InvalidValue("weights", weights, "no weight on steps that are still to come")
    return rows, ended


def _shaped(coefficients: Floats, weights: ArrayLike) -> Floats:
    return coefficients[0] if np.ndim(weights) == 1 else coefficients
