"""Fake reports: drawn uniformly from all that devices of a mechanism can send, whatever their value."""

from __future__ import annotations

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing


def has_uniform_reports(mechanism: object) -> bool:
    """Whether uniform reports are what all values of a mechanism have in common: its blanket."""
    return isinstance(mechanism, GRR | LocalHashing)


def uniform_reports(mechanism: ReportFormat, n: int, rng: Random) -> Reports:
    """So many fake reports of GRR or local hashing.

    Parameters
    ----------
    mechanism
        What devices report by.
    n
        How many.
    rng
        Draws them: a secure one, but in tests.
    """
    if not isinstance(mechanism, GRR | LocalHashing):
        raise InvalidValue("mechanism", type(mechanism).__name__, "GRR or local hashing, whose fakes are uniform")
    # The public part, a seed, does not depend on the value: it is drawn as devices draw it.
    drawn = mechanism.randomize(mechanism.example_values(1) * n, rng)
    (column,) = (column for column in mechanism.columns if column.part == "private")
    assert column.below is not None
    values = rng.below(column.below, n).astype(column.dtype)
    return Reports(mechanism.spec_id, public=dict(drawn.public), private={column.name: values})
