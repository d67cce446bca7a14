"""Checks of `prob`, `log_prob` and `ratio`: sums of 1, equal logarithms, and the stated worst ratio."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hubbub.checks.enumeration import enumerate_outputs, exact_sum, row_keys, worst_ratio
from hubbub.checks.failure import require
from hubbub.checks.values import some_values
from hubbub.core.exact import log_fraction, log_upper
from hubbub.core.random import Random
from hubbub.mechanisms.base import Mechanism, ReportFormat

_RELATIVE = 1e-12


def check_normalised(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Given any value and public part, the probabilities of all private parts add up to 1 exactly."""
    for outputs, prob in enumerate_outputs(mechanism, rng_seed)[:4]:
        mechanism.check(outputs)
        require(len(set(row_keys(outputs.private, len(outputs)))) == len(outputs), "outputs() lists a report twice")
        for column in range(min(prob.shape[1], 16)):
            require(all(isinstance(part, Fraction) for part in prob[:, column]), "prob() must return Fractions")
            total = exact_sum(prob[:, column])
            require(total == 1, f"given value {column}, the probabilities of all outputs add up to {total}, not 1")


def check_log_prob(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """`log_prob` is the logarithm of `prob`, to 12 digits, with a row a report and a column a value."""
    rng = Random(seed=rng_seed)
    reports = mechanism.randomize(some_values(mechanism, 40, rng), rng)
    values = mechanism.example_values(12)
    prob, log_prob = mechanism.prob(reports, values), mechanism.log_prob(reports, values)
    shape = len(reports), len(values)
    require(prob.shape == log_prob.shape == shape, f"shapes {prob.shape} and {log_prob.shape}, not {shape}")
    parts: list[Fraction] = prob.ravel().tolist()
    require(all(0 <= part <= 1 for part in parts), "a probability is not between 0 and 1")
    logarithms = {part: log_fraction(part) for part in set(parts)}
    exact = np.array([logarithms[part] for part in parts]).reshape(shape)
    finite = np.isfinite(exact)
    require(np.array_equal(finite, np.isfinite(log_prob)), "log_prob and prob differ on what is impossible")
    off = np.abs(log_prob[finite] - exact[finite]) / np.maximum(1.0, np.abs(exact[finite]))
    require(off.max(initial=0.0) <= _RELATIVE, f"log_prob is off by {off.max(initial=0.0):.3g}, more than {_RELATIVE}")


def check_effective_epsilon(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """The effective epsilon is the logarithm of `ratio()`, rounded up, and at most the declared one."""
    ratio = mechanism.ratio()
    require(isinstance(ratio, Fraction), f"ratio() is {ratio!r}, not a Fraction")
    require(
        mechanism.effective_epsilon == log_upper(ratio),
        f"effective_epsilon is {mechanism.effective_epsilon!r}, and ln(ratio()) {log_upper(ratio)!r}",
    )
    require(
        mechanism.effective_epsilon <= mechanism.epsilon,
        f"it spends {mechanism.effective_epsilon!r} and declares {mechanism.epsilon!r}",
    )


def check_exact_epsilon(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """No report's probabilities under two values have a larger ratio than `ratio()`, by enumeration."""
    worst, stated = worst_ratio(enumerate_outputs(mechanism, rng_seed)), mechanism.ratio()
    require(worst <= stated, f"a report has the epsilon {log_upper(worst)!r}, and ratio() says {log_upper(stated)!r}")


def check_tight_epsilon(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Over every value and output, `ratio()` is reached, and not only a bound."""
    worst, stated = worst_ratio(enumerate_outputs(mechanism, rng_seed)), mechanism.ratio()
    require(worst >= stated, f"the worst epsilon is {log_upper(worst)!r}, and ratio() says {log_upper(stated)!r}")
