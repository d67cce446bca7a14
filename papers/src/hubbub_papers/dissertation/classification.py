"""Classifiers that are trained on records drawn from a marginal, and how often they misclassify real people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.marginals import Codes, Floats
from hubbub.consistency.norm_sub import project_simplex
from hubbub.core.errors import HubbubError
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator


def drawn_records(table: Floats, n: int, rng: Random) -> NDArray[np.int64]:
    """Draw n records from a marginal, moved to the simplex if it has shares below 0; return the count of each cell."""
    shares = project_simplex(table.ravel())
    return generator(rng).multinomial(n, shares / shares.sum()).reshape(table.shape)


def misclassified(counts: NDArray[np.int64], records: Codes) -> float:
    """Train a support vector machine on drawn records; return the share of real records that it labels wrongly.

    The machine has a radial kernel and C = 1. Features are one-hot. Equal records are passed as one record with a
    weight, which trains the same machine. If all drawn records have one label, every real record gets that label.

    Parameters
    ----------
    counts
        How many drawn records are in each cell: axes are the features, then the label.
    records
        Real records, the label last.
    """
    try:
        from sklearn.svm import SVC  # type: ignore[import-untyped]
    except ImportError:
        raise HubbubError(
            "scikit-learn is not installed: classifiers are trained with it (pip install scikit-learn)"
        ) from None

    drawn = np.argwhere(counts)
    labels = drawn[:, -1]
    if np.unique(labels).size == 1:
        return float(np.mean(records[:, -1] != labels[0]))
    weights = counts[tuple(drawn.T)].astype(np.float64)
    machine = SVC(C=1.0, gamma="scale", cache_size=50)
    machine.fit(_one_hot(drawn[:, :-1], counts.shape), labels, sample_weight=weights)
    all_features = np.stack(np.unravel_index(np.arange(counts[..., 0].size), counts.shape[:-1]), axis=1)
    predicted = machine.predict(_one_hot(all_features, counts.shape)).reshape(counts.shape[:-1])
    return float(np.mean(predicted[tuple(records[:, :-1].T)] != records[:, -1]))


def _one_hot(codes: Codes, shape: tuple[int, ...]) -> Floats:
    columns = [codes[:, [axis]] == np.arange(shape[axis]) for axis in range(codes.shape[1])]
    return np.concatenate(columns, axis=1).astype(np.float64)
