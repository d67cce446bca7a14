"""Small tables of people for the tests of queries."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.core.domain import Domain
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

TYPES = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", date: "DATE", datetime: "TIMESTAMP"}
Public = Mapping[str, Sequence[Any]]


def schema_of(private: Mapping[str, Domain], public: Public, people: int, **settings: Any) -> TableSchema:
    """The table called people with these columns; a public one has the type of its first value."""
    firsts = {name: next(value for value in values if value is not None) for name, values in public.items()}
    return TableSchema(
        "people",
        tuple(PrivateColumn(name, domain) for name, domain in private.items()),
        tuple(PublicColumn(name, TYPES[type(first)]) for name, first in firsts.items()),
        expected=people if "HDG" in settings.get("methods", ()) else None,
        **settings,
    )


def table_of(
    private: Mapping[str, Domain], codes: Sequence[Any], public: Public, *, seed: int = 1, **settings: Any
) -> MemoryTable:
    """People with the codes of each private column, and public values."""
    records = np.stack([np.asarray(column, dtype=np.int64) for column in codes], axis=1)
    schema = schema_of(private, public, len(records), **settings)
    return MemoryTable(schema, schema.randomize(records, hb.Random(seed=seed)), public)
