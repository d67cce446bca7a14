"""Watch a stream of your own: run a protocol by hand, and print when a share is surely too high.

`converse` runs the protocol; all it needs is someone who answers asks. Here that is a population of simulated devices,
in the service it is the network. Run it with `python examples/watch_stream.py`.
"""

import numpy as np

import hubbub as hb
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import Frequencies, window_stream

DEVICES, STEPS = 50_000, 60
rng = hb.Random(seed=1)  # a simulation; a device leaves the seed out
places = rng.uint32(DEVICES)  # where each device stands on the circle, which the server never learns


def values_at(step: int) -> np.ndarray:
    """The value of each device at a step: 5% of them crashed, and 30% from step 25 to 39."""
    share = 0.30 if 25 <= step < 40 else 0.05
    return np.where(rng.child("step", step).uint32(DEVICES) < share * 2**32, "crashed", "fine")


def answer(ask: Ask) -> hb.Sketch:
    """Every device on the asked arc randomises its own value; the server only adds up the reports."""
    values = values_at(ask.step)[ask.cohort.holds(places)]
    return ask.mechanism.accumulate(ask.mechanism.randomize(ask.view(values), rng))


stream = window_stream("LPA", Frequencies(["fine", "crashed"]), epsilon=1.0, w=10)
alarm = False
for release in converse(stream, answer, steps=STEPS):
    low, high = (float(end[1]) for end in release.estimate.interval(0.90))
    if low > 0.15 if not alarm else high < 0.12:  # surely above one threshold, or surely below another
        alarm = not alarm
        print(f"step {release.step}: alarm {'on' if alarm else 'off'}, {low:.1%} to {high:.1%} crashed")
