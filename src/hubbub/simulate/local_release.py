"""A stream of values from a file or a pipe, reported as by devices: each value is of one device and reported once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.curator.steps import Step
from hubbub.curator.stream import checked_values
from hubbub.protocols.topl.server import ToPLServer


def report_values(server: ToPLServer, values: NDArray[np.float64], rng: Random) -> list[Step]:
    """Report these values to the server, one after another, and return the steps that they complete.

    If a value is not allowed, all are refused and nothing is reported.
    """
    rest = checked_values(values, server.settings.bound, server.position)
    steps = []
    while rest.size:
        mechanism: Any = server.ask.mechanism
        part, rest = rest[: server.room], rest[server.room :]
        reports = mechanism.randomize(server.ask.view(part), rng)
        mean = server.add(mechanism.accumulate(reports))
        if mean is not None:
            (low,), (high,) = mean.interval()
            first = server.position - server.settings.every
            steps.append(Step(server.steps - 1, first, float(mean.value[0]), float(low), float(high)))
    return steps
