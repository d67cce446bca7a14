"""The answers of a study that trains a model: how large the mean update of each round was, and how well it is known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.noise import normal_reach
from hubbub.dashboard.answers import LEVEL, scale_of, why_withheld
from hubbub.dashboard.answers import Value as Number
from hubbub.dashboard.markup import Child, Html, count, el, join
from hubbub.dashboard.over_time import Point, band
from hubbub.service.base.api import ReleaseBody


class Length(NamedTuple):
    """The length of a vector, and the ends of its interval."""

    value: float
    low: float
    high: float


def length_of(release: ReleaseBody) -> Length | None:
    """The length of the mean update of a round, without what its noise adds to it; None where nothing is known.

    The noise adds the sum of all variances to the squared length, on average. The rest has about the variance
    4 sum u^2 v + 2 sum v^2, for entries u with independent errors of variance v.
    """
    if why_withheld(release) is not None or release.value is None or release.variance is None:
        return None
    value, variance = (np.array(numbers, dtype=np.float64) for numbers in (release.value, release.variance))
    if not np.isfinite(variance).all():
        return None
    squares = np.maximum(value**2 - variance, 0.0)
    rest = float((value**2 - variance).sum())
    reach = normal_reach(LEVEL) * float(np.sqrt(4 * (squares * variance).sum() + 2 * (variance**2).sum()))
    low, middle, high = np.sqrt(np.maximum([rest - reach, rest, rest + reach], 0.0)).tolist()
    return Length(middle, low, high)


def vector_headline(release: ReleaseBody, rounds: int) -> Html:
    """What the latest round says, in a sentence."""
    withheld, length = why_withheld(release), length_of(release)
    if withheld is not None:
        return join(f"Withheld: {withheld}.")
    place = f"Round {release.number + 1} of {rounds}: "
    if length is None:
        return join(place, "nobody answered, and the model stayed as it was.")
    scale = scale_of("quantity", [Number(0, "", *length)])
    numbers: tuple[Child, ...] = (el("strong", scale.text(length.value)), f" ({scale.text(length.low)} to ")
    return join(place, "the mean update is ", *numbers, f"{scale.text(length.high)}) long.")


def vector_figure(name: str, releases: Sequence[ReleaseBody]) -> Html | None:
    """The length of the update of each round of the latest run; None with fewer than two rounds."""
    latest = [release for release in releases if release.step == releases[-1].step]
    points = []
    for release in latest:
        place, reports, length = join(f"round {release.number + 1}"), count(release.n, "report"), length_of(release)
        value, low, high = (None, None, None) if length is None else length
        points.append(Point(release.time, place, value, low, high, note=reports))
    if len(points) < 2:
        return None
    known = [Number(0, "", point.value, point.low, point.high) for point in points if point.value is not None]
    return band(
        points,
        name=f"q-{name}-rounds",
        title="The length of the mean update, round by round",
        summary=f"The length of the mean update in {count(len(points), 'round')}.",
        scale=scale_of("quantity", known),
        headings=("Round", "Length", f"{LEVEL:.0%} interval", "Made from"),
        legend=f"Line: the length, without what noise adds to it. Band: its {LEVEL:.0%} interval.",
    )
