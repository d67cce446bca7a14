"""A fast, exact simulation of window streams, and how often their intervals hold: given a jump, and what was released.

Nobody is simulated one by one. A cohort is a multivariate hypergeometric draw from the population's counts; what its
reports add up to is binomial (unary encodings) or multinomial (GRR), exactly as of single devices.

    python -m tests.protocols.stream_world [RUNS] [METHOD ...]

prints the tables of docs/streams.md. Streams are measured in standard errors of what a step of LPU or LBU hears, so
that a jump is as hard for every method. None of the constants of `hubbub.protocols.window` was chosen on these streams:
those were chosen on the paper's (LNS, Sin, Log; seeds 0 to 3), one of them shifted once, and walks of 16 shares.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.reports import Bools, Floats, Ints, Sketch
from hubbub.data.synthetic import linear_process, logistic_process, sine_process
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import METHODS, Frequencies, window_stream
from hubbub.random.source import Random

N, W, EPSILON, STEPS = 200_000, 20, 1.0, 240
QUIET = 30
"""Steps without a change before the first jump, and the fewest between two."""
LAGS = 11
"""The step of a jump, and the ten after."""


@dataclass(frozen=True)
class RunResult:
    """A run: a row for each step, a column for each category. An unknown interval is infinite."""

    truth: Floats
    value: Floats
    low: Floats
    high: Floats
    published: Bools
    stderr: Floats
    """The standard error of the step's own reports, pooled; infinite if there were none."""

    @property
    def known(self) -> Bools:
        return np.isfinite(self.low) & np.isfinite(self.high)

    @property
    def covered(self) -> Bools:
        return (self.low <= self.truth) & (self.truth <= self.high)


class Crowd:
    """Answers asks from the population's shares at each step."""

    def __init__(self, shares: Floats, n: int, seed: str) -> None:
        self.rng = np.random.default_rng(list(seed.encode()))
        self.counts = whole_counts(shares, n)
        self.n = n
        self.precision = np.zeros_like(shares)  # precision, by step

    def __call__(self, ask: Ask) -> Sketch:
        rng, people = self.rng, self.counts[ask.step - 1]
        cohort = people
        if ask.cohort.share < 1:
            cohort = rng.multivariate_hypergeometric(people, rng.binomial(self.n, ask.cohort.share), method="marginals")
        mechanism: Any = ask.mechanism
        n = int(cohort.sum())
        p, q = (float(rate) for rate in mechanism.rates)
        if isinstance(mechanism, GRR):
            rates = np.full((len(cohort), len(cohort)), q) + np.eye(len(cohort)) * (p - q)
            counts = sum(rng.multinomial(count, row / row.sum()) for count, row in zip(cohort, rates, strict=True))
        else:
            counts = rng.binomial(cohort, p) + rng.binomial(n - cohort, q)
        sketch = Sketch(mechanism.spec_id, n, np.asarray(counts, dtype=np.int64))
        if n:
            estimate = mechanism.estimate(sketch)
            if ask.cohort.share < 1:
                estimate = estimate.of_population(self.n)
            self.precision[ask.step - 1] += 1 / estimate.variance
        return sketch


def whole_counts(shares: Floats, n: int) -> Ints:
    """The shares in whole people: a row sums to n."""
    edges = np.rint(np.cumsum(shares, axis=1) * n).astype(np.int64)
    edges[:, -1] = n
    return np.diff(edges, axis=1, prepend=0)


def watch(method: str, shares: Floats, seed: str, *, n: int = N, w: int = W, **options: Any) -> RunResult:
    """A method over a stream."""
    crowd = Crowd(shares, n, f"{method} {seed}")
    stream = window_stream(method, Frequencies(shares.shape[1]), epsilon=EPSILON, w=w, **options)
    releases = list(converse(stream, crowd, steps=len(shares)))
    low, high = (np.array(ends) for ends in zip(*(release.estimate.interval() for release in releases), strict=True))
    with np.errstate(divide="ignore"):
        stderr = 1 / np.sqrt(crowd.precision)
    return RunResult(
        truth=crowd.counts / n,
        value=np.array([release.estimate.value for release in releases]),
        low=low,
        high=high,
        published=np.array([release.published for release in releases]),
        stderr=stderr,
    )


