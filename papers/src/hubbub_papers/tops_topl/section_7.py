"""Section 7: a shorter holdout, a threshold that is updated while publishing, and a stream that drifts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.curator.tops import ToPS
from hubbub.random.source import Random
from hubbub_papers.claims import Claim, judged
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.tops_topl.methods import QueryErrors, measure, random_queries
from hubbub_papers.tops_topl.setting import Runs, cells_of, holdout, reach_of, sweep
from hubbub_papers.tops_topl.streams import HOW, ValueStream, made

EPSILON = 0.1
WATCH = 0.2
_BEFORE = 1 << 14
WAYS = ("held out, m", "held out, m/32", "m/32, then updated", "held out, then watched")


@reproduction("tops-section-7", title="A shorter holdout, updates while publishing, and drift, eps = 0.1", repeats=5)
def tops_section_7(context: Context) -> Reproduced:
    """DNS as it is, and DNS whose values are five times larger from the middle on; errors after the first m values."""
    steady = made("DNS", context.size((1 << 16) + (1 << 20), least=20_000))
    values = steady.values.copy()
    values[values.size // 2 :] = np.minimum(5 * values[values.size // 2 :], steady.bound)
    streams = [steady, ValueStream("DNS that grows", values, steady.bound)]
    runs = sweep(context, streams, WAYS, _run, (EPSILON,))

    def claims(some: Runs) -> list[Claim]:
        def ratio(name: str, way: str, rival: str) -> float:
            return float(some[name, EPSILON, way][:, 0].mean() / some[name, EPSILON, rival][:, 0].mean())

        return [
            Claim("DNS: a holdout of m/32 to one of m, MSE", ratio("DNS", WAYS[1], WAYS[0]), below=30),
            Claim("DNS that grows: updated to held out, MSE", ratio("DNS that grows", WAYS[2], WAYS[0]), below=1),
            Claim("DNS that grows: watched to held out, MSE", ratio("DNS that grows", WAYS[3], WAYS[0]), below=1),
        ]

    note = f"{HOW}; the paper names these ways and measures none; {WATCH:.0%} of epsilon looks for a threshold"
    return cells_of(context, runs, "MSE", note=note) + judged(claims, runs), None


def _run(stream: ValueStream, epsilon: float, way: str, rng: Random) -> QueryErrors:
    m = holdout(stream)
    short = way in WAYS[1:3]
    tops = ToPS(
        epsilon=epsilon,
        bound=stream.bound,
        holdout=m // 32 if short else m,
        max_range=reach_of(stream, m),
        watch=0.0 if way in WAYS[:2] else WATCH,
        period=m,
        follow="update" if short else "drift",
    )
    queries = random_queries(stream.values.size - m, reach_of(stream, m), rng) + m
    published = tops.start(rng).push_many(stream.values)
    return measure(_errors(published, stream.values, queries), queries)


def _errors(
    published: NDArray[np.float64], values: NDArray[np.float64], queries: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The errors of ranges. Values that are not published, during a search, count as the mean of those before them."""
    filled, unknown = published.copy(), np.isnan(published)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], unknown.astype(np.int8), [0]])))
    for start, stop in edges.reshape(-1, 2):
        filled[start:stop] = filled[max(start - _BEFORE, 0) : start].mean() if start else 0.0
    off = np.concatenate([[0.0], np.cumsum(filled - values)])
    return np.asarray(off[queries[:, 1]] - off[queries[:, 0]])
