"""A study of itemsets, and people with baskets who answer it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hubbub import Ordinal
from hubbub.core.domain import Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.shared.in_process import Crowd, places_of

START, ROUND, LATENESS = 86_400, 100, 10
ITEMS = 60


def itemsets_collection(
    domain: Sets = Sets(Ordinal(ITEMS), most=12), overrides: Mapping[str, str] = MappingProxyType({}), **keys: Any
) -> Collection:
    row_fields = {"field": "basket", "epsilon": 4.0, "k": 8, "start": "1970-01-02T00:00Z", "round": f"{ROUND}s", **keys}
    return Collection(
        name="baskets",
        version=1,
        title="For tests",
        fields={"basket": domain},
        questions={"together": Question.make("itemsets", **row_fields)},
        budget=Budget.of(event=20.0),
        step_seconds=3600,
        lateness_seconds=LATENESS,
        minimum_batch=20,
        overrides=overrides,
    )


def baskets(n: int) -> ItemSets:
    """Half hold 5, a third of those 9 too; a fifth 20 and 21; and up to five others."""
    rng = np.random.default_rng(11)
    holds = rng.random((n, ITEMS)) < 0.04
    holds[:, 5] = rng.random(n) < 0.5
    holds[:, 9] = holds[:, 5] & (rng.random(n) < 0.33)
    holds[:, 20] = holds[:, 21] = rng.random(n) < 0.2
    holds[holds.sum(axis=1) > 12] = False
    return ItemSets(np.concatenate([[0], np.cumsum(holds.sum(axis=1))]), np.nonzero(holds)[1], domain=ITEMS)


class Shoppers(Crowd):
    """People with a basket each."""

    def __init__(self, n: int, held: ItemSets | None = None) -> None:
        super().__init__(places_of(n), baskets(n) if held is None else held)
