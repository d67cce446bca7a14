"""The numbers whose mean is streamed, instead of Taobao-Price: the minutes by which flights were late.

There are two forms. In the first a device holds the minutes of its latest flight, so that nearly half of the devices
hold a number above 0 at any time. In the second it holds 0 in the hours without a flight, so that only one device in
seventy holds more: so few that a private search for a threshold may not notice them.
"""

from dataclasses import replace

import numpy as np

from hubbub.protocols.window import Means
from hubbub.simulate.conversation import StreamRun
from hubbub.simulate.devices import EventStream, Stream
from hubbub_papers.harness import Context
from hubbub_papers.ldp_ids.sources import OTHER, Source
from hubbub_papers.real_streams import flights3m_delays

MOST = 2_000.0
"""A bound on the minutes that does not depend on the data."""
FORMS = {"latest flight": True, "flights of the hour": False}
"""The two streams, and whether a device keeps its latest number."""
FLOORS = {"latest flight": 1.0, "flights of the hour": 0.05}
"""Smaller means, in minutes, count as this one in relative errors: at night nobody flies."""


def delays(form: str, steps: int) -> EventStream:
    """The minutes by which the flights of 20,000 synthetic devices were late, resampled to 100,000 devices."""
    return flights3m_delays(latest=FORMS[form]).resampled().first(steps)


def percentile(stream: EventStream, percent: float) -> float:
    """A percentile of the numbers above 0 of all steps and devices."""
    numbers = np.asarray(stream.table)
    return float(np.percentile(numbers[numbers > 0], percent))


def source(context: Context, name: str, form: str, stream: EventStream, threshold: float) -> Source:
    """The stream, its numbers clipped at a threshold on the device."""
    size = context.size(stream.n, least=100)

    def make(run: int) -> Stream:
        return stream.shuffled(context.rng.child("delays", form, run), size)

    note = f"{OTHER}: {stream.data}, {stream.steps} steps"
    return Source(name, size, make, Means(0.0, threshold), note, FLOORS[form], events=(1.0,))


def after(run: StreamRun, steps: int) -> StreamRun:
    """The run without its first steps."""
    return replace(
        run,
        values=run.values[steps:],
        variances=run.variances[steps:],
        truth=run.truth[steps:],
        published=run.published[steps:],
        spent=run.spent[steps:],
    )
