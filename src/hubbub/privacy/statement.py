"""An audit in plain language, for the person who is responsible for people's privacy."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.privacy.audit import Audit

_WEAK = math.log(99)  # from even odds, beyond this one report can make an observer 99% sure


def statement(audit: Audit) -> str:
    """What is guaranteed, to whom, over which reports, what is not covered, and how it was checked."""
    checked = f"How it was checked. {' '.join(_checks(audit))}"
    if not audit.ok:
        return f"{_verdict(audit)}\n\nWhat it claims, and does not keep. {_guarantee(audit.epsilon)}\n\n{checked}"
    return "\n\n".join(
        (
            _verdict(audit),
            f"What is guaranteed. {_guarantee(audit.effective_epsilon)}",
            "To whom. To everyone who sends a report, against anyone who sees it: on the network, at the server, or in "
            "its records. Nobody but the device has to be trusted, and it holds whatever else the observer knows.",
            f"Over what. {_reach(audit)}",
            f"What is not covered. {_uncovered(audit)}",
            checked,
        )
    )


def _verdict(audit: Audit) -> str:
    name = f"{audit.mechanism} (spec {audit.spec_id[:8]})"
    if not audit.ok:
        return f"VIOLATED. {name} declares epsilon {audit.epsilon:g}, and a check below failed: do not use it."
    spent = _up(audit.effective_epsilon)
    same = "as declared" if audit.effective_epsilon >= audit.epsilon * (1 - 1e-3) else "below what it declares"
    return f"{name}: one report spends epsilon {spent}, {same} ({audit.epsilon:g})."


def _guarantee(epsilon: float) -> str:
    times = _up(math.exp(epsilon)) if epsilon < 700 else f"e^{_up(epsilon)}"
    sure, unsure = 100 / (1 + math.exp(-epsilon)), 100 / (1 + math.exp(min(epsilon, 700)))
    text = (
        f"Whatever a report says, it is at most e^{_up(epsilon)} = {times} times more likely under one answer than "
        f"under any other. Someone who held two answers equally likely can, after seeing it, be at most "
        f"{_up(sure)}% sure of either, and the other keeps at least {_down(unsure)}%."
    )
    return (
        text if epsilon <= _WEAK else text + " At an epsilon this large, one report can all but give its answer away."
    )


def _reach(audit: Audit) -> str:
    if audit.lifetime_epsilon is not None:
        return (
            f"One report; and all reports of one answer that does not change, together, spend at most epsilon "
            f"{_up(audit.lifetime_epsilon)} while the device keeps its permanent answer. Reports of different answers "
            "add up, unless the ledger stops them."
        )
    return (
        f"One report. Reports of one person add up, two to epsilon {_up(2 * audit.effective_epsilon)}, ten to "
        f"{_up(10 * audit.effective_epsilon)}, unless the ledger on the device stops them."
    )


def _uncovered(audit: Audit) -> str:
    public = ""
    if audit.public:
        columns = " and ".join(audit.public)
        drawn = "which is drawn without looking at the answer and sent as it is"
        told = "which may depend on the answer and is sent as it is: nothing protects it, with or without a shuffle"
        public = f"The public part ({columns}), {told if audit.linkable == 'always' else drawn}. "
    if audit.linkable == "between batches":
        public += "That two reports come from the same device. "
    return (
        public + "That someone answered at all, and when. Network addresses, and anything else sent beside the report. "
        "What the statistics say about everyone, a person's own group included."
    )


def _checks(audit: Audit) -> list[str]:
    condition = f", given {' and '.join(audit.public)}" if audit.public else ""
    sentences = [
        "The worst ratio was computed from the stored integers of the specification in exact "
        f"arithmetic{condition}, and its logarithm rounded up: epsilon {_up(audit.effective_epsilon)}."
    ]
    if max(audit.effective_epsilon, audit.lifetime_epsilon or 0.0) > audit.epsilon:
        sentences.append(f"FAILED: that is more than the declared {audit.epsilon:g}.")
    enumerated = audit.enumeration
    if enumerated is None:
        sentences.append("Its reports are too many to enumerate: the ratio rests on the structure of the mechanism.")
    else:
        tried = "all" if enumerated.every_value else "a sample of"
        beside = f", beside each of {enumerated.publics} public parts" if audit.public else ""
        sentences.append(
            f"Every possible report ({enumerated.reports:,}) was enumerated under {tried} {enumerated.values:,} answers"
            f"{beside}: the worst ratio found is epsilon {_up(enumerated.epsilon)}, "
            + ("equal to the computed one." if enumerated.ratio == audit.ratio else _unequal(audit))
        )
        if not enumerated.normalised:
            sentences.append("FAILED: the probabilities of some answer's reports do not sum to 1.")
    sampled = audit.montecarlo
    if sampled is not None:
        judged = "consistent" if sampled.epsilon_low <= audit.effective_epsilon else "FAILED: not consistent"
        sentences.append(
            f"From {sampled.samples:,} reports drawn, the sampler spends at least epsilon "
            f"{_down(sampled.epsilon_low)} at confidence {sampled.level:.4g}: {judged} with the computed epsilon."
        )
    return sentences


def _unequal(audit: Audit) -> str:
    return "within the computed one." if audit.exact else "FAILED: not within the computed one."


def _up(number: float) -> str:
    return _rounded(number, ROUND_CEILING)


def _down(number: float) -> str:
    return _rounded(number, ROUND_FLOOR)


def _rounded(number: float, rounding: str) -> str:
    """Four significant digits, rounded so that the sentence stays true; a float's last-place noise is not a digit."""
    if math.isinf(number):
        return "infinity"
    exact = Context(prec=12).create_decimal(Decimal(number))
    return f"{Context(prec=4, rounding=rounding).plus(exact).normalize():,f}"
