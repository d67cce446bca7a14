"""The verdict on how often intervals held the truth."""

from scipy.stats import binom

if __name__ == "coverage":  # this folder is on the path of some tests, where numba looks for the package of that name
    raise ImportError("the package coverage, for which this module was taken")

CHANCE = 1e-4
"""How often a coverage that is exactly at a bound is refused all the same."""


def refused_coverage(hits: int, runs: int, *, least: float = 0.93, most: float = 1.0) -> str:
    """Say why a coverage is refused: it is below `least`, or above `most`, at one error in 10,000; else "".

    `most` is for plain shares, whose intervals may not be too wide either; medians, spreads and unions may be.
    """
    if binom.cdf(hits, runs, least) < CHANCE:
        return f"{hits} of {runs} intervals held the truth: below {least}"
    if most < 1.0 and binom.sf(hits - 1, runs, most) < CHANCE:
        return f"{hits} of {runs} intervals held the truth: above {most}"
    return ""
