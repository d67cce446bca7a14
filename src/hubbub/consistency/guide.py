"""Methods by name with their properties (Table 8.1), which one serves which purpose (8.2.6) with the least error."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hubbub.consistency.likelihood import mle_apx, power, power_ns
from hubbub.consistency.normalise import base_cut, base_pos, norm, norm_cut, norm_mul, norm_sub, post_pos
from hubbub.core.domain import Ordinal
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Ints
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random

Purpose = Literal["single", "frequent", "set"]


@dataclass(frozen=True)
class ConsistencyMethod:
    """A way to make estimates consistent, and what it promises (Table 8.1).

    Parameters
    ----------
    apply
        From an estimate to a new one.
    title, does
        What the chapter calls it, and what it does, for a page: "estimates below 0 become 0".
    non_negative
        Whether no result is below 0.
    sums_to_one
        "almost": to 1 or somewhat less.
    order
        All keep the order of the values. "strict": different values stay different; "weak": some become equal.
    of_results
        Whether it is applied to the results of queries, after the sum.

    Example:
        >>> [name for name, method in METHODS.items() if method.non_negative and method.sums_to_one == "yes"]
        ['norm-mul', 'norm-sub', 'mle-apx', 'power-ns']
    """

    apply: Callable[[Estimate], Estimate]
    title: str
    does: str
    non_negative: bool
    sums_to_one: Literal["yes", "almost", "no"]
    order: Literal["strict", "weak"] = "weak"
    needs_noise: bool = False
    of_results: bool = False


def _base(estimate: Estimate) -> Estimate:
    return estimate


_ZERO = "estimates below 0 become 0"
_POWER = "each becomes what is to be expected of it if all shares follow a power law"

METHODS: dict[str, ConsistencyMethod] = {
    "base": ConsistencyMethod(_base, "Base", "nothing changes", non_negative=False, sums_to_one="no", order="strict"),
    "base-pos": ConsistencyMethod(base_pos, "Base-Pos", _ZERO, non_negative=True, sums_to_one="no"),
    "post-pos": ConsistencyMethod(
        post_pos, "Post-Pos", "results below 0 become 0", non_negative=True, sums_to_one="no", of_results=True
    ),
    "base-cut": ConsistencyMethod(
        base_cut,
        "Base-Cut",
        "estimates that chance may explain become 0",
        non_negative=True,
        sums_to_one="no",
        needs_noise=True,
    ),
    "norm": ConsistencyMethod(
        norm, "Norm", "all are moved by the same, to add up to 1", non_negative=False, sums_to_one="yes", order="strict"
    ),
    "norm-mul": ConsistencyMethod(
        norm_mul, "Norm-Mul", f"{_ZERO}, and all are scaled to add up to 1", non_negative=True, sums_to_one="yes"
    ),
    "norm-cut": ConsistencyMethod(
        norm_cut,
        "Norm-Cut",
        "the largest stay, as far as they add up to at most 1, and the others become 0",
        non_negative=True,
        sums_to_one="almost",
    ),
    "norm-sub": ConsistencyMethod(
        norm_sub, "Norm-Sub", "the nearest shares of at least 0 that add up to 1", non_negative=True, sums_to_one="yes"
    ),
    "mle-apx": ConsistencyMethod(
        mle_apx,
        "MLE-Apx",
        "the likeliest shares of at least 0 that add up to 1",
        non_negative=True,
        sums_to_one="yes",
        needs_noise=True,
    ),
    "power": ConsistencyMethod(power, "Power", _POWER, non_negative=True, sums_to_one="no", needs_noise=True),
    "power-ns": ConsistencyMethod(
        power_ns,
        "PowerNS",
        f"{_POWER}; then all are moved to add up to 1",
        non_negative=True,
        sums_to_one="yes",
        needs_noise=True,
    ),
}
"""Every method of the chapter by name; "base" changes nothing. "base-cut:K" is Base-Cut at the K-th highest."""

_GUIDELINE: dict[str, str] = {"single": "base-cut", "frequent": "norm", "set": "power-ns"}


def guideline(purpose: Purpose, *, whole: bool = True, noise: bool = True) -> str:
    """The method that section 8.2.6 advises for a purpose; another where that one cannot be used.

    Where the noise is unknown, it is the projection onto all that is possible: Norm-Sub, or Base-Pos where shares need
    not add up to 1. Neither is ever further from the truth than the estimate, taking all values together.

    `purpose`: as of `consistent`.

    Example:
        >>> guideline("single"), guideline("set"), guideline("set", noise=False), guideline("set", whole=False)
        ('base-cut', 'power-ns', 'norm-sub', 'base-pos')
    """
    advised = METHODS[_GUIDELINE[purpose]]
    if (whole or advised.sums_to_one == "no") and (noise or not advised.needs_noise):
        return _GUIDELINE[purpose]
    return "norm-sub" if whole else "base-pos"


def consistent_rows(estimate: Estimate, method: ConsistencyMethod, row_size: int) -> Estimate:
    """A method applied to the values of each row of `row_size` values; rows with unknown values stay as they are.

    Intervals are those of the estimate before, extended to include the new values. Post-Pos is applied to each value:
    for a sum, `answer` applies it to the result.
    """
    value, bias, size = estimate.value.copy(), estimate.bias, len(estimate)
    for row in (slice(start, start + row_size) for start in range(0, size, row_size)):
        if np.isfinite(value[row]).all():
            raw = Estimate(value[row], estimate.variance[row], estimate.n, estimate.bias, noise=estimate.noise)
            adjusted = method.apply(raw)
            value[row], bias = adjusted.value, adjusted.bias
    centre = estimate.value if estimate.centre is None else estimate.centre
    return replace(estimate, value=value, bias=bias, centre=centre)


def consistent(estimate: Estimate, *, for_: Purpose | None = None, method: str | None = None) -> Estimate:
    """Make an estimate consistent, by purpose or by name.

    Parameters
    ----------
    for_
        "single": each value on its own (Base-Cut). "frequent": the most frequent values (Norm). "set": sums over sets
        of values (PowerNS; where the sets are known, `choose_method` finds what serves them best).
    method
        A name of `METHODS`, or "base-cut:K", instead.

    Example:
        >>> estimate = Estimate(value=[0.7, 0.5, -0.1, 0.1], variance=[0.01] * 4, n=100)
        >>> consistent(estimate, for_="frequent").value.round(2).tolist()
        [0.65, 0.45, -0.15, 0.05]
        >>> consistent(estimate, method="norm-sub").value.round(2).tolist()
        [0.6, 0.4, 0.0, 0.0]

    References
    ----------
    T. Wang, 2021, section 8.2.6.
    """
    if (for_ is None) == (method is None):
        raise InvalidValue("for_, method", (for_, method), "one of the two")
    if for_ is not None and for_ not in _GUIDELINE:
        raise InvalidValue("for_", for_, f"one of {', '.join(_GUIDELINE)}")
    chosen = method_named(_GUIDELINE[for_] if for_ is not None else str(method))
    if chosen.of_results:
        raise InvalidValue("method", method, "a method for estimates; this one is for the results of `answer`")
    return chosen.apply(estimate)


def answer(estimate: Estimate, weights: ArrayLike, method: str = "power-ns") -> Estimate:
    """The weighted sum of the shares, or several (one row of weights each), under a method.

    `weights`: for a set of values, 1 for its members and 0 for the others. Post-Pos takes none below 0. `method`: a
    name of `METHODS`. Post-Pos is applied after the sum, all others before it.

    Example:
        >>> estimate = Estimate(value=[0.7, 0.5, -0.1, 0.1], variance=[0.01] * 4, n=100)
        >>> answer(estimate, [1, 0, 1, 0], method="norm-sub").value.round(2).tolist()
        [0.6]

    References
    ----------
    T. Wang, 2021, section 8.2.4.
    """
    chosen = method_named(method)
    if not chosen.of_results:
        return chosen.apply(estimate).linear(weights)
    result = estimate.linear(weights)
    if np.min(np.asarray(weights, dtype=np.float64)) < 0:
        raise InvalidValue("weights", weights, f"weights of at least 0: {method} takes a result below 0 for noise")
    return chosen.apply(result)


def method_named(name: str, field: str = "method", *, others: Sequence[str] = ()) -> ConsistencyMethod:
    """A method of the table, or "base-cut:K": Base-Cut that keeps the K highest estimates.

    An error names the `field`, and the `others` that are allowed there.
    """
    plain, marker, kept = name.partition(":")
    if plain == "base-cut" and marker and kept.isascii() and kept.isdigit() and len(kept) < 10 and int(kept) > 0:
        k = int(kept)
        does = f"the {k:,} highest stay, and the others become 0" if k > 1 else "the highest stays, the others become 0"
        return replace(METHODS[plain], apply=partial(base_cut, k=k), does=does, needs_noise=False)
    if name not in METHODS:
        raise InvalidValue(field, name, f"one of {', '.join([*others, *METHODS])}; base-cut:K keeps the K highest")
    return METHODS[name]


_BATCH = 1 << 16  # people whose reports are in memory at a time


@dataclass(frozen=True)
class Choice:
    """The method with the least error, and the errors of all.

    `method`: a name of `METHODS`. `errors`: the mean squared error over queries and repetitions, by method, least
    first. `stderr`: the standard error of each of these means, over repetitions: methods closer than that are alike.

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

    `queries`: a row of weights for each query. `repetitions`: how often they report, at least 2. `methods`: names of
    `METHODS`; all of them if left out (Post-Pos only where no weight is below 0).

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
    T. Wang, 2021, section 8.2.4.
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


def round_shares(shares: ArrayLike, n: int) -> Ints:
    """Round n times the shares to whole people that sum to n: the largest remainders are rounded up."""
    exact = np.asarray(shares, dtype=np.float64) * n
    counts = np.floor(exact).astype(np.int64)
    missing = n - int(counts.sum())
    if not 0 <= missing <= counts.size:
        raise InvalidValue("shares", shares, "shares that sum to 1")
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def _collect(oracle: FrequencyOracle, people: Ints, rng: Random) -> Estimate:
    sketch = oracle.empty()
    for start in range(0, people.size, _BATCH):
        sketch = sketch + oracle.accumulate(oracle.randomize(people[start : start + _BATCH], rng))
    return oracle.estimate(sketch)
