"""The search of ToPL: square waves of a number's magnitude, and a tail where they see no more.

The threshold lies where about half a percent of the people are above it. No square wave over the whole range tells so
small a share from none, so that the paper's SW-W takes what EM makes of the noise. Here devices report the magnitude of
their number instead: quantiles are then equally precise, as factors, wherever in the range they lie. Quantiles that the
reports tell to 10% are taken from them, and what is above the highest of those continues as the two last of them do.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.event import epsilon_of
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.topl.threshold import range_errors
from hubbub.protocols.view import Binned

Floats = NDArray[np.float64]
CELLS, SPAN = 1024, 1 << 20
"""As many points as the paper has. The span leaves room: a threshold needs quantiles of a fiftieth of itself."""
PRECISE = 0.1
"""The quantiles that are taken from the reports are known to this part of themselves: one standard deviation."""
MOST_TAIL, APART, MEDIAN = 0.15, (2.0, 4.0), 0.5
"""The tail has at most this share. Its slope is the least of those from the quantiles of so many times the share, and
from the median: the gap between two crowds is no slope."""
_BODY, _HALVINGS, _STEPS = 1000, 20, 20


def magnitudes(most: float) -> Binned:
    """What a device looks at: in which of 1,024 cells its number is, of borders that grow by the same factor.

    Example:
        >>> magnitudes(1000.0)([0.0, 1.0, 1.02, 1000.0]).tolist()
        [0, 513, 515, 1023]
    """
    return Binned(first=most / SPAN, factor=SPAN ** (1 / (CELLS - 2)), cells=CELLS)


def search_wave(units: int) -> SquareWave:
    """How it answers.

    Example:
        >>> search_wave(10**12).high
        1023.0
    """
    return SquareWave(epsilon=epsilon_of(units), low=0.0, high=CELLS - 1.0, cells=CELLS - 1)


def numbers_of(view: Binned) -> Floats:
    """The number that each cell stands for: the middle of its borders, as a factor; half of the first border below it.

    Example:
        >>> numbers_of(Binned(first=1.0, factor=4.0, cells=4)).tolist()
        [0.5, 2.0, 8.0, 16.0]
    """
    middle = view.borders * math.sqrt(view.factor)
    return np.concatenate([[view.first / 2], middle[:-1], view.borders[-1:]])


def people_above(wave: SquareWave, view: Binned, sketch: Sketch) -> tuple[Floats, Floats]:
    """The distribution, as shares of the people and the number that each share has.

    A share d that moves by h cells changes 2 h cells by n gain d each, which have the variance n (near + far)/2: it is
    one standard deviation if h = (near + far) / (4 n gain^2 d^2). The tail begins at the smallest share for which this
    is at most `PRECISE`. It is that of a log-normal distribution, for which the logarithms of the quantiles rise evenly
    with those of the normal distribution.

    Example:
        >>> from hubbub import Random
        >>> view, wave = magnitudes(1000.0), search_wave(10**12)
        >>> cells = view(np.tile([20.0, 30.0], 20_000))
        >>> shares, numbers = people_above(wave, view, wave.accumulate(wave.randomize(cells, Random(seed=1))))
        >>> round(float(shares.sum()), 9), 22 < float(shares @ numbers) < 28
        (1.0, True)
    """
    seen = np.cumsum(wave.likeliest(sketch))
    ends = np.log(np.append(view.borders, view.borders[-1]))
    near, far = wave.rates
    unseen = math.log(view.factor) * (near + far) / (4 * sketch.n * (near - far) ** 2)  # times 1/d^2

    def quantiles(above: Any) -> Any:
        return np.interp(1 - np.asarray(above), seen, ends)

    start = min(math.sqrt(unseen / PRECISE), MOST_TAIL)
    body = np.linspace(1.0, start, _BODY + 1)
    tail = start * 0.5 ** (np.arange(_HALVINGS * _STEPS + 1) / _STEPS)
    normal = NormalDist().inv_cdf
    others = (*(times * start for times in APART), MEDIAN)
    slope = min((quantiles(start) - quantiles(other)) / (normal(other) - normal(start)) for other in others)
    above = np.array([normal(start) - normal(float(share)) for share in np.sqrt(tail[1:] * tail[:-1])])
    logs = np.concatenate([quantiles((body[1:] + body[:-1]) / 2), quantiles(start) + slope * above])
    shares = -np.diff(np.concatenate([body, tail[1:-1], [0.0]]))
    return shares, np.exp(np.minimum(logs, ends[-1]))


def tail_theta(
    wave: SquareWave, view: Binned, sketch: Sketch, *, most: float, epsilon: float, r: int
) -> tuple[float, float]:
    """The border of least expected error (Eq 8, corrected), and what clipping to it takes from the mean.

    Parameters
    ----------
    wave, view, sketch
        What was asked of the people that search, and heard.
    most
        The largest number there may be.
    epsilon
        What a report of a clipped value will spend.
    r
        The most values that a range has.

    Example:
        >>> from hubbub import Random
        >>> view, wave = magnitudes(1000.0), search_wave(10**12)
        >>> cells = view(np.tile([20.0, 30.0], 20_000))
        >>> sketch = wave.accumulate(wave.randomize(cells, Random(seed=1)))
        >>> theta, lost = tail_theta(wave, view, sketch, most=1000.0, epsilon=1.0, r=1 << 16)
        >>> 25 < theta < 60, lost < 0.5
        (True, True)
    """
    shares, numbers = people_above(wave, view, sketch)
    thetas = np.minimum(view.borders, most)  # rounding must not lead above
    theta = float(thetas[int(np.argmin(range_errors(shares, numbers, thetas, epsilon=epsilon, r=r)))])
    return theta, float(shares @ np.maximum(numbers - theta, 0.0))
