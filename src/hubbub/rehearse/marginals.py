"""A rehearsal of marginals: records read from a file, and what a collection about them would have released."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.consistency.marginals import true_table
from hubbub.core.domain import Categorical, Domain, Numeric, Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Floats
from hubbub.protocols.driver import converse
from hubbub.protocols.marginals.field_marginals import FieldMarginals
from hubbub.protocols.marginals.plan import THETA
from hubbub.questions import Question, Setting
from hubbub.questions.breakdown import group_axis
from hubbub.random.source import Random
from hubbub.rehearse.columns import MISSING, number_of, read_column
from hubbub.simulate.devices import ArrayStream
from hubbub.simulate.fleet import Fleet

_DAY = 86400


@dataclass(frozen=True, eq=False)
class FieldRecords:
    """The records of people: the domain of each field, and everybody's value as a device stores it.

    `domains`: by the name of the field. `columns`: codes, or numbers of numeric fields (NaN where nothing was
    recorded), in the order of the people.
    """

    domains: Mapping[str, Domain]
    columns: Mapping[str, Array]

    @staticmethod
    def of(values: Mapping[str, Values], domains: Mapping[str, Domain] | None = None) -> FieldRecords:
        """Records from the values of each field; None is a value that was not recorded.

        Fields without a domain have the names that occur in them.
        """
        known, columns = dict(domains or {}), {}
        for name, given in values.items():
            rows = list(given)
            here = np.array([value is not None and value == value for value in rows], dtype=bool)
            present = [value for value, there in zip(rows, here, strict=True) if there]
            if name not in known:
                present = list(map(str, present))
                known[name] = names_in(name, sorted(set(present)))
            columns[name] = _stored(name, known[name], present, here)
        if len({len(column) for column in columns.values()}) != 1 or not len(next(iter(columns.values()))):
            raise InvalidValue("records", {name: len(column) for name, column in columns.items()}, "as many values of "
                               "each field, at least one")  # fmt: skip
        return FieldRecords({name: known[name] for name in columns}, columns)

    @property
    def n(self) -> int:
        """How many people there are."""
        return len(next(iter(self.columns.values())))

    def truth(self, fields: Sequence[str]) -> Floats:
        """The true shares of all combinations of values of some fields, in the order of a release."""
        axes = [group_axis(domain, name, "fields") for name, domain in self.domains.items() if name in fields]
        codes = np.stack([axis.place(self.columns[axis.field]) for axis in axes], axis=1)
        return true_table(codes, range(len(axes)), [axis.size for axis in axes]).ravel()


def names_in(name: str, texts: list[str]) -> Categorical:
    """The domain of the texts in a column."""
    try:
        return Categorical(texts)
    except InvalidValue as error:
        raise InvalidValue(name, f"{len(texts)} different values", error.allowed) from None


def _stored(name: str, domain: Domain, present: list[Any], here: Array) -> Array:
    """The column as devices store it."""
    numeric = isinstance(domain, Numeric)
    if domain.size is None:
        raise InvalidValue(name, domain.describe(), "a categorical, ordinal or numeric field")
    column = np.full(len(here), math.nan if numeric else domain.size, dtype=np.float64 if numeric else np.int64)
    try:
        column[here] = [float(value) for value in present] if numeric else domain.encode(present)
    except (InvalidValue, ValueError) as error:
        raise InvalidValue(name, getattr(error, "value", present[:1]), domain.describe()) from None
    return column


def read_records(path: Path, fields: Mapping[str, Domain | None]) -> FieldRecords:
    """Read the records of a CSV, TSV, JSON lines or Parquet file.

    `fields`: the columns, and the domain of each; None takes the names that are in the column.
    """
    values: dict[str, Values] = {}
    for name, domain in fields.items():
        labels, codes, _ = read_column(path, name)
        texts = [None if label == MISSING else label for label in labels]
        given = texts if domain is None or isinstance(domain, Categorical) else list(map(_number, texts))
        values[name] = np.array([*given, None], dtype=object)[:-1][codes]
    return FieldRecords.of(values, {name: domain for name, domain in fields.items() if domain is not None})


def _number(text: str | None) -> float | int | str | None:
    """The number of a text; the text itself where it is none, which the domain then refuses."""
    number = math.nan if text is None else number_of(text)
    return text if math.isnan(number) else int(number) if number.is_integer() else number


def rehearse_marginals(
    records: FieldRecords | Mapping[str, Values],
    *,
    epsilon: float,
    rng: Random,
    marginals: str | Sequence[str] = "pairs",
    theta: float = THETA,
    oracle: str = "adaptive",
) -> FieldMarginals:
    """What a marginals question would have released: each person answers once, as on their device.

    `epsilon`, `marginals`, `theta`, `oracle`: as of `MarginalsQuestion`, whose `people` is the number of records.
    """
    people = records if isinstance(records, FieldRecords) else FieldRecords.of(records)
    keys: dict[str, Any] = {"fields": list(people.domains), "epsilon": epsilon, "people": people.n}
    keys |= {"marginals": marginals if isinstance(marginals, str) else list(marginals), "theta": theta}
    question = Question.make("marginals", **keys, oracle=oracle).bound(Setting("marginals", people.domains, _DAY))
    question.check()
    rows = np.empty((1, people.n), dtype=[(name, column.dtype) for name, column in people.columns.items()])
    order = rng.permutation(people.n)
    for name, column in people.columns.items():
        rows[name][0] = column[order]
    fleet = Fleet(ArrayStream(rows), rng, first=1)
    release = next(converse(question.protocol(), fleet.answer, steps=1))
    released = question.released_marginals(release.estimates)
    assert released is not None
    return released
