"""Choosing the method with the least error for given queries, on a synthetic population like the observed one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.consistency.guide import METHODS, answer, method_named
from hubbub.consistency.norm_sub import norm_sub
from hubbub.core.domain import Ordinal
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.random import Random
from hubbub.mechanisms.frequency.oracle import FrequencyOracle

_BATCH = 1 << 16  # people whose reports are in memory at a time


@dataclass(frozen=True)
class Choice:
    """The method with the least error, and the errors of all.

    Parameters
    ----------
    method
        A name of `METHODS`.
    errors
        The mean squared error over queries and repetitions, by method, least first.
    stderr
        The standard error of each of these means, over repetitions: methods closer than that are alike.

    Example:
        >>> Choice("norm", {"norm": 1e-4, "base": 2e-4}, {"norm": 1e-5, "base": 1e-5}).method
        'norm'
    """

    method: str
    errors: Mapping[str, float]
    stderr: Mapping[str, float]


def choose_method(
    mechanism: FrequencyOracle,
    estimate: Estimate,
    queries: ArrayLike,
    *,
    rng: Random,
    repetitions: int = 20,
    methods: Iterable[str] | None = None,
) -> Choice:
    """Try each method on a synthetic population, and pick the one that answers the queries best.

    The population has the shares of `norm_sub(estimate)`, rounded to whole people (shares of PowerNS would favour
    PowerNS). It reports repeatedly through the same mechanism, and errors are measured against its own shares. Only the
    estimate is used, so this costs no privacy.

    Parameters
    ----------
    mechanism
        The oracle that made the estimate.
    estimate
        Its estimate of the whole domain.
    queries
        A row of weights for each query.
    rng
        What the synthetic people randomise with.
    repetitions
        How often they report, at least 2.
    methods
        Names of `METHODS`; all of them if left out (Post-Pos only where no weight is below 0).

    Example:
        >>> from hubbub.mechanisms.frequency.unary import OUE
        >>> oue = OUE(epsilon=1.0, domain=64)
        >>> reports = oue.randomize([0] * 800 + [7] * 200, Random(seed=1))
        >>> estimate = oue.estimate(oue.accumulate(reports))
        >>> choice = choose_method(oue, estimate, np.eye(64), rng=Random(seed=2), methods=["base", "norm-sub"])
        >>> choice.method, choice.errors["norm-sub"] < choice.errors["base"] / 5
        ('norm-sub', True)

    References
    ----------
    Dissertation, section 8.2.4.
    """
    if not isinstance(mechanism, FrequencyOracle) or mechanism.size != len(estimate):
        raise InvalidValue("mechanism", mechanism, f"the frequency oracle of these {len(estimate)} shares")
    check_integer("repetitions", repetitions, 2)
    rows = np.atleast_2d(np.asarray(queries, dtype=np.float64))
    if methods is None:
        positive = bool((rows >= 0).all())
        names = [name for name, method in METHODS.items() if positive or not method.of_results]
    else:
        names = list(methods)
        for name in names:
            method_named(name)
        if not names:
            raise InvalidValue("methods", names, "at least one method")
    counts = round_shares(norm_sub(estimate).value, estimate.n)
    people = np.repeat(np.arange(len(counts)), counts)
    truth = Estimate(counts / estimate.n, np.zeros(len(counts)), estimate.n).linear(rows).value
    # Synthetic people hold codes, whatever the domain's names for them.
    oracle = replace(mechanism, domain=Ordinal(mechanism.size))
    squares = {name: np.empty(repetitions) for name in names}
    for repetition in range(repetitions):
        observed = _collect(oracle, people, rng)
        for name in names:
            squares[name][repetition] = np.mean((answer(observed, rows, name).value - truth) ** 2)
    order = sorted(names, key=lambda name: float(squares[name].mean()))
    return Choice(
        order[0],
        {name: float(squares[name].mean()) for name in order},
        {name: float(squares[name].std(ddof=1) / np.sqrt(repetitions)) for name in order},
    )


def round_shares(shares: ArrayLike, n: int) -> NDArray[np.int64]:
    """Round n times the shares to whole people that sum to n: the largest remainders are rounded up."""
    exact = np.asarray(shares, dtype=np.float64) * n
    counts = np.floor(exact).astype(np.int64)
    missing = n - int(counts.sum())
    if not 0 <= missing <= counts.size:
        raise InvalidValue("shares", shares, "shares that sum to 1")
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def _collect(oracle: FrequencyOracle, people: NDArray[np.int64], rng: Random) -> Estimate:
    sketch = oracle.empty()
    for start in range(0, people.size, _BATCH):
        sketch = sketch + oracle.accumulate(oracle.randomize(people[start : start + _BATCH], rng))
    return oracle.estimate(sketch)
