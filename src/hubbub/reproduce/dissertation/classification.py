"""Classifiers that are trained on records drawn from a marginal, and how often they are wrong about real people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.contingency import Codes, Floats
from hubbub.consistency.simplex import project_simplex
from hubbub.core.errors import HubbubError
from hubbub.core.random import Random
from hubbub.reproduce.baselines.heavy_hitters.drawing import generator


def drawn_records(table: Floats, n: int, rng: Random) -> NDArray[np.int64]:
    """How many of n records drawn from a marginal fall in each of its cells; shares below 0 are moved to the simplex.

    Example:
        >>> drawn_records(np.array([[0.6, 0.5], [-0.1, 0.0]]), 10, Random(seed=1)).sum()
        np.int64(10)
    """
    shares = project_simplex(table.ravel())
    return generator(rng).multinomial(n, shares / shares.sum()).reshape(table.shape)


def misclassified(counts: NDArray[np.int64], records: Codes) -> float:
    """The part of real records whose last attribute a support vector machine, trained on drawn ones, gets wrong.

    Features are one-hot; equal records are one with a weight, which trains the same machine (radial kernel, C = 1).
    Where all drawn records have one label, that is what is said.

    Parameters
    ----------
    counts
        How many drawn records are in each cell: axes are the features, then the label.
    records
        Real records, the label last.

    Example:
        >>> counts = np.array([[90, 10], [5, 95]])
        >>> misclassified(counts, np.array([[0, 0], [0, 0], [1, 1], [1, 0]]))
        0.25
    """
    try:
        from sklearn.svm import SVC  # type: ignore[import-untyped]
    except ImportError:
        raise HubbubError(
            "scikit-learn is not installed: classifiers are trained with it (pip install scikit-learn)"
        ) from None

    held = np.argwhere(counts)
    labels = held[:, -1]
    if np.unique(labels).size == 1:
        return float(np.mean(records[:, -1] != labels[0]))
    weights = counts[tuple(held.T)].astype(np.float64)
    machine = SVC(C=1.0, gamma="scale", cache_size=50)
    machine.fit(_one_hot(held[:, :-1], counts.shape), labels, sample_weight=weights)
    every = np.stack(np.unravel_index(np.arange(counts[..., 0].size), counts.shape[:-1]), axis=1)
    said = machine.predict(_one_hot(every, counts.shape)).reshape(counts.shape[:-1])
    return float(np.mean(said[tuple(records[:, :-1].T)] != records[:, -1]))


def _one_hot(codes: Codes, shape: tuple[int, ...]) -> Floats:
    columns = [codes[:, [axis]] == np.arange(shape[axis]) for axis in range(codes.shape[1])]
    return np.concatenate(columns, axis=1).astype(np.float64)
