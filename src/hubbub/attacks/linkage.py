"""A collector that recognises a device by its reports: two batches without names, and who of the second is whom."""

from collections.abc import Iterator

import numpy as np

from hubbub.attacks.averaging import SIZE, gathered, memo_scores, small_collection
from hubbub.attacks.forging import scores
from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, of_guesses
from hubbub.core.reports import Floats, Reports
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.loloha import Loloha

DEVICES = 200
"""How many devices are in a batch: whom of these is it?"""
DAY = 24
"""How many reports of a device are known to be of one, such as those from one address."""


def link_bound(epsilon: float, n: int) -> float:
    """How often a device can be picked out of n by a second report, if both reports were made afresh.

    Exchanging the answers of two devices changes the probability of what the collector saw by e^(2 epsilon) at most,
    whatever it knows of their values.
    """
    return float(1 / (1 + (n - 1) * np.exp(-2 * epsilon)))


def _likeness(mechanism: ReportFormat, first: list[Reports], second: list[Reports]) -> Floats:
    """How alike the reports of each device in one place (row) are to those of each in another (column)."""
    if isinstance(mechanism, Mechanism):
        one, other = (np.exp(sum(scores(mechanism, each, SIZE) for each in reports)) for reports in (first, second))
        return np.asarray(np.log(one @ other.T))
    one, other = (
        np.mean([2 * memo_scores(mechanism, each) - 1 for each in reports], axis=0) for reports in (first, second)
    )
    alike = -((one[:, None, :] - other[None, :, :]) ** 2).sum(axis=2)
    if isinstance(mechanism, Loloha):  # the function is a fingerprint
        alike = alike + 1000.0 * (first[0].public["function"][:, None] == second[0].public["function"][None, :])
    return np.asarray(alike, dtype=np.float64)


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    memo = f'kind = "memo"\nepsilon = {setting.epsilon}\npermanent = {2 * setting.epsilon}'
    fresh = f'kind = "histogram"\nepsilon = {setting.epsilon}'
    for name, question, reports in (
        ("GRR", fresh, 1),
        ("OLH", fresh, 1),
        ("BasicRappor", memo, 1),
        ("BasicRappor", memo, DAY),
        ("Loloha", memo, DAY),
    ):
        collection = small_collection(f'{question}\nmechanism = "{name}"', user=200.0)
        right, stated = 0, "never"
        for run in range(setting.runs):
            rng = setting.rng(name, reports, run)
            values = rng.below(SIZE, DEVICES).astype(np.int64)
            batches = gathered(collection, "asked", values, rng, steps=2 * reports)
            mechanism, order = batches[0][0].mechanism, rng.permutation(DEVICES)
            first = [batch for _, batch in batches[:reports]]
            second = [batch[order] for _, batch in batches[reports:]]
            likeness = _likeness(mechanism, first, second)
            ties = rng.uint32(likeness.size).reshape(likeness.shape) * 2.0**-32 * 1e-6
            picked = (likeness + ties).argmax(axis=1)
            right, stated = right + int((order[picked] == np.arange(DEVICES)).sum()), mechanism.linkable
        bound = link_bound(setting.epsilon, DEVICES) if stated == "never" else None
        note = "" if bound is not None else f'states that its reports can be linked: "{stated}"'
        case = f"{name}, {reports} report{'s' * (reports > 1)} at each place: one of {DEVICES} devices"
        yield of_guesses(case, right, setting.runs * DEVICES, bound, note)


ATTACK = Attack(
    title="A collector that knows a device's reports at one address picks it out of n devices at another.",
    promise="Mechanisms state whether their reports can be linked. Of those made afresh, a guess among n is right in "
    "at most e^(2 epsilon) / (e^(2 epsilon) + n - 1) of cases; memos promise nothing, and are refused where reports "
    "are shuffled.",
    quantity="devices that are picked out",
    run=_run,
)
