"""What is watched: simulated devices, what they are asked, and which number of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.data.processes import sine_process
from hubbub.demo.step_times import StepTimes
from hubbub.protocols.window import Frequencies, Statistic
from hubbub.simulate.devices import ArrayStream, Stream
from hubbub.simulate.streams import binary_stream


class Stepwise(Stream):
    """A stream whose steps are made as they are asked for: it takes the memory of one.

    Parameters
    ----------
    row
        Makes the values that the devices hold at a step.
    n, steps
        How many devices and steps there are.
    domain
        How many codes there are; None for numbers.
    """

    def __init__(self, row: Callable[[int], NDArray[Any]], *, n: int, steps: int, domain: int | None) -> None:
        self.n, self.steps, self.domain = n, steps, domain
        self._row, self._at = row, 0
        self._held: ArrayStream | None = None

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return self._now(step).values(1, start, stop)

    def truth(self, step: int) -> NDArray[np.float64]:
        return self._now(step).truth(1)

    def _now(self, step: int) -> ArrayStream:
        if self._held is None or step != self._at:
            self._at, self._held = step, ArrayStream(self._row(step)[np.newaxis], self.domain)
        return self._held


@dataclass(frozen=True, eq=False)
class WatchScene:
    """Devices, what they are asked, and which number of the answer is watched.

    Parameters
    ----------
    name, source
        What the number is, and where the devices come from.
    stream, question, weights
        What they hold, what is asked, and the weight of each released value in the number.
    span
        The least and the largest that the number can be.
    above, below
        Where the alarm goes on and off unless said otherwise.
    notes
        How the source was read.
    times
        When its steps are, where that is known.
    """

    name: str
    source: str
    stream: Stream
    question: Statistic
    weights: NDArray[np.float64]
    span: tuple[float, float]
    above: float
    below: float
    notes: tuple[str, ...] = ()
    times: StepTimes | None = None

    @property
    def share(self) -> bool:
        """Whether the number is a share; otherwise it is a mean."""
        return isinstance(self.question, Frequencies)

    def truth(self, step: int) -> float:
        """The number at a step, which only a simulation knows."""
        return float(self.weights @ self.stream.truth(step))


def demo_scene(rng: Random, *, steps: int = 200, n: int = 200_000) -> WatchScene:
    """Devices of which a share, drawn anew at each step, holds a 1: a sine of 4% to 8%, which a surge lifts by 12%.

    The surge begins after 40% of the steps, is full from 45% to 65%, and is gone by 70%.
    """
    part = np.arange(steps) / steps
    ramp = np.clip(np.minimum(part - 0.40, 0.70 - part) / 0.05, 0.0, 1.0)
    process = sine_process(steps, amplitude=0.02, b=0.06, height=0.06) + 0.12 * (1 - np.cos(np.pi * ramp)) / 2

    def row(step: int) -> NDArray[Any]:
        return np.asarray(binary_stream(process[step - 1 : step], n, rng.child("step", step)).table[0])

    stream = Stepwise(row, n=n, steps=steps, domain=2)
    name, source = "share of devices that hold a 1", "demo: a sine with a surge"
    return WatchScene(name, source, stream, Frequencies(2), np.array([0.0, 1.0]), (0.0, 1.0), above=0.11, below=0.10)
