"""A whole population answers: randomise everyone, fold the reports, keep only the sketch."""

from __future__ import annotations

from typing import Any

from hubbub.core.errors import check_integer
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism

_MOST_BYTES = 1 << 26  # of reports held at a time: a histogram of noisy counts is kilobytes a person


def collect(mechanism: Mechanism, values: Any, rng: Random, *, chunk: int = 1 << 18, shards: int = 1) -> Sketch:
    """Randomise every value and fold the reports into one sketch, a part of the population at a time.

    Parameters
    ----------
    mechanism
        What each person runs.
    values
        One value a person.
    rng
        Everyone's randomness. With several shards each has a stream of its own, derived from this one.
    chunk
        The most people whose reports are held at a time; fewer where reports are large (64 MiB in all).
    shards
        How many servers share the work: each folds its own part, then the sketches are merged.

    Example:
        >>> from hubbub import OLH
        >>> olh = OLH(epsilon=2.0, domain=64)
        >>> sketch = collect(olh, [3] * 700 + [5] * 300, Random(seed=1), chunk=128, shards=2)
        >>> sketch.n, olh.estimate(sketch).top(2).tolist()
        (1000, [3, 5])
    """
    for field, given in (("chunk", chunk), ("shards", shards)):
        check_integer(field, given, 1)
    step = max(1, min(chunk, _MOST_BYTES // mechanism.report_bytes))
    whole = mechanism.empty()
    if shards == 1:
        parts = [(values, rng)]
    else:
        tag = rng.bytes(16).hex()  # drawn, so that the next call's shards have other streams
        cuts = [len(values) * shard // shards for shard in range(shards + 1)]
        parts = [(values[cuts[i] : cuts[i + 1]], rng.child("shard", tag, i)) for i in range(shards)]
    for part, stream in parts:
        for start in range(0, len(part), step):
            whole = whole + mechanism.accumulate(mechanism.randomize(part[start : start + step], stream))
    return whole
