"""Checks of the random bytes that reports draw: the same for every value, and the same in batches as one at a time."""

from typing import get_args

import numpy as np

from hubbub.checks.failure import FALSE_ALARM, require, same_counts, smallest
from hubbub.checks.probability import row_keys
from hubbub.checks.values import some_values
from hubbub.core.errors import InvalidValue, needs
from hubbub.core.reports import Array, Ints, Reports, Sketch
from hubbub.mechanisms.base import Linkable, Mechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.random.source import Random

_SINGLES = 40
_SAMPLES = 1_000
_CONSTANT = 1_000  # reports that are compared: a column that is the same in all of them is taken not to be drawn


class CountingRandom(Random):
    """A Random that counts the bytes it gave."""

    drawn = 0

    def fill(self, out: Array) -> None:
        super().fill(out)
        self.drawn += out.nbytes


def check_draws(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """How many random bytes a report takes does not depend on the value: a fixed block, or one distribution."""
    values = mechanism.example_values(8)
    if _fixed_block(mechanism):
        drawn = {}
        for value in values:
            for n in (1, 5):
                rng = CountingRandom(seed=rng_seed)
                mechanism.randomize([value] * n, rng)
                drawn[repr(value), n] = rng.drawn / n
        require(len(set(drawn.values())) == 1, f"the bytes drawn per report depend on value or batch: {drawn}")
        return
    counts = [_bytes_drawn(mechanism, value, Random(seed=rng_seed).child(repr(value))) for value in values]
    _, cells = np.unique(np.array(counts), return_inverse=True)
    p_value = _alike(list(cells.reshape(len(values), -1)))
    require(p_value > FALSE_ALARM, f"how many bytes a report draws depends on the value (p = {p_value:.1e})")


def check_public_part(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """The public part is drawn without looking at the value, or `linkable` states that it can be linked."""
    stated = mechanism.linkable
    require(stated in get_args(Linkable), f"linkable is {stated!r}, not one of {', '.join(get_args(Linkable))}")
    require(
        stated != "never" or not isinstance(mechanism, Stateful),
        'linkable is "never", but a device that remembers can be recognised in a second batch',
    )
    reason = _depends(mechanism, rng_seed) if any(column.part == "public" for column in mechanism.columns) else None
    if stated == "always":
        require(reason is not None, 'linkable is "always", but the public part is drawn without looking at the value')
    else:
        require(reason is None, str(reason))


def _depends(mechanism: Mechanism, rng_seed: int) -> str | None:
    """How the public part depends on the value, in words; None where it does not."""
    constant = _constant_column(mechanism, rng_seed)
    if constant is not None:
        return f"the public column {constant} is not drawn: it is always the same, though other values are accepted"
    values = mechanism.example_values(8)
    if _fixed_block(mechanism):
        parts = {tuple(_public(mechanism, value, 16, Random(seed=rng_seed))) for value in values}
        return None if len(parts) == 1 else "given the same random bytes, the public part depends on the value"
    samples = [_public(mechanism, value, _SAMPLES, Random(seed=rng_seed).child(repr(value))) for value in values]
    # A leak shows in some half byte, whatever the columns are.
    halves = [np.frombuffer(b"".join(sample), dtype=np.uint8).reshape(_SAMPLES, -1) for sample in samples]
    p_values = [
        _alike([half[:, byte] >> shift & 15 for half in halves])
        for byte in range(halves[0].shape[1])
        for shift in (0, 4)
    ]
    p_value = smallest(p_values)
    return None if p_value > FALSE_ALARM else f"the public part depends on the value (p = {p_value:.1e})"


def _constant_column(mechanism: Mechanism, rng_seed: int) -> str | None:
    """A public column that no random byte changes, where `check` accepts other content: it may be part of a value."""
    reports = mechanism.randomize(mechanism.example_values(1) * _CONSTANT, Random(seed=rng_seed))
    for name, column in reports.public.items():
        if (column == column[0]).all():
            other = Reports(reports.spec_id, public={**reports.public, name: column ^ 1}, private=dict(reports.private))
            try:
                mechanism.check(other)
            except InvalidValue:
                continue
            return name
    return None


def check_batch_is_singles(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """A batch gives the same reports as its values one at a time: byte for byte, or at least in distribution."""
    n = _SINGLES if _fixed_block(mechanism) else _SAMPLES
    values = some_values(mechanism, n, Random(seed=rng_seed))
    rng = Random(seed=rng_seed)
    singles = Reports.concat([mechanism.randomize(values[k : k + 1], rng) for k in range(n)])
    if _fixed_block(mechanism):
        batch = mechanism.randomize(values, Random(seed=rng_seed))
        require(batch == singles, "a batch differs from its values randomised one at a time with the same bytes")
        return
    batch = mechanism.randomize(values, rng)
    p_value = _same_sketches(mechanism, batch, singles)
    require(p_value > FALSE_ALARM, f"a batch is not distributed as its singles (p = {p_value:.1e})")


def _fixed_block(mechanism: Mechanism) -> bool:
    return bool(getattr(mechanism, "fixed_block", True))


def _bytes_drawn(mechanism: Mechanism, value: object, rng: Random) -> list[int]:
    counts = []
    for _ in range(_SAMPLES // 4):
        counting = CountingRandom(seed=rng.bytes(16))
        mechanism.randomize([value], counting)
        counts.append(counting.drawn)
    return counts


def _public(mechanism: Mechanism, value: object, n: int, rng: Random) -> list[bytes]:
    reports = mechanism.randomize([value] * n, rng)
    return row_keys(reports.public, n)


def _alike(samples: list[Array]) -> float:
    """The p-value that all samples of small integers have the first one's distribution."""
    most = 1 + max(int(sample.max()) for sample in samples)
    rows = [np.bincount(sample, minlength=most) for sample in samples]
    return smallest([same_counts(rows[0], row) for row in rows[1:]])


def _same_sketches(mechanism: Mechanism, first: Reports, second: Reports) -> float:
    """Welch's test on every count of the sketch, from the sketches of single reports."""
    with needs("analytics"):
        from scipy.stats import norm

    rows = [
        np.array([_counts(mechanism.accumulate(reports[k : k + 1])) for k in range(len(reports))], dtype=float)
        for reports in (first, second)
    ]
    spread = np.sqrt(sum(row.var(axis=0) / len(row) for row in rows))
    off = np.abs(rows[0].mean(axis=0) - rows[1].mean(axis=0))
    return smallest(2 * norm.sf(np.where(spread > 0, off / np.maximum(spread, 1e-12), np.where(off > 0, np.inf, 0.0))))


def _counts(sketch: Sketch) -> Ints:
    return sketch.counts.reshape(-1)
