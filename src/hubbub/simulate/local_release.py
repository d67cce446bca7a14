"""A stream of a file or a pipe as its devices would tell it: each value is one device's, and is reported once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.curator.steps import Step
from hubbub.curator.stream import checked_values
from hubbub.protocols.topl.server import ToPLServer


def tell(server: ToPLServer, values: NDArray[np.float64], rng: Random) -> list[Step]:
    """Let the devices that hold these values report, one after another, and return the steps that they complete.

    A value that no device could hold is refused before any reports.

    Example:
        >>> from hubbub.protocols.topl.server import ToPL
        >>> server = ToPLServer(ToPL(epsilon=4.0, bound=1000.0, holdout=4000, every=2000))
        >>> steps = tell(server, np.full(9000, 20.0), Random(seed=1))
        >>> [(step.step, step.first, round(step.value)) for step in steps], server.position
        ([(0, 4000, 20), (1, 6000, 20)], 9000)
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
