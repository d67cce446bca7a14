"""The sketch of a whole population: randomise every value, and fold the reports."""

from __future__ import annotations

from typing import Any

from hubbub.core.errors import check_integer
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism

_MOST_BYTES = 1 << 26  # of reports in memory at a time: some mechanisms have reports of kilobytes


def collect(mechanism: Mechanism, values: Any, rng: Random, *, chunk: int = 1 << 18, shards: int = 1) -> Sketch:
    """Randomise every value and fold the reports into one sketch, a part of the population at a time.

    Parameters
    ----------
    mechanism
        The mechanism of every report.
    values
        The value of each person.
    rng
        The randomness of all reports. With several shards, each has its own stream, derived from this one.
    chunk
        The most reports in memory at a time; fewer if reports are large (64 MiB in all).
    shards
        How many servers share the work: each folds its part, then the sketches are merged.
    """
    check_integer("chunk", chunk, 1)
    check_integer("shards", shards, 1)
    step = max(1, min(chunk, _MOST_BYTES // mechanism.report_bytes))
    sketch = mechanism.empty()
    if shards == 1:
        parts = [(values, rng)]
    else:
        tag = rng.bytes(16).hex()  # drawn, so that the shards of the next call have other streams
        cuts = [len(values) * shard // shards for shard in range(shards + 1)]
        parts = [(values[cuts[i] : cuts[i + 1]], rng.child("shard", tag, i)) for i in range(shards)]
    for part, stream in parts:
        for start in range(0, len(part), step):
            sketch = sketch + mechanism.accumulate(mechanism.randomize(part[start : start + step], stream))
    return sketch
