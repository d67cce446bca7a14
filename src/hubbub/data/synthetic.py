"""Synthetic populations of known distribution, and the synthetic processes of LDP-IDS.

A code is drawn by inverse transform sampling from one 64-bit integer; the distribution function is in 64-bit integers.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.ternary.vectors import INDEX_SHIFT, Ternary
from hubbub.random.integers import GRAIN
from hubbub.random.source import Random


def categorical(n: int, weights: ArrayLike, rng: Random) -> Ints:
    """Codes with probabilities proportional to `weights`, up to the rounding of their running sum.

    Example:
        >>> categorical(6, [0.0, 1.0, 0.0], Random(seed=1)).tolist()
        [1, 1, 1, 1, 1, 1]
    """
    _check_integer("n", n, least=0)
    mass = np.asarray(weights, dtype=np.float64)
    if mass.ndim != 1 or not mass.size or not np.isfinite(mass).all() or mass.min() < 0 or mass.max() == 0:
        raise InvalidValue("weights", weights, "finite numbers of at least 0, one of them above 0")
    below = np.cumsum(mass / mass.max())
    share = below / below[-1]
    # Code k is drawn by the integers from steps[k-1] to steps[k]; the last code with a weight takes all the rest.
    steps = np.ldexp(np.minimum(share, 1 - 2**-53), 64).astype(np.uint64)
    last = int(np.flatnonzero(mass)[-1])
    return np.searchsorted(steps[:last], rng.uint64(n), side="right").astype(np.int64)


def uniform(n: int, domain: int, rng: Random) -> Ints:
    """Every code with the same probability, exactly.

    Example:
        >>> bool(uniform(1000, 4, Random(seed=1)).max() == 3)
        True
    """
    _check_integer("n", n, least=0)
    _check_integer("domain", domain, least=1)
    return rng.below(domain, n)


def zipf_weights(domain: int, exponent: float) -> Floats:
    """The probabilities of `zipf`: code k has 1 / (k+1)^exponent, scaled to sum to 1.

    Example:
        >>> zipf_weights(3, 1.0).round(3).tolist()
        [0.545, 0.273, 0.182]
    """
    _check_integer("domain", domain, least=1)
    _check_number("exponent", exponent, 0.0, math.inf)
    weights = np.arange(1, domain + 1, dtype=np.float64) ** -float(exponent)
    return np.asarray(weights / weights.sum())


def zipf(n: int, domain: int, exponent: float, rng: Random) -> Ints:
    """A few frequent codes and a long tail: code k in proportion to 1 / (k+1)^exponent.

    Example:
        >>> codes = zipf(1000, 100, 1.1, Random(seed=1))
        >>> int(np.bincount(codes).argmax())
        0
    """
    return categorical(n, zipf_weights(domain, exponent), rng)


def geometric(n: int, domain: int, ratio: float, rng: Random) -> Ints:
    """Each code `ratio` times as frequent as the one before it.

    Example:
        >>> np.bincount(geometric(7000, 3, 0.5, Random(seed=1))).round(-3).tolist()
        [4000, 2000, 1000]
    """
    _check_integer("domain", domain, least=1)
    _check_number("ratio", ratio, 0.0, 1.0)
    return categorical(n, float(ratio) ** np.arange(domain), rng)


def gaussian_bins(n: int, domain: int, rng: Random, *, mean: float = 0.5, deviation: float = 0.15) -> Ints:
    """A normal distribution cut to 0..1, as `domain` equal bins of that range.

    Parameters
    ----------
    n, domain, rng
        As of the others.
    mean, deviation
        Of the normal distribution before it is cut: the mean within 0..1, the deviation above 0.

    Example:
        >>> int(np.bincount(gaussian_bins(1000, 5, Random(seed=1))).argmax())
        2
    """
    _check_integer("domain", domain, least=1)
    _check_number("mean", mean, 0.0, 1.0)
    _check_number("deviation", deviation, math.ulp(0.0), math.inf)
    scale = deviation * math.sqrt(2)
    edges = [math.erf((cell / domain - mean) / scale) for cell in range(domain + 1)]
    return categorical(n, np.diff(edges), rng)


def sparse_vectors(n: int, dimension: int, sparsity: int, rng: Random) -> Ternary:
    """Ternary vectors with exactly `sparsity` entries: every set of positions equally likely, and every sign.

    Example:
        >>> people = sparse_vectors(10_000, 5, 2, Random(seed=1))
        >>> people.frequencies().round(1).tolist(), bool(abs(people.means()).max() < 0.05)
        ([0.4, 0.4, 0.4, 0.4, 0.4], True)

    References:
        S. Wang, Li, Li et al., 2023, section 8; S. Wang, Li, Xin et al., 2023, section 7.1.
    """
    _check_integer("n", n, least=0)
    _check_integer("dimension", dimension, least=1)
    _check_integer("sparsity", sparsity, least=0)
    if sparsity > dimension:
        raise InvalidValue("sparsity", sparsity, f"at most the dimension, {dimension}")
    positions = np.empty((n, sparsity), dtype=np.int64)
    # Floyd's algorithm for subsets: a position that was drawn before is replaced by the last one of its range.
    for k, last in enumerate(range(dimension - sparsity, dimension)):
        drawn = rng.below(last + 1, n)
        positions[:, k] = np.where((positions[:, :k] == drawn[:, None]).any(axis=1), last, drawn)
    positions.sort(axis=1)
    signs = (rng.uint16(n, sparsity) & 1).astype(np.int64) * GRAIN
    return Ternary(positions << INDEX_SHIFT | signs, dimension)


def _check_integer(field: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidValue(field, value, f"an integer of at least {least}")


def _check_number(field: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidValue(field, value, "a finite number")
    if not low <= value <= high:
        raise InvalidValue(field, value, f"a number from {low:g} to {high:g}")


def linear_process(steps: int, rng: Random, *, start: float = 0.05, deviation: float = 0.0025) -> Floats:
    """LNS: a random walk, p_t = p_(t-1) + normal noise of the given deviation (sqrt Q), kept within 0 to 1.

    Parameters
    ----------
    steps
        The length of the stream.
    rng
        The source of the noise.
    start, deviation
        p_0, and the standard deviation of a step.
    """
    walk = np.empty(_length(steps))
    p = start
    for t, change in enumerate(deviation * normals(steps, rng)):
        p = min(max(p + change, 0.0), 1.0)
        walk[t] = p
    return walk


def sine_process(steps: int, *, amplitude: float = 0.05, b: float = 0.01, height: float = 0.075) -> Floats:
    """Sin: p_t = amplitude sin(b t) + height."""
    return np.asarray(amplitude * np.sin(b * np.arange(1, _length(steps) + 1)) + height)


def logistic_process(steps: int, *, amplitude: float = 0.25, b: float = 0.01) -> Floats:
    """Log: p_t = amplitude / (1 + e^(-b t))."""
    return np.asarray(amplitude / (1 + np.exp(-b * np.arange(1, _length(steps) + 1))))


def normals(size: int, rng: Random) -> Floats:
    """Standard normal numbers, by Box and Muller."""
    uniform = (rng.uint64(2, (size + 1) // 2).astype(np.float64) + 0.5) / 2.0**64
    radius, angle = np.sqrt(-2 * np.log(uniform[0])), 2 * np.pi * uniform[1]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]


def _length(steps: int) -> int:
    if steps < 1:
        raise InvalidValue("steps", steps, "at least 1")
    return steps
