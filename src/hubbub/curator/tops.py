"""ToPS: threshold, perturber and smoother, for a stream of numbers that a trusted curator has.

The threshold above which values are cut is found by Noisy Max over candidates, in integers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.core.spec import Json
from hubbub.curator.tree import NoiseTree
from hubbub.kernels.curator import SMOOTHERS
from hubbub.random.integers import ceil_div
from hubbub.random.noise import MOST_SCALE, geometric_cells, laplace_cells
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.curator.stream import ToPSStream
    from hubbub.random.source import Random

FOLLOWS = ("drift", "update")
"""What is done with a threshold found while publishing: search anew if it is far off, or take it at once."""

_LEAST_CANDIDATES, _MOST_CANDIDATES = 1 << 10, 1 << 16
_MOST_HEIGHT = 40
_CONSTANT = 0.03
_LEAST, _MOST = 1e-100, 1e100  # squares of these are in variances
_MOST_SUM = 1 << 48  # cells of a block: noise and parts of a cell take the rest of 64 bits
_MOST_LEAVES = 1 << 22


@dataclass(frozen=True, kw_only=True)
class ToPS:
    """A private stream of numbers from 0 to a bound: sums over any range, with pure epsilon for every single value.

    The first `holdout` values find a threshold theta and are not published. Each later value is cut at theta, added to
    a hierarchy of sums with exact discrete Laplace noise that was made consistent beforehand, and smoothed. A value
    either finds the threshold or is published, so that changing it costs `effective_epsilon`, at most `epsilon`, once
    and for all (event level, delta = 0). `hubbub.curator.people` is for people who are in the stream several times.

    Parameters
    ----------
    epsilon
        What may be spent on a value.
    bound
        The largest possible value: known beforehand, not taken from the data.
    holdout
        How many values find the threshold (the paper's m).
    max_range
        How many values a query spans at most (the paper's r); the height of the hierarchy is ceil(log_b r).
    fan_out
        Children of a node.
    smoother
        How values inside a block are predicted: recent, mean, median, moving or exponential.
    pruned
        How many of the lowest layers are left out: a block is fan_out^pruned values. None takes the best (Eq 7).
    candidates
        How many thresholds are tried; 0 takes one a unit, from 1,024 to 65,536 of them.
    noise
        Of the threshold search: exponential, or laplace as in the paper.
    constant
        c of Eq 6: about how far a value above the threshold exceeds it, in the unit of the values. The paper's 60 is
        for the units of its own streams; 0 takes 3% of the bound, which is 60 for a bound of 2,000, in any unit.
    watch
        The share of epsilon that is spent on looking for a better threshold while publishing; 0 for none.
    period
        How many published values each such look takes; 0 takes holdout/watch, which finds it as well as the holdout.
    follow
        With `watch`: "drift" begins a new threshold search if the threshold is off by more than a factor of 2, "update"
        goes on with the new one at once.
    window, weight
        Of the median and moving smoothers, how many blocks; of the exponential one, what the newest block weighs.

    Example:
        >>> import numpy as np
        >>> from hubbub import Random
        >>> tops = ToPS(epsilon=1.0, bound=100.0, holdout=1024, max_range=4096)
        >>> stream = tops.start(Random(seed=1))
        >>> values = np.tile([3.0, 5.0, 7.0, 9.0], 2048)
        >>> published = stream.push_many(values)
        >>> bool(np.isnan(published[:1024]).all()), stream.theta
        (True, 9.08203125)
        >>> answer = stream.range_sum(published, 1024, 5120)
        >>> bool(abs(answer.value[0] - 6.0 * 4096) < 5 * answer.stderr[0])
        True

    References
    ----------
    T. Wang et al., 2021, algorithm 1, with the corrections that docs/release.md lists.
    """

    epsilon: float
    bound: float
    holdout: int = 1 << 14
    max_range: int = 1 << 20
    fan_out: int = 16
    smoother: str = "recent"
    pruned: int | None = None
    candidates: int = 0
    noise: str = "exponential"
    constant: float = 0.0
    watch: float = 0.0
    period: int = 0
    follow: str = "drift"
    window: int = 16
    weight: float = 0.5

    def __post_init__(self) -> None:
        self._check()
        if self.candidates == 0:
            candidates = min(max(math.ceil(self.bound), _LEAST_CANDIDATES), _MOST_CANDIDATES)
            object.__setattr__(self, "candidates", candidates)
        if self.watch and self.period == 0:
            object.__setattr__(self, "period", math.ceil(self.holdout / self.watch))
        if self.pruned is None:
            object.__setattr__(self, "pruned", best_pruned(float(self._publish_share), self.fan_out, self.height))
        if not 0 <= self._pruned < self.height:
            raise InvalidValue("pruned", self.pruned, f"an integer from 0 to {self.height - 1}")
        if self.fan_out ** (self.layers - 1) > _MOST_LEAVES:
            raise InvalidValue("max_range", self.max_range, f"trees of at most {_MOST_LEAVES:,} leaves: prune more")
        _ = self.tree, self.search, self.watcher  # refuse what they refuse
        if self.block * self.tree.cells > _MOST_SUM:
            raise InvalidValue("pruned", self.pruned, "fewer: the sum of a block would leave 64 bits")

    def _check(self) -> None:
        for field in ("epsilon", "bound", "constant"):
            number = getattr(self, field)
            if field == "constant" and number == 0:
                number = _CONSTANT * self.bound
            if isinstance(number, bool) or not isinstance(number, int | float) or not _LEAST < number < _MOST:
                raise InvalidValue(field, number, f"a finite number above 0, from {_LEAST:g} to {_MOST:g}")
            object.__setattr__(self, field, float(number))
        for field, least in (
            ("holdout", 1),
            ("max_range", 2),
            ("fan_out", 2),
            ("candidates", 0),
            ("period", 0),
            ("window", 1),
        ):
            number = getattr(self, field)
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= 1 << 40:
                raise InvalidValue(field, number, f"an integer from {least} to {1 << 40:,}")
        for field, names in (("smoother", SMOOTHERS), ("noise", NOISES), ("follow", FOLLOWS)):
            if getattr(self, field) not in names:
                raise InvalidValue(field, getattr(self, field), f"one of {', '.join(names)}")
        for field, most in (("window", 1 << 12), ("candidates", 1 << 20), ("fan_out", 1 << 10)):
            if getattr(self, field) > most:
                raise InvalidValue(field, getattr(self, field), f"at most {most}")
        for field, top in (("watch", 0.9), ("weight", 1.0)):
            if not 0 <= getattr(self, field) <= top:
                raise InvalidValue(field, getattr(self, field), f"a number from 0 to {top:g}")

    @property
    def height(self) -> int:
        """Layers of the whole hierarchy: ceil(log_b r), at least 1."""
        return next(h for h in range(1, _MOST_HEIGHT + 1) if self.fan_out**h >= self.max_range)

    @property
    def _pruned(self) -> int:
        assert self.pruned is not None
        return self.pruned

    @property
    def layers(self) -> int:
        """Layers that have noise: those that are not pruned."""
        return self.height - self._pruned

    @property
    def block(self) -> int:
        """How many values a leaf sums up."""
        return int(self.fan_out**self._pruned)

    @property
    def tree_length(self) -> int:
        """The number of values of one tree. The chunk of r values is `fan_out` such trees."""
        return int(self.fan_out ** (self.height - 1))

    @property
    def _publish_share(self) -> Fraction:
        return Fraction(self.epsilon) * (1 - Fraction(self.watch))

    @cached_property
    def tree(self) -> NoiseTree:
        """The noise tree that publishes."""
        return NoiseTree(epsilon=self._publish_share, fan_out=self.fan_out, layers=self.layers)

    @cached_property
    def search(self) -> ThresholdSearch:
        """The search for the threshold, from values that are not published."""
        return self._search(Fraction(self.epsilon))

    @cached_property
    def watcher(self) -> ThresholdSearch | None:
        """The search for a new threshold, from values that are also published; None if `watch` is 0."""
        return self._search(Fraction(self.epsilon) * Fraction(self.watch)) if self.watch else None

    def _search(self, epsilon: Fraction) -> ThresholdSearch:
        slope = ThresholdSearch.tree_slope(float(self._publish_share), self.fan_out, self.height, self.constant)
        return ThresholdSearch(
            epsilon=epsilon, bound=self.bound, candidates=self.candidates, slope=slope, noise=self.noise
        )

    @property
    def exact_epsilon(self) -> Fraction:
        """The exact cost of a value: that of the search, or that of publishing and watching, whichever is larger."""
        watched = self.watcher.effective_epsilon if self.watcher else Fraction(0)
        return max(self.search.effective_epsilon, self.tree.effective_epsilon + watched)

    @property
    def effective_epsilon(self) -> float:
        """`exact_epsilon` as a float, rounded up."""
        nearest = float(self.exact_epsilon)
        return nearest if Fraction(nearest) >= self.exact_epsilon else math.nextafter(nearest, math.inf)

    def spec(self) -> dict[str, Json]:
        """The fields, as JSON."""
        return asdict(self)

    def start(self, rng: Random, *, theta: float | None = None) -> ToPSStream:
        """A new stream. Its noise comes from a key that `rng` draws, and is in memory only.

        With a `theta`, which must not depend on the values, it publishes from the first value on.

        Example:
            >>> from hubbub import Random
            >>> ToPS(epsilon=1.0, bound=100.0).start(Random(seed=1), theta=20.0).push(7.0) is None
            False
        """
        from hubbub.curator.stream import ToPSStream

        return ToPSStream(self, rng, theta=theta)


def best_pruned(epsilon: float, fan_out: int, height: int) -> int:
    """The number of lowest layers to prune (Eq 7), which balances noise against the bias of predictions."""

    def error(s: int) -> float:
        noise = (fan_out - 1) * (height - s) ** 3 * 2 / epsilon**2
        return float(noise + fan_out ** (2 * s) / 36)

    return min(range(height), key=error)


NOISES = ("exponential", "laplace")
"""The noise on each candidate's score: one-sided, or two-sided as the paper has it."""

MOST_CELLS = 1 << 12  # a count is divided into at most this number of cells


@dataclass(frozen=True, kw_only=True)
class ThresholdSearch:
    """Which of `candidates` thresholds, evenly spaced up to the bound, costs least in noise and in what is cut off.

    The score of theta is -(3 m theta / (c r eps)) sqrt(2 (b-1) log_b^3 r) - m_theta, where m_theta of the m values are
    above theta (Eq 6, corrected). Changing a value changes every m_theta by at most 1, all in the same direction, so
    that noise of scale 1/epsilon on each score, and the largest of them, is epsilon-private. Scores are integers in
    cells, the noise is exact, ties go to the smaller threshold: the epsilon spent is exactly cells/scale.

    `bound`, `candidates`: the largest possible value, and how many thresholds are tried. `slope`: what a score loses
    for each unit of theta and each value looked at: (3 / (c r eps)) sqrt(...). `noise`: one of `NOISES`.

    References
    ----------
    T. Wang et al., 2021, section 3.3; Z. Ding et al., 2021, for one-sided noise.
    """

    epsilon: Fraction
    bound: float
    candidates: int
    slope: float
    noise: str = "exponential"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Fraction(self.epsilon))
        if self.noise not in NOISES:
            raise InvalidValue("noise", self.noise, f"one of {', '.join(NOISES)}")
        if ceil_div(1, self.epsilon) > MOST_SCALE:
            raise InvalidValue("epsilon", float(self.epsilon), f"at least 1/{MOST_SCALE} for a threshold search")

    @cached_property
    def cells(self) -> int:
        """Into how many cells a count of 1 is divided."""
        cells = MOST_CELLS
        while cells > 1 and ceil_div(cells, self.epsilon) > MOST_SCALE:
            cells //= 2
        return cells

    @property
    def scale(self) -> int:
        """The scale of the noise, in cells."""
        return ceil_div(self.cells, self.epsilon)

    @property
    def effective_epsilon(self) -> Fraction:
        """What a search spends, exactly."""
        return Fraction(self.cells, self.scale)

    @cached_property
    def thresholds(self) -> Floats:
        """The candidates, in order."""
        return self.bound * np.arange(1, self.candidates + 1) / self.candidates

    def count(self, values: Floats) -> Ints:
        """How many values lie between one candidate and the next: all that a search needs to know of them."""
        places = np.searchsorted(self.thresholds, values, side="left")
        return np.bincount(np.minimum(places, self.candidates - 1), minlength=self.candidates).astype(np.int64)

    def scores(self, counts: Ints) -> Ints:
        """The score of each candidate, in cells, without noise."""
        m = int(counts.sum())
        above = m - np.cumsum(counts)
        penalty = np.rint(np.minimum(self.slope * m * self.thresholds * self.cells, 2.0**61))  # the same for all data
        return -penalty.astype(np.int64) - above * self.cells

    def choose(self, counts: Ints, rng: Random) -> float:
        """The threshold with the largest noisy score."""
        draw = geometric_cells if self.noise == "exponential" else laplace_cells
        noisy = self.scores(counts) + draw(self.candidates, self.scale, rng)
        return float(self.thresholds[np.argmax(noisy)])

    @staticmethod
    def tree_slope(epsilon: float, fan_out: int, height: int, constant: float) -> float:
        """(3 / (c r eps)) sqrt(2 (b-1) log_b^3 r) of Eq 6, for r = b^h."""
        return 3 / (constant * float(fan_out) ** height * epsilon) * math.sqrt(2 * (fan_out - 1) * height**3)
