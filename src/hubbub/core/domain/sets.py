"""The domain of sets of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Domain, as_list
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json


@dataclass(frozen=True)
class Sets(Domain):
    """Sets of at most `most` items of another domain. Each set is encoded as a row of item codes, padded with -1.

    Example:
        >>> from hubbub import Ordinal
        >>> Sets(Ordinal(9), most=3).encode([{1, 2}, set()]).tolist()
        [[1, 2, -1], [-1, -1, -1]]
    """

    kind: ClassVar[str] = "sets"
    items: Domain
    most: int
    size = None

    def __post_init__(self) -> None:
        if isinstance(self.items, Mapping):
            object.__setattr__(self, "items", Domain.from_spec(self.items))
        if not isinstance(self.items, Domain) or self.items.size is None:
            raise InvalidValue("items", self.items, "a domain with a size")
        check_integer("most", self.most, 1, self.items.size)

    def spec(self) -> dict[str, Json]:
        return {"kind": self.kind, "items": self.items.spec(), "most": self.most}

    @property
    def listed(self) -> tuple[str, ...]:
        return self.items.listed

    def describe(self) -> str:
        items = f" {self.items.size:,} names" if self.listed else f": {self.items.describe()}"
        return f"at most {self.most} of{items}"

    def code(self, value: Any) -> tuple[int, ...]:
        return tuple(int(code) for code in self.encode([value])[0] if code >= 0)

    def missing(self) -> tuple[int, ...]:
        return ()

    def examples(self, most: int) -> list[set[Any]]:
        items = self.items.examples(most)
        return [set(items[k : k + self.most]) for k in range(len(items))]

    def encode(self, values: Any) -> NDArray[np.int64]:
        rows = [as_list(members) for members in as_list(values)]
        out = np.full((len(rows), self.most), -1, dtype=np.int64)
        for row, members in enumerate(rows):
            codes = np.unique(self.items.encode(members))
            if codes.size < len(members):
                raise InvalidValue("values", members, "sets without repeats")
            if codes.size > self.most:
                raise InvalidValue("values", members, f"sets of at most {self.most} items")
            out[row, : codes.size] = codes
        return out
