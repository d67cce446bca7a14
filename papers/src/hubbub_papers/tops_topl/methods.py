"""The methods that the paper compares: thresholds, hierarchies and both together, as errors on range queries."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.curator.tops import ToPS
from hubbub.curator.tree import NoiseTree
from hubbub.kernels.curator import FINE
from hubbub.random.noise import laplace_cells
from hubbub.random.source import Random
from hubbub_papers.tops_topl.pak import threshold_s_p, threshold_s_pak
from hubbub_papers.tops_topl.streams import PAPER, ValueStream

QUERIES = 200
_UNIT = 1 << 16  # cells of scale for noise of scale 1
Floats = NDArray[np.float64]
Queries = NDArray[np.int64]


class QueryErrors(NamedTuple):
    """The four errors of the paper: Eq 9 and appendix F."""

    mse: float
    mae: float
    mmse: float
    mmae: float


def random_queries(n: int, longest: int, rng: Random, count: int = QUERIES) -> Queries:
    """Random ranges (first, last) of at least one and at most `longest` positions."""
    start = rng.below(max(n - longest, 0) + 1, count)
    room = min(n, longest)
    ends = np.sort(np.stack([rng.below(room + 1, count), rng.below(room, count)], axis=1), axis=1)
    ends[:, 1] += ends[:, 0] == ends[:, 1]
    return np.asarray(ends + start[:, None])


def measure(errors: Floats, queries: Queries) -> QueryErrors:
    """The four errors of the paper, from the errors of answers."""
    means = errors / (queries[:, 1] - queries[:, 0])
    squared, absolute = (float(np.mean(part)) for part in (errors**2, np.abs(errors)))
    return QueryErrors(squared, absolute, float(np.mean(means**2)), float(np.abs(means).mean()))


def height_of(n: int, fan_out: int = 16) -> int:
    """The layers of a hierarchy over n values."""
    return next(h for h in range(1, 64) if fan_out**h >= n)


def search_of(stream: ValueStream, epsilon: float, reach: int, m: int) -> ToPS:
    """ToPS as the paper runs it: candidates 1 to B, Laplace noise; c = 60 on the paper's streams, else 3% of B."""
    return ToPS(
        epsilon=epsilon,
        bound=stream.bound,
        holdout=m,
        max_range=reach,
        candidates=int(stream.bound),
        noise="laplace",
        constant=60.0 if stream.name in PAPER else 0.0,
    )


Threshold = Callable[[ValueStream, Floats, float, int, Random], float]


def _nm_e(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    search = search_of(stream, epsilon, reach, values.size).search
    return search.choose(search.count(values), rng)


def _s_pak(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    return threshold_s_pak(values, stream.bound, epsilon, rng)


def _s_p(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    return threshold_s_p(values, stream.bound, epsilon, rng)


def _s_pak_cut(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    return min(_s_pak(stream, values, epsilon, reach, rng), stream.bound)


THRESHOLDS: dict[str, Threshold] = {"NM-E": _nm_e, "S-PAK": _s_pak, "S-P": _s_p, "S-PAK cut": _s_pak_cut}
"""From the held-out values to a threshold. "S-PAK cut" is cut at the bound; the paper's S-PAK is not."""

Hierarchy = Callable[[Floats, float, float, int, Queries, Random], Floats]
"""From values, theta, epsilon, the reach r, queries and randomness to the errors of answers on the clipped values."""


def _raw(fan_out: int) -> Hierarchy:
    def errors(values: Floats, theta: float, epsilon: float, reach: int, queries: Queries, rng: Random) -> Floats:
        height = height_of(reach, fan_out)
        noise: dict[tuple[int, int], int] = {}
        used = [
            [noise.setdefault(node, len(noise)) for node in _nodes(first, last, fan_out, height)]
            for first, last in queries
        ]
        drawn = laplace_cells(len(noise), _UNIT, rng) / _UNIT * (height * theta / epsilon)
        return np.array([drawn[nodes].sum() for nodes in used])

    return errors


def _nodes(first: int, last: int, fan_out: int, height: int) -> list[tuple[int, int]]:
    """The fewest nodes that add up to a range, as (level, place)."""
    nodes: list[tuple[int, int]] = []
    for level in range(height):
        up, down = -(-first // fan_out), last // fan_out
        if level == height - 1 or up >= down:
            return nodes + [(level, place) for place in range(int(first), int(last))]
        nodes += [(level, place) for place in range(int(first), int(up * fan_out))]
        nodes += [(level, place) for place in range(int(down * fan_out), int(last))]
        first, last = up, down
    return nodes


def _consistent(values: Floats, theta: float, epsilon: float, reach: int, queries: Queries, rng: Random) -> Floats:
    tree = NoiseTree(epsilon=Fraction(epsilon), fan_out=16, layers=height_of(reach))
    trees = -(-int(queries.max()) // tree.leaves)
    noise = np.concatenate([tree.noise(rng) for _ in range(trees)])
    total = np.concatenate([[0], np.cumsum(noise)])
    return np.asarray((total[queries[:, 1]] - total[queries[:, 0]]) * (theta / tree.cells / FINE))


def smoothed(smoother: str = "recent") -> Hierarchy:
    """H16 with consistency and a smoother: the perturber and smoother of ToPS, with a fixed threshold."""

    def errors(values: Floats, theta: float, epsilon: float, reach: int, queries: Queries, rng: Random) -> Floats:
        bound = max(theta, float(values.max()))
        tops = ToPS(epsilon=epsilon, bound=bound, max_range=reach, smoother=smoother)
        published = tops.start(rng, theta=theta).push_many(values)
        total = np.concatenate([[0.0], np.cumsum(published - np.minimum(values, theta))])
        return np.asarray(total[queries[:, 1]] - total[queries[:, 0]])

    return errors


HIERARCHIES: dict[str, Hierarchy] = {"H2": _raw(2), "H16": _raw(16), "H16c": _consistent, "Hhat16c": smoothed()}
"""The paper's names; Hhat16c is with the Recent smoother."""

FULL = {
    "PAK": ("S-PAK", "H2"),
    "PAK, theta cut at B": ("S-PAK cut", "H2"),
    "Hhat16c": ("S-PAK", "Hhat16c"),
    "NM-E": ("NM-E", "H2"),
    "ToPS": ("NM-E", "Hhat16c"),
}
"""Figure 3: the threshold and the hierarchy of each method. PAK with a threshold cut at the bound is ours."""


def answer_errors(
    method: str, stream: ValueStream, m: int, reach: int, epsilon: float, queries: Queries, rng: Random
) -> Floats:
    """The errors of a whole method: its threshold is found on the first m values; clipping counts as error."""
    if method == "Base":
        total = np.concatenate([[0.0], np.cumsum(stream.values[m:])])
        return np.asarray(total[queries[:, 0]] - total[queries[:, 1]])
    threshold, hierarchy = FULL[method]
    theta = THRESHOLDS[threshold](stream, stream.values[:m], epsilon, reach, rng.child("threshold"))
    rest = stream.values[m:]
    return HIERARCHIES[hierarchy](rest, theta, epsilon, reach, queries, rng) - cut_off(rest, theta, queries)


def cut_off(values: Floats, theta: float, queries: Queries) -> Floats:
    """The part of each range's sum that is lost by clipping at theta."""
    total = np.concatenate([[0.0], np.cumsum(np.maximum(values - theta, 0.0))])
    return np.asarray(total[queries[:, 1]] - total[queries[:, 0]])
