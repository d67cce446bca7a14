"""LPA over a million simulated devices; print CPU time, that of drawing its reports' bytes alone, and peak memory."""

import json
import sys
import time

import numpy as np
from numpy.typing import NDArray
from stream import peak

import hubbub as hb
from hubbub.protocols.driver import converse
from hubbub.protocols.window import Frequencies, window_stream
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import Ledgers

D, W, BUFFER = 117, 20, 1 << 18


class Fixed(Stream):
    """Devices whose values stand still: their making should cost nothing here."""

    steps = None

    def __init__(self, n: int) -> None:
        self.n = n
        self._values = hb.Random(seed=1).below(D, n).astype(np.uint8)

    def values(self, step: int, start: int, stop: int) -> NDArray[np.uint8]:
        return self._values[start:stop]

    def truth(self, step: int) -> NDArray[np.float64]:
        return np.bincount(self._values, minlength=D) / self.n


def run(n: int, steps: int) -> Fleet:
    fleet = Fleet(Fixed(n), hb.Random(), ledgers=Ledgers.of_window(n, epsilon=1.0, w=W, strict=True))
    for _ in converse(window_stream("LPA", Frequencies(D), epsilon=1.0, w=W), fleet.answer, steps=steps):
        pass
    return fleet


def main(n: int, steps: int) -> None:
    run(n, 3)  # compiles
    start = time.process_time()
    fleet = run(n, steps)
    cpu = time.process_time() - start
    rng, buffer = hb.Random(), np.empty(BUFFER, dtype=np.uint8)
    start = time.process_time()
    for _ in range(fleet.traffic.reports * D * 2 // BUFFER):  # 16 bits a value
        rng.fill(buffer)
    drawing = time.process_time() - start
    print(json.dumps({"cpu": cpu, "drawing": drawing, "peak": peak(), "reports": fleet.traffic.reports}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
