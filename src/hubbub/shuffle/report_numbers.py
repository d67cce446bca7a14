"""Reports as numbers below 2^64, which is what the oblivious shuffle divides into shares; every number is a report."""

import numpy as np

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Array, Reports, Words
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import SOLH, LocalHashing
from hubbub.random.source import Random

_SPACE = 1 << 64
NUMBERED = frozenset({"GRR", "SOLH"})
"""The mechanisms whose reports are numbers."""


def to_numbers(mechanism: Mechanism, reports: Reports, rng: Random) -> Words:
    """Each report as a number: the device's side.

    A report of SOLH is a number already. One of GRR is any number that leaves the reported value modulo the domain's
    size, drawn at random: else the server would know a true report from a fake one, which is any number.
    """
    if isinstance(mechanism, SOLH):
        return mechanism.numbers(reports)
    grr = _grr(mechanism)
    grr.check(reports)
    quotients = rng.below(_SPACE // grr.size, len(reports)).astype(np.uint64)
    return np.asarray(quotients * np.uint64(grr.size) + reports.private["value"].astype(np.uint64))


def from_numbers(mechanism: Mechanism, numbers: Array) -> Reports:
    """The reports of numbers: the server's side."""
    if isinstance(mechanism, SOLH):
        return mechanism.reports(numbers)
    grr = _grr(mechanism)
    if numbers.dtype != np.uint64 or numbers.ndim != 1:
        raise DecodeError("numbers", f"{numbers.dtype}{list(numbers.shape)}", "a row of unsigned 64-bit numbers")
    (column,) = grr.columns
    return Reports(grr.spec_id, private={column.name: (numbers % grr.size).astype(column.dtype)})


def has_numbers(mechanism: object) -> bool:
    """Whether the reports of a mechanism are numbers below 2^64, every one of which is a report."""
    return type(mechanism) in (GRR, SOLH)  # a subclass may report something else


def _grr(mechanism: Mechanism) -> GRR:
    if not isinstance(mechanism, GRR):
        raise InvalidValue("mechanism", type(mechanism).__name__, "SOLH or GRR, whose reports are numbers")
    return mechanism


def has_uniform_reports(mechanism: object) -> bool:
    """Whether uniform reports are what all values of a mechanism have in common: its blanket."""
    return isinstance(mechanism, GRR | LocalHashing)


def uniform_reports(mechanism: ReportFormat, n: int, rng: Random) -> Reports:
    """A number of fake reports of GRR or local hashing.

    `rng`: draws them: a secure one, but in tests.
    """
    if not isinstance(mechanism, GRR | LocalHashing):
        raise InvalidValue("mechanism", type(mechanism).__name__, "GRR or local hashing, whose fakes are uniform")
    # The public part, a seed, does not depend on the value: it is drawn as devices draw it.
    drawn = mechanism.randomize(mechanism.example_values(1) * n, rng)
    (column,) = (column for column in mechanism.columns if column.part == "private")
    assert column.below is not None
    values = rng.below(column.below, n).astype(column.dtype)
    return Reports(mechanism.spec_id, public=dict(drawn.public), private={column.name: values})
