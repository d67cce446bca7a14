"""A small table for examples: simulated people, deterministic but for the noise."""

from __future__ import annotations

import numpy as np

from hubbub.core.domain import Categorical, Ordinal
from hubbub.core.random import Random
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema


def example_table(n: int = 2000, *, method: str = "HIO", epsilon: float = 4.0, seed: int = 1) -> MemoryTable:
    """People of ages 0 to 19 and three towns, whose system and price are public.

    Person k is k mod 20 years old, lives in town k mod 3, and has the system k mod 2 and the price k mod 7.
    """
    schema = TableSchema(
        "people",
        (PrivateColumn("age", Ordinal(20)), PrivateColumn("town", Categorical(["Bath", "Ely", "Rye"]))),
        (PublicColumn("os", "VARCHAR"), PublicColumn("price", "DOUBLE")),
        method=method,
        epsilon=epsilon,
        expected=n if method == "HDG" else None,
    )
    people = np.arange(n)
    reports = schema.mechanism.randomize(np.stack([people % 20, people % 3], axis=1), Random(seed=seed))
    public = {"os": np.array(["ios", "web"])[people % 2].tolist(), "price": (people % 7).astype(float)}
    return MemoryTable(schema, reports, public)
