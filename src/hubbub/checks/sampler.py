"""The check that reports are drawn from the distribution that `log_prob` states."""

import numpy as np

from hubbub.checks.failure import FALSE_ALARM, CheckFailed, fit, mean_is, require, smallest
from hubbub.checks.probability import row_keys
from hubbub.core.errors import needs
from hubbub.core.reports import Array, Floats, Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.random.source import Random

_MANY = 120_000  # reports: enough to see a rate of 1/200 that is 30% off
_SOME = 20_000
_FEW = 1_500  # where every report has its own public part, so that each brings outputs of its own
_PUBLIC_PARTS = 256
_ENUMERABLE = 1 << 21


def check_sampler(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """The private part, given the public part and a value, falls as `log_prob` says: a false alarm once in a million.

    Where the outputs can be listed, their counts are compared with their probabilities: output by output, and
    grouped by probability, where a wrong rate shows most. Elsewhere likelihood ratios must average 1 and each
    bit must be 1 as often as `log_prob` says, given the others. Rates that are 30% off are rejected.
    """
    rng = Random(seed=rng_seed)
    for value in mechanism.example_values(3)[-2:]:
        reports = _draw(mechanism, value, _FEW, rng)
        public = list(dict.fromkeys(row_keys(reports.public, len(reports))))
        outputs = mechanism.outputs(_row(reports, 0))
        if outputs is not None and len(outputs) * len(public) <= _ENUMERABLE:
            if len(public) <= _PUBLIC_PARTS:
                reports = _draw(mechanism, value, _MANY, rng)
            p_values = _against_outputs(mechanism, value, reports)
        else:
            reports = _draw(mechanism, value, _SOME, rng)
            p_values = [*_ratios(mechanism, value, reports), *_bits(mechanism, value, reports)]
        p_value = smallest(p_values)
        require(
            p_value > FALSE_ALARM,
            f"reports of {value!r} do not fall as log_prob says: chance would do this with probability {p_value:.1e}",
        )


def _draw(mechanism: Mechanism, value: object, n: int, rng: Random) -> Reports:
    return mechanism.randomize([value] * n, rng)


def _row(reports: Reports, row: int) -> dict[str, Array] | None:
    return {name: column[row : row + 1] for name, column in reports.public.items()} or None


def _against_outputs(mechanism: Mechanism, value: object, reports: Reports) -> list[float]:
    publics = row_keys(reports.public, len(reports))
    first = {key: row for row, key in reversed(list(enumerate(publics)))}
    listed: list[Reports] = []
    for row in first.values():
        outputs = mechanism.outputs(_row(reports, row))
        if outputs is None:
            raise CheckFailed("outputs() lists the reports with one public part and not with another")
        listed.append(outputs)
    every = Reports.concat(listed)
    owner = np.repeat(np.arange(len(first)), [len(outputs) for outputs in listed])
    rank = np.concatenate([np.arange(len(outputs)) for outputs in listed])
    log_prob = mechanism.log_prob(every, [value])[:, 0]

    number = {key: k for k, key in enumerate(first)}
    place = {key: k for k, key in enumerate(zip(owner.tolist(), row_keys(every.private, len(every)), strict=True))}
    own = [number[key] for key in publics]
    try:
        drawn = [place[key] for key in zip(own, row_keys(reports.private, len(reports)), strict=True)]
    except KeyError:
        raise CheckFailed(f"a report of {value!r} is not among outputs()") from None
    observed = np.bincount(drawn, minlength=len(every))
    expected = np.exp(log_prob) * np.bincount(own, minlength=len(first))[owner]
    # Sums over public parts vary no more than a multinomial does: the test stays on the safe side.
    _, likely = np.unique(log_prob.round(9), return_inverse=True)
    order = np.lexsort((rank, -log_prob.round(9), owner))
    by_likelihood = np.empty_like(rank)
    by_likelihood[order] = rank[np.argsort(owner, kind="stable")]
    return [
        fit(np.bincount(cell, weights=observed), np.bincount(cell, weights=expected))
        for cell in (likely, rank, by_likelihood)
    ]


def _ratios(mechanism: Mechanism, value: object, reports: Reports) -> Floats:
    """Over reports of one value, P(report | other) / P(report | value) has mean 1."""
    others = [other for other in mechanism.example_values(12) if other != value]
    log_prob = mechanism.log_prob(reports, [value, *others])
    return mean_is(np.exp(log_prob[:, 1:] - log_prob[:, :1]), 1.0)


def _bits(mechanism: Mechanism, value: object, reports: Reports) -> list[float]:
    """Of a report and its copy with one bit flipped, each comes as often as the odds of their probabilities say."""
    with needs("analytics"):
        from scipy.stats import norm

    p_values = []
    for column in mechanism.columns:
        if column.part != "private" or column.dtype != "u1" or column.below is not None or len(column.shape) != 1:
            continue
        few = reports[:64]
        chances = {}
        for bit in range(8 * column.shape[0]):
            flipped = _flip(few, column.name, bit)
            try:
                mechanism.check(flipped)
            except ValueError:
                continue  # no report has that bit, or reports have a fixed number of bits
            chances[bit] = float(np.mean(_chance_of_one(mechanism, value, few, column.name, bit)))
        # The bits that stand out are the value's own; a few others go with them.
        ordered = sorted(chances, key=lambda bit: chances[bit])
        for bit in dict.fromkeys([*ordered[:3], *ordered[-3:], *list(chances)[:: max(1, len(chances) // 4)]]):
            chance = _chance_of_one(mechanism, value, reports, column.name, bit)
            ones = reports.private[column.name][:, bit // 8] >> (bit % 8) & 1
            spread = np.sqrt(np.sum(chance * (1 - chance)))
            p_values.append(float(2 * norm.sf(abs(np.sum(ones - chance)) / max(spread, 1e-12))))
    return p_values


def _chance_of_one(mechanism: Mechanism, value: object, reports: Reports, name: str, bit: int) -> Floats:
    ones = reports.private[name][:, bit // 8] >> (bit % 8) & 1
    as_sent = mechanism.log_prob(reports, [value])[:, 0]
    flipped = mechanism.log_prob(_flip(reports, name, bit), [value])[:, 0]
    odds = np.where(ones == 1, as_sent - flipped, flipped - as_sent)
    return np.asarray(1 / (1 + np.exp(-odds)))


def _flip(reports: Reports, name: str, bit: int) -> Reports:
    bits = reports.private[name].copy()
    bits[:, bit // 8] ^= np.uint8(1 << bit % 8)
    return Reports(reports.spec_id, public=reports.public, private={**reports.private, name: bits})
