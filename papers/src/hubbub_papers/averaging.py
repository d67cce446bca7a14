"""The averaging attack: an observer collects one report per day from devices whose values do not change, for a year."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.basic_rappor import BasicRappor
from hubbub.mechanisms.frequency.loloha import Loloha, toeplitz
from hubbub.mechanisms.stateful import States
from hubbub.mechanisms.weights import choice_rates
from hubbub.random.integers import log_fraction, unpack
from hubbub.random.source import Random
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas
from hubbub_papers.result import Claim

__all__ = ["Attack", "averaging_attack"]

YEAR = (1, 2, 3, 5, 7, 10, 14, 20, 30, 45, 60, 90, 120, 180, 270, 365)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """What an observer who knows everything but the values learns from the reports of some days.

    `fresh` and `memoised` are the shares of people whose value is the likeliest one, given all their reports so far,
    after each number of `days`; `permanent` is the same for an observer who sees the permanent answers themselves. The
    epsilon that was leaked is the largest log ratio of the likelihoods of two values that occurred.
    """

    days: tuple[int, ...]
    fresh: Floats
    memoised: Floats
    permanent: float
    leaked_fresh: Floats
    leaked_memoised: Floats


def averaging_attack(
    mechanism: BasicRappor | Loloha, *, people: int, days: Sequence[int] = YEAR, rng: Random
) -> Attack:
    """Let people report an unchanging value every day, fresh and memoised, and attack after each of some days.

    The values of the people are spread evenly over the domain.
    """
    if list(days) != sorted(set(days)) or not days or days[0] < 1:
        raise InvalidValue("days", days, "growing numbers of days, from 1")
    domain_values, codes = mechanism.example_values(mechanism.size), np.arange(people) % mechanism.size
    values, states = [domain_values[code] for code in codes], mechanism.enroll(people, rng)
    of_fresh = np.zeros((people, mechanism.size))
    memoised_reports: list[Reports] = []
    fresh, memoised, leaked_fresh, leaked_memoised = [], [], [], []
    for day in range(1, days[-1] + 1):
        of_fresh += mechanism.log_prob(mechanism.randomize(values, rng), domain_values)
        states, reports, _ = mechanism.step(states, day, values, rng, paid=np.full(people, day == 1))
        memoised_reports.append(reports)
        if day in days:
            of_memoised = _log_likelihood(mechanism, states, memoised_reports)
            fresh.append(_guessed(of_fresh, codes))
            memoised.append(_guessed(of_memoised, codes))
            leaked_fresh.append(_leaked(of_fresh))
            leaked_memoised.append(_leaked(of_memoised))
    return Attack(
        days=tuple(days),
        fresh=np.array(fresh),
        memoised=np.array(memoised),
        permanent=_guessed(_permanent(mechanism, states), codes),
        leaked_fresh=np.array(leaked_fresh),
        leaked_memoised=np.array(leaked_memoised),
    )


def _guessed(log_likelihood: Floats, codes: NDArray[Any]) -> float:
    """The chance that the likeliest value is the true one; ties are broken at random."""
    best = log_likelihood >= log_likelihood.max(axis=1, keepdims=True) - 1e-9
    right = best[np.arange(len(codes)), codes]
    return float(np.mean(right / best.sum(axis=1)))


def _leaked(log_likelihood: Floats) -> float:
    return float((log_likelihood.max(axis=1) - log_likelihood.min(axis=1)).max())


def _log_likelihood(mechanism: BasicRappor | Loloha, states: States, all_reports: list[Reports]) -> Floats:
    """ln of the probability of all reports of each person (row) under each value (column), up to a constant."""
    times = len(all_reports)
    if isinstance(mechanism, Loloha):
        counts = np.zeros((len(states), mechanism.buckets))
        for reports in all_reports:
            counts[np.arange(len(states)), reports.private["bucket"]] += 1
        stay, swap = map(log_fraction, choice_rates(mechanism.swap, mechanism.buckets))
        return _of_bucket(mechanism, states, counts * stay + (times - counts) * swap)
    ones = sum(unpack(reports.private["bits"], mechanism.size).astype(np.float64) for reports in all_reports)
    full = 1 << mechanism.width
    if_one, if_zero = (
        ones * np.log(threshold / full) + (times - ones) * np.log1p(-threshold / full)
        for threshold in (mechanism.keep, mechanism.lift)
    )
    return _of_bits(mechanism, if_one, if_zero)


def _permanent(mechanism: BasicRappor | Loloha, states: States) -> Floats:
    """The same for an observer who sees the permanent answers."""
    if isinstance(mechanism, Loloha):
        answers = states["answers"][:, 0]
        return _of_bucket(mechanism, states, np.where(answers == np.arange(mechanism.buckets), 0.0, -np.inf))
    bits = unpack(states["answers"][:, 0], mechanism.size)
    return _of_bits(mechanism, np.where(bits == 1, 0.0, -np.inf), np.where(bits == 0, 0.0, -np.inf))


def _of_bits(rappor: BasicRappor, if_one: Floats, if_zero: Floats) -> Floats:
    """From the log likelihoods of each permanent bit to those of each value."""
    if_held, if_not_held = (
        np.logaddexp(log_fraction(rate) + if_one, log_fraction(1 - rate) + if_zero) for rate in rappor.permanent_rates
    )
    return np.asarray(if_held - if_not_held)


def _of_bucket(loloha: Loloha, states: States, if_bucket: Floats) -> Floats:
    """From the log likelihoods of each permanent bucket to those of each value."""
    truth, other = map(log_fraction, choice_rates(loloha.other, loloha.buckets))
    same = np.eye(loloha.buckets, dtype=bool)
    by_bucket = np.logaddexp.reduce(if_bucket[:, None, :] + np.where(same, truth, other)[None], axis=2)
    buckets = toeplitz(states["public"][:, None], np.arange(loloha.size)[None, :], loloha.buckets)
    return np.asarray(np.take_along_axis(by_bucket, buckets, axis=1))


@reproduction("averaging-attack", title="One report per day of a value that stays: fresh and memoised randomisation")
def reproduce_averaging(context: Context) -> Reproduced:
    """Both curves for both memoised mechanisms: a permanent answer of epsilon 3, reports of about 1."""
    figure, panels = canvas(2, 2, width=4.8, height=3.2)
    people = context.size(320, least=32)
    mechanisms: dict[str, BasicRappor | Loloha] = {
        "basic RAPPOR": BasicRappor(epsilon=3.0, domain=16),
        "LOLOHA": Loloha(epsilon=3.0, domain=16, report_epsilon=1.0, buckets=2),
    }
    cells = []
    for (name, mechanism), (shares, epsilons) in zip(mechanisms.items(), (panels[:2], panels[2:]), strict=True):
        attack = averaging_attack(mechanism, people=people, rng=context.rng.child(name))
        shares.plot(attack.days, attack.fresh, color="#d55e00", marker="o", label="fresh every day")
        shares.plot(attack.days, attack.memoised, color="#0072b2", marker="s", label="memoised")
        shares.axhline(attack.permanent, color="#0072b2", linestyle="--", label="the permanent answer itself")
        shares.axhline(1 / mechanism.size, color="#808080", linestyle=":", label="a guess")
        epsilons.plot(attack.days, attack.leaked_fresh, color="#d55e00", marker="o", label="fresh every day")
        epsilons.plot(attack.days, attack.leaked_memoised, color="#0072b2", marker="s", label="memoised")
        epsilons.axhline(mechanism.permanent_epsilon, color="#0072b2", linestyle="--", label=r"$\epsilon_\infty$")
        epsilons.axhline(mechanism.effective_epsilon, color="#808080", linestyle=":", label=r"$\epsilon_1$")
        epsilons.set_yscale("log")
        for panel, label in ((shares, "share of values found"), (epsilons, r"largest $\epsilon$ told")):
            panel.set_xscale("log")
            panel.set_xlabel("daily reports")
            panel.set_ylabel(label)
            panel.set_title(name, fontsize=10)
            panel.grid(True, color="#dddddd", linewidth=0.6)
            panel.legend(fontsize=7, frameon=False)
        cells += _cells(name, mechanism, attack, people)
    return cells, figure


def _cells(name: str, mechanism: BasicRappor | Loloha, attack: Attack, people: int) -> list[Cell]:
    error = float(np.sqrt(0.25 / people))
    claims = [
        Claim(f"{name}: values found after a year, fresh", float(attack.fresh[-1]), above=0.99),
        Claim(
            f"{name}: found after a year, memoised, less what the permanent answer tells",
            float(attack.memoised[-1]) - attack.permanent,
            below=4 * error,
            note="four standard errors",
        ),
        Claim(
            f"{name}: largest epsilon told in a year, memoised, as a part of the permanent one",
            float(attack.leaked_memoised.max()) / mechanism.permanent_epsilon,
            below=1 + 1e-9,
        ),
        Claim(
            f"{name}: largest epsilon told by one report, as a part of its own",
            float(attack.leaked_memoised[0]) / mechanism.effective_epsilon,
            below=1 + 1e-9,
        ),
    ]
    rows = [
        Cell(f"{name}, day {day}", column, None, float(value))
        for column, curve in (("fresh", attack.fresh), ("memoised", attack.memoised))
        for day, value in zip(attack.days, curve, strict=True)
    ]
    return [*rows, *(claim.cell() for claim in claims)]
