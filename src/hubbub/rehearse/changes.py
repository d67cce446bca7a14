"""A rehearsal of changes: values read from a file, and what a collection that follows them would have released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.domain import Categorical, Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Floats
from hubbub.protocols.changes.protocol import Horizon
from hubbub.protocols.driver import converse
from hubbub.questions import Question, Setting
from hubbub.random.source import Random
from hubbub.rehearse.columns import MISSING, number_of, read_column
from hubbub.rehearse.marginals import names_in
from hubbub.simulate.devices import ArrayStream
from hubbub.simulate.fleet import Fleet

_DAY = 86400
_MOST_CELLS = 1 << 28


@dataclass(frozen=True, eq=False)
class FollowedValues:
    """What devices recorded last, at every step.

    `domains`: by the name of the field. `columns`: codes: a row for each step, a column for each device. The size of
    the domain means that nothing was recorded.
    """

    first: int
    domains: Mapping[str, Domain]
    columns: Mapping[str, Array]

    @property
    def steps(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def n(self) -> int:
        """How many devices there are."""
        return int(next(iter(self.columns.values())).shape[1])


def read_followed(
    path: Path, fields: Mapping[str, Domain | None], *, device: str = "device", step: str = "step"
) -> FollowedValues:
    """Read a file whose rows are values that a device recorded at a step; they hold until its next row.

    Parameters
    ----------
    path
        A CSV, TSV, JSON lines or Parquet file. Of several rows of a device and step, the last counts.
    fields
        The columns of the values, and the domain of each; None takes the names that are in the column.
    device, step
        The columns of the device, and of the step, which is a whole number.
    """
    when, who = read_column(path, step), read_column(path, device)
    numbers = np.array([number_of(label) for label in when.labels])
    if not np.isfinite(numbers).all() or (numbers % 1).any():
        wrong = next(
            label for label, number in zip(when.labels, numbers, strict=True) if not float(number).is_integer()
        )
        raise InvalidValue(step, wrong, "whole numbers, one for each step")
    if MISSING in who.labels:
        raise InvalidValue(device, MISSING, "a device in every row")
    first, steps, n = int(numbers.min()), int(np.ptp(numbers)) + 1, len(who.labels)
    if steps * n > _MOST_CELLS:
        raise InvalidValue(step, f"{steps:,} steps of {n:,} devices", f"at most {_MOST_CELLS:,} together")
    rows = (numbers[when.codes] - first).astype(np.int64) * n + who.codes
    columns, domains = {}, {}
    for name, given in fields.items():
        column = read_column(path, name)
        known = [label for label in column.labels if label != MISSING]
        domain = domains[name] = names_in(name, known) if given is None else given
        size = domain.size
        assert size is not None
        codes = np.full(len(column.labels), -1, dtype=np.int64)  # where nothing is said, the value before holds
        present = np.array([label != MISSING for label in column.labels])
        try:
            named = known if isinstance(domain, Categorical) else [int(label) for label in known]
            codes[present] = domain.encode(named)
        except (InvalidValue, ValueError) as error:
            raise InvalidValue(name, getattr(error, "value", known[:1]), domain.describe()) from None
        table = np.full((steps, n), -1, dtype=np.int64)
        recorded = codes[column.codes]
        np.put(table, rows[recorded >= 0], recorded[recorded >= 0])
        for at in range(1, steps):
            table[at] = np.where(table[at] < 0, table[at - 1], table[at])
        columns[name] = np.where(table < 0, size, table)
    return FollowedValues(first, domains, columns)


@dataclass(frozen=True, eq=False)
class RehearsedChanges:
    """A horizon that devices have answered, and the true shares.

    `shares`: the true shares: a row for each step.
    """

    horizon: Horizon
    labels: tuple[str, ...]
    shares: Floats

    def truth(self, first: int, last: int) -> Floats:
        """The true mean shares of some steps of the horizon, which are counted from 1."""
        return np.asarray(self.shares[first - 1 : last].mean(axis=0))


def rehearse_changes(
    values: FollowedValues, *, epsilon: float, changes: int, rng: Random, **keys: Any
) -> RehearsedChanges:
    """What a question of kind "changes" would have released, with one horizon for all steps.

    `epsilon`, `changes`: what a device may spend, and how many changes it may tell of, over all steps. `keys`:
    `fanout`, `queries` and `mechanism`, as of `ChangesQuestion`.
    """
    names = list(values.domains)
    question_keys: dict[str, Any] = {"field": names[0]} if len(names) == 1 else {"fields": names}
    made = Question.make("changes", **question_keys, epsilon=epsilon, steps=values.steps, changes=changes, **keys)
    question = made.bound(Setting("changes", values.domains, _DAY))
    question.check()
    order = rng.permutation(values.n)
    columns = {name: column[:, order] for name, column in values.columns.items()}
    rows = columns[names[0]]
    if len(names) > 1:
        rows = np.empty(rows.shape, dtype=[(name, np.int64) for name in names])
        for name, column in columns.items():
            rows[name] = column
    fleet, horizon, labels = Fleet(ArrayStream(rows), rng), question.released_horizon(), question.labels()
    assert horizon is not None
    assert labels is not None
    for at, release in enumerate(converse(question.protocol(), fleet.answer, steps=values.steps), start=1):
        assert release.ended is not None
        horizon.add(release.ended, at)
    asks = next(question.protocol())
    assert isinstance(asks, list)
    shares = np.array([horizon.stream.views[0].bits(asks[0].view(row)).mean(axis=0) for row in rows])
    return RehearsedChanges(horizon, labels, shares)
