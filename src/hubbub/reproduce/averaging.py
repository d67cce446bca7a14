"""The averaging attack: someone collects a device's report every day, for a year, while its value stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bits import unpack
from hubbub.core.errors import InvalidValue
from hubbub.core.exact import log_fraction
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.basic_rappor import BasicRappor
from hubbub.mechanisms.frequency.choice import choice_rates
from hubbub.mechanisms.memo.loloha import Loloha
from hubbub.mechanisms.memo.toeplitz import toeplitz
from hubbub.mechanisms.stateful import States
from hubbub.reproduce.claims import Claim
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas

__all__ = ["Attack", "averaging_attack"]

YEAR = (1, 2, 3, 5, 7, 10, 14, 20, 30, 45, 60, 90, 120, 180, 270, 365)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """What an observer who knows everything but the values makes of the reports of so many days.

    Parameters
    ----------
    days
        After how many reports.
    fresh, memoised
        The share of people whose value is found: the likeliest one, given all reports so far.
    permanent
        The share that is found by someone who sees the permanent answers themselves.
    told_fresh, told_memoised
        The largest ln of a ratio of two values' likelihoods that came up: the epsilon that was told.

    Example:
        >>> attack = averaging_attack(Loloha(epsilon=2.0, domain=4), people=20, days=(1, 30), rng=Random(seed=1))
        >>> bool((attack.told_memoised <= 2.0).all()), bool(attack.told_fresh[-1] > 5.0)
        (True, True)
    """

    days: tuple[int, ...]
    fresh: Floats
    memoised: Floats
    permanent: float
    told_fresh: Floats
    told_memoised: Floats


def averaging_attack(
    mechanism: BasicRappor | Loloha, *, people: int, days: Sequence[int] = YEAR, rng: Random
) -> Attack:
    """Let people report an unchanging value every day, both ways, and attack after each of some days.

    Parameters
    ----------
    mechanism
        How they report.
    people
        How many; their values are spread evenly over the domain.
    days
        After how many reports the observer is asked.
    rng
        The randomness.
    """
    if list(days) != sorted(set(days)) or not days or days[0] < 1:
        raise InvalidValue("days", days, "growing numbers of days, from 1")
    every, values = mechanism.example_values(mechanism.size), np.arange(people) % mechanism.size
    held, states = [every[value] for value in values], mechanism.enroll(people, rng)
    summed = np.zeros((people, mechanism.size))
    kept: list[Reports] = []
    fresh, memoised, told_fresh, told_memoised = [], [], [], []
    for day in range(1, days[-1] + 1):
        summed += mechanism.log_prob(mechanism.randomize(held, rng), every)
        states, reports, _ = mechanism.step(states, day, held, rng, paid=np.full(people, day == 1))
        kept.append(reports)
        if day in days:
            joint = _likelihood(mechanism, states, kept)
            fresh.append(_found(summed, values))
            memoised.append(_found(joint, values))
            told_fresh.append(_told(summed))
            told_memoised.append(_told(joint))
    return Attack(
        days=tuple(days),
        fresh=np.array(fresh),
        memoised=np.array(memoised),
        permanent=_found(_permanent(mechanism, states), values),
        told_fresh=np.array(told_fresh),
        told_memoised=np.array(told_memoised),
    )


def _found(likelihood: Floats, values: NDArray[Any]) -> float:
    """The chance that the likeliest value is the true one; a tie is broken by lot."""
    best = likelihood >= likelihood.max(axis=1, keepdims=True) - 1e-9
    right = best[np.arange(len(values)), values]
    return float(np.mean(right / best.sum(axis=1)))


def _told(likelihood: Floats) -> float:
    return float((likelihood.max(axis=1) - likelihood.min(axis=1)).max())


def _likelihood(mechanism: BasicRappor | Loloha, states: States, kept: list[Reports]) -> Floats:
    """ln of the probability of all reports of each person (row) under each value (column), but for a constant."""
    times = len(kept)
    if isinstance(mechanism, Loloha):
        counts = np.zeros((len(states), mechanism.buckets))
        for reports in kept:
            counts[np.arange(len(states)), reports.private["bucket"]] += 1
        stay, swap = map(log_fraction, choice_rates(mechanism.swap, mechanism.buckets))
        return _of_bucket(mechanism, states, counts * stay + (times - counts) * swap)
    ones = sum(unpack(reports.private["bits"], mechanism.size).astype(np.float64) for reports in kept)
    full = 1 << mechanism.width
    if_one, if_zero = (
        ones * np.log(threshold / full) + (times - ones) * np.log1p(-threshold / full)
        for threshold in (mechanism.keep, mechanism.lift)
    )
    return _of_bits(mechanism, if_one, if_zero)


def _permanent(mechanism: BasicRappor | Loloha, states: States) -> Floats:
    """The same for someone who sees the permanent answers."""
    if isinstance(mechanism, Loloha):
        answers = states["answers"][:, 0]
        return _of_bucket(mechanism, states, np.where(answers == np.arange(mechanism.buckets), 0.0, -np.inf))
    bits = unpack(states["answers"][:, 0], mechanism.size)
    return _of_bits(mechanism, np.where(bits == 1, 0.0, -np.inf), np.where(bits == 0, 0.0, -np.inf))


def _of_bits(rappor: BasicRappor, if_one: Floats, if_zero: Floats) -> Floats:
    """From what was seen of each bit, given the permanent bit, to what that says of each value."""
    held, not_held = (
        np.logaddexp(log_fraction(rate) + if_one, log_fraction(1 - rate) + if_zero) for rate in rappor.permanent_rates
    )
    return np.asarray(held - not_held)


def _of_bucket(loloha: Loloha, states: States, given: Floats) -> Floats:
    """From what was seen, given each permanent bucket, to what that says of each value."""
    truth, other = map(log_fraction, choice_rates(loloha.other, loloha.buckets))
    same = np.eye(loloha.buckets, dtype=bool)
    by_bucket = np.logaddexp.reduce(given[:, None, :] + np.where(same, truth, other)[None], axis=2)
    fallen = toeplitz(states["public"][:, None], np.arange(loloha.size)[None, :], loloha.buckets)
    return np.asarray(np.take_along_axis(by_bucket, fallen, axis=1))


@reproduction("averaging-attack", title="A report a day of a value that stays: fresh and memoised randomisation")
def reproduce_averaging(context: Context) -> Reproduced:
    """Both curves for both memoised mechanisms: a permanent answer of epsilon 3, reports of about 1."""
    figure, panels = canvas(2, 2, width=4.8, height=3.2)
    people = context.size(320, least=32)
    mechanisms: dict[str, BasicRappor | Loloha] = {
        "basic RAPPOR": BasicRappor(epsilon=3.0, domain=16),
        "LOLOHA": Loloha(epsilon=3.0, domain=16, report_epsilon=1.0, buckets=2),
    }
    cells = []
    for (name, mechanism), (shares, told) in zip(mechanisms.items(), (panels[:2], panels[2:]), strict=True):
        attack = averaging_attack(mechanism, people=people, rng=context.rng.child(name))
        shares.plot(attack.days, attack.fresh, color="#d55e00", marker="o", label="fresh every day")
        shares.plot(attack.days, attack.memoised, color="#0072b2", marker="s", label="memoised")
        shares.axhline(attack.permanent, color="#0072b2", linestyle="--", label="the permanent answer itself")
        shares.axhline(1 / mechanism.size, color="#808080", linestyle=":", label="a guess")
        told.plot(attack.days, attack.told_fresh, color="#d55e00", marker="o", label="fresh every day")
        told.plot(attack.days, attack.told_memoised, color="#0072b2", marker="s", label="memoised")
        told.axhline(mechanism.permanent_epsilon, color="#0072b2", linestyle="--", label=r"$\epsilon_\infty$")
        told.axhline(mechanism.effective_epsilon, color="#808080", linestyle=":", label=r"$\epsilon_1$")
        told.set_yscale("log")
        for panel, what in ((shares, "share of values found"), (told, r"largest $\epsilon$ told")):
            panel.set_xscale("log")
            panel.set_xlabel("daily reports")
            panel.set_ylabel(what)
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
            float(attack.told_memoised.max()) / mechanism.permanent_epsilon,
            below=1 + 1e-9,
        ),
        Claim(
            f"{name}: largest epsilon told by one report, as a part of its own",
            float(attack.told_memoised[0]) / mechanism.effective_epsilon,
            below=1 + 1e-9,
        ),
    ]
    rows = [
        Cell(f"{name}, day {day}", column, None, float(value))
        for column, curve in (("fresh", attack.fresh), ("memoised", attack.memoised))
        for day, value in zip(attack.days, curve, strict=True)
    ]
    return [*rows, *(claim.cell() for claim in claims)]