# -- streams ------------------------------------------------------------------------------------------------------


def unit(method: str, size: int, n: int = N, w: int = W) -> float:
    """The standard error of a share in a step of LPU or LBU."""
    division = METHODS[method].division(Frequencies(size), epsilon=EPSILON, w=w)
    division.population = float(n)
    like = np.full(size, 1 / size)
    return float(np.sqrt(division.error(division.total // w, like)))


def one_moves(level: Floats, size: int) -> Floats:
    """Shares of which the second moves so, and the others share the rest alike."""
    level = np.clip(level, 0.0, 1.0)
    shares = np.repeat(((1 - level) / (size - 1))[:, None], size, axis=1)
    shares[:, 1] = level
    return shares


def jumps(rng: np.random.Generator, steps: int, unit: float, low: float, high: float) -> Floats:
    """Levels that stay for 30 to 45 steps and jump by a number of units, about a base, up and down."""
    level, t, at = np.zeros(steps), QUIET + int(rng.integers(15)), 0.0
    while t < steps:
        size = unit * low * (high / low) ** rng.random()
        at = at - size if at > 0 else at + size
        level[t:] = at
        t += QUIET + int(rng.integers(15))
    return level


def walk_of(rng: np.random.Generator, unit: float) -> Floats:
    walk = np.cumsum(rng.normal(size=STEPS))
    return one_moves(0.3 + unit * 4 * np.sin(walk / 4), 2)


def bursts(rng: np.random.Generator, unit: float) -> Floats:
    level = np.zeros(STEPS)
    for start in range(QUIET, STEPS - 10, QUIET + 15):
        begin = start + int(rng.integers(10))
        level[begin : begin + int(rng.integers(2, 6))] += unit * rng.uniform(3, 15)
    return one_moves(0.1 + level, 4)


def seasonal(rng: np.random.Generator, unit: float) -> Floats:
    season = 5 * np.sin(2 * np.pi * np.arange(STEPS) / 24 + rng.uniform(0, 6))
    return one_moves(0.3 + unit * (season + rng.normal(size=STEPS)), 3)


def flights(rng: np.random.Generator, unit: float) -> Floats:
    """The carrier of each aircraft's departure, an hour a step, from a day of 2013 on: 17 shares."""
    from hubbub_papers.real_streams import flights_stream

    table = np.asarray(flights_stream(days=365).table)
    first = 19 * int(rng.integers(300))
    rows = table[first : first + STEPS]
    return np.array([np.bincount(row, minlength=17) for row in rows]) / table.shape[1]


STREAMS: dict[str, tuple[Callable[[np.random.Generator, float], Floats], int]] = {
    "steps": (lambda rng, unit: one_moves(0.25 + jumps(rng, STEPS, unit, 0.8, 12.0), 2), 2),
    "one of 16": (lambda rng, unit: one_moves(1 / 16 + np.abs(jumps(rng, STEPS, unit, 0.8, 12.0)), 16), 16),
    "bursts": (bursts, 4),
    "seasonal": (seasonal, 3),
    "independent": (lambda rng, unit: one_moves(0.3 + unit * rng.uniform(-5, 5, STEPS), 2), 2),
    "fast walk": (walk_of, 2),
    "quiet": (lambda rng, unit: one_moves(np.full(STEPS, 0.2), 3), 3),
    "flights": (flights, 17),
}


def paper_process(kind: str, steps: int, rng: Random) -> Floats:
    """The share of the second of two values in a stream of the paper, some of them slower or faster than its own."""
    return {
        "LNS": lambda: linear_process(steps, rng),
        "LNS slow": lambda: linear_process(steps, rng, deviation=0.001),
        "LNS fast": lambda: linear_process(steps, rng, deviation=0.01),
        "Sin": lambda: sine_process(steps),
        "Sin fast": lambda: sine_process(steps, b=0.05),
        "Log": lambda: logistic_process(steps),
    }[kind]()


def paper(kind: str, seed: int, steps: int = 400) -> Floats:
    """The paper's streams, of two values."""
    level = paper_process(kind, steps, Random(seed=f"{kind} {seed}"))
    return np.stack([1 - level, level], axis=1)


def runs(method: str, stream: str, number: int, *, first: int = 0, **options: Any) -> Iterator[RunResult]:
    """A number of runs of a method over streams of a kind."""
    make, size = STREAMS[stream]
    n = 100_000 if stream == "flights" else N
    for seed in range(first, first + number):
        shares = make(np.random.default_rng([*stream.encode(), seed]), unit(method, size, n))
        yield watch(method, shares, f"{stream} {seed}", n=n, **options)


# -- what is counted ----------------------------------------------------------------------------------------------


class Tally:
    """How many intervals hold the truth, of how many."""

    def __init__(self) -> None:
        self.holding = self.total = 0

    def add(self, covered: Bools) -> None:
        self.holding, self.total = self.holding + int(covered.sum()), self.total + covered.size

    def __str__(self) -> str:
        return f"{self.holding / self.total:.2f}" if self.total >= 30 else "  - "

    @property
    def share(self) -> float:
        return self.holding / self.total if self.total else np.nan


@dataclass
class Coverage:
    """How often intervals that are known hold: of all; of approximated releases; of the category that was held least
    often; and after small (1 to 4 standard errors of what the step heard) and large jumps, by the steps since."""

    all_known: Tally
    approximated: Tally
    categories: list[Tally]
    small: list[Tally]
    large: list[Tally]
    known: Tally
    mse: float = 0.0
    width: float = 0.0

    @property
    def least(self) -> Tally:
        return min((tally for tally in self.categories if tally.total), key=lambda tally: tally.share, default=Tally())


def coverage(results: Iterator[RunResult]) -> Coverage:
    """Count over several runs; the first steps, in which everything is new, count too."""
    result = Coverage(Tally(), Tally(), [], [Tally() for _ in range(LAGS)], [Tally() for _ in range(LAGS)], Tally())
    errors, widths = [], []
    for run in results:
        result.known.add(run.known)
        result.all_known.add(run.covered[run.known])
        result.approximated.add(run.covered[~run.published][run.known[~run.published]])
        result.categories = result.categories or [Tally() for _ in run.truth[0]]
        for code, tally in enumerate(result.categories):
            tally.add(run.covered[:, code][run.known[:, code]])
        errors.append(np.mean((run.value - run.truth) ** 2))
        widths.append(np.median((run.high - run.low)[run.known]) if run.known.any() else np.nan)
        _jumps(run, result)
    result.mse, result.width = float(np.mean(errors)), float(np.nanmean(widths))
    return result


def _jumps(run: RunResult, result: Coverage) -> None:
    """A jump: a change after twenty steps of none, in standard errors of the first step from then on that heard."""
    moved = np.abs(np.diff(run.truth, axis=0, prepend=run.truth[:1]))
    for t, code in zip(*np.nonzero(moved), strict=True):
        if t < 20 or moved[t - 20 : t, code].any():
            continue
        stderr = run.stderr[t : t + LAGS, code]
        if not np.isfinite(stderr).any():
            continue
        size = moved[t, code] / stderr[np.isfinite(stderr)][0]
        if size < 1:
            continue
        for lag in range(min(LAGS, len(run.truth) - t)):
            if lag and moved[t + lag, code]:
                break
            if run.known[t + lag, code]:
                (result.large if size >= 4 else result.small)[lag].add(run.covered[t + lag, code])


def main(arguments: list[str]) -> None:
    number = int(arguments[0]) if arguments else 20
    methods = arguments[1:] or list(METHODS)
    for method in methods:
        print(f"\n{method}: known / all / approximated / least category / mse / width; small jumps; large jumps")
        for stream in STREAMS:
            result = coverage(runs(method, stream, number))
            print(
                f"{stream:12} {result.known} {result.all_known} {result.approximated} {result.least} {result.mse:.2e} "
                f"{result.width:.4f} | {' '.join(map(str, result.small))} | {' '.join(map(str, result.large))}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
