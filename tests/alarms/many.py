"""Many sequential tests at once, and estimates of steps drawn exactly as mechanisms make them.

`Many` judges steps as `SequentialTest` does (`test_sequential.py` holds the two together), for thousands of independent
copies in numpy: a thousand months of hourly steps take seconds.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hubbub import Estimate, Ordinal, Sketch
from hubbub.alarms.sequential import SequentialTest
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import window_stream
from hubbub.questions.value_shares import Shares

Floats = NDArray[np.float64]


class Many:
    """Copies of one test that began together. `hear` takes the estimates of a step, one a copy."""

    def __init__(self, test: SequentialTest, shape: tuple[int, ...]) -> None:
        self.test = test
        self.learnt, self.weight, self.total, self.roots = 0, np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.sums = {side: np.zeros(shape) for side in test.sides}
        self.steps = {side: np.zeros(shape) for side in test.sides}
        self.back = np.zeros(shape)
        self.raised = np.zeros(shape)
        """1 where raised above, -1 below, 0 where quiet."""
        self.ends = np.zeros(shape)

    def update(self, value: Floats, stderr: Floats) -> Floats:
        """1 or -1 where the alarm was raised above or below by this step, 2 where it was cleared, else 0."""
        test = self.test
        if test.threshold is None and self.learnt < test.baseline:
            self.learnt += 1
            self.weight += stderr**-2
            self.total += value * stderr**-2
            self.roots += 1 / stderr
            return np.zeros(value.shape)
        quiet = self.raised == 0
        with np.errstate(invalid="ignore"):
            x = np.where(self.raised > 0, self.ends - value, value - self.ends) / stderr
        self.back = np.where(quiet, 0.0, np.maximum(self._before(self.back, test.clears.h) + x - test.clears.k, 0.0))
        cleared = ~quiet & ((self.back >= test.clears.h) | (x >= test.clears.z))
        told = np.where(cleared, 2.0, 0.0)
        middle = self.total / self.weight if test.threshold is None else test.threshold
        scale = self._scale(stderr)
        for side in test.sides:
            sign = 1 if side == "above" else -1
            x = sign * (value - middle) / scale
            before = self._before(self.sums[side], test.raises.h)
            total = np.maximum(before + x - test.raises.k, 0.0)
            judged = quiet & (told == 0)
            raised = judged & ((total >= test.raises.h) | (x >= test.raises.z))
            steps = np.where(before > 0, self.steps[side] + 1, 1.0)
            self.sums[side] = np.where(judged, total, self.sums[side])
            self.steps[side] = np.where(judged, steps, self.steps[side])
            shift = scale * (test.raises.k + total / steps)
            away = shift / 2 if test.ends is None else test.ends
            end = middle + sign * away if test.threshold is None else (middle if test.ends is None else test.ends)
            self.ends = np.where(raised, end, self.ends)
            self.raised = np.where(raised, sign, self.raised)
            told = np.where(raised, float(sign), told)
        for side in test.sides:
            self.sums[side] = np.where(np.abs(told) == 1, 0.0, self.sums[side])
        self.raised = np.where(cleared, 0, self.raised)
        self.back = np.where(cleared, 0.0, self.back)
        return told

    def _scale(self, stderr: Floats) -> Floats:
        if self.test.threshold is not None:
            return stderr
        if not self.test.independent:
            return stderr + self.roots / self.weight
        return np.maximum(stderr, np.sqrt(self.learnt / self.weight))

    @staticmethod
    def _before(sums: Floats, h: float) -> Floats:
        return sums if math.isfinite(h) else np.zeros_like(sums)


def share_estimates(
    oracle: FrequencyOracle, n: int, shares: Floats, null: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """What a step of n devices estimates of shares, and the standard errors: the counts of a sketch, drawn exactly.

    The support of a value among its holders is binomial with rate p, and among the others with rate q. The standard
    error is the larger of the estimate's and that at `null`, as the collector takes it.
    """
    moments = oracle.moments()
    p, q = float(moments.true_mean), float(moments.false_mean)
    holders = np.rint(n * shares).astype(np.int64)
    counts = rng.binomial(holders, p) + rng.binomial(n - holders, q)
    value = (counts / n - q) / (p - q)
    noise = oracle.noise(n)
    return value, np.sqrt(np.maximum(noise.variance(value), noise.variance(null)))


def zipf(n: int, size: int = 16) -> Floats:
    """Shares of n devices, from common to rare."""
    shares = 1 / np.arange(1, size + 1)
    return np.rint(n * shares / shares.sum()) / n


def window_steps(method: str, jump: Callable[[int], float], steps: int, rng: np.random.Generator) -> Iterator[Estimate]:
    """What the steps of a window stream heard by themselves, its sketches drawn exactly; the last share moves.

    `jump` says by how much, at every step: in standard errors of a step that asks a w-th of the people.
    """
    n, w = 200_000, 20
    shares, each = zipf(n), n // w
    asked = Shares(Ordinal(16))
    made, few = asked.mechanism(10**12), shares[-1:]
    assert isinstance(made, FrequencyOracle)
    deviation = math.sqrt(float(made.noise(each).sampled(each, n).variance(few)[0]))

    def answer(ask: Ask) -> Sketch:
        now = shares.copy()
        now[[0, -1]] += jump(ask.step) * deviation * np.array([-1, 1])
        count = round(n * ask.cohort.share)
        people = rng.multivariate_hypergeometric(np.rint(n * now).astype(np.int64), count, method="marginals")
        assert isinstance(ask.mechanism, FrequencyOracle)
        p, q = ask.mechanism.moments()[:2]
        counts = rng.binomial(people, p) + rng.binomial(people.sum() - people, q)
        return Sketch(ask.mechanism.spec_id, int(people.sum()), counts.astype(np.int64))

    stream = window_stream(method, asked, epsilon=1.0, w=w)
    for release in converse(stream, answer, steps=steps):
        if release.own is not None:
            yield release.own


def first_alarms(told: list[Floats]) -> Floats:
    """In which step, from 1 on, each copy was first raised; infinite if it never was."""
    raised = np.abs(np.stack(told)) == 1
    return np.where(raised.any(axis=0), raised.argmax(axis=0) + 1.0, np.inf)
