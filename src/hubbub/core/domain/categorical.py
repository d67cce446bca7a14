"""The domain of a list of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import NONE, Domain, check_size
from hubbub.core.errors import InvalidValue


@dataclass(frozen=True)
class Categorical(Domain):
    """A list of names. The code of a name is its position in the list.

    Example:
        >>> Categorical(["red", "green"]).encode(["green", "green", "red"]).tolist()
        [1, 1, 0]
    """

    kind: ClassVar[str] = "categorical"
    names: tuple[str, ...]
    in_order = False

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
            raise InvalidValue("domain", names, "a list of names")
        object.__setattr__(self, "names", tuple(names))
        for name in self.names:
            if not isinstance(name, str):
                raise InvalidValue("domain", name, "names that are strings")
        check_size(len(self.names))
        earlier: set[str] = set()
        for name in self.names:
            if name in earlier:
                raise InvalidValue("domain", name, "names that differ from each other")
            earlier.add(name)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many names there are."""
        return len(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names

    @property
    def listed(self) -> tuple[str, ...]:
        return self.names

    def describe(self) -> str:
        return f"one of {self.size:,} names"

    def check_field(self) -> None:
        if NONE in self.names:
            raise InvalidValue("names", NONE, f"names other than {NONE}, which is added")
        self.symbols()

    def candidate(self, text: str) -> int:
        return self.size if text == NONE else int(self.encode([text])[0])

    def _value(self, code: int) -> str:
        return self.names[code]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.names)}

    def encode(self, values: Any) -> NDArray[np.int64]:
        batch = [values] if isinstance(values, str) else values
        try:
            return np.fromiter((self._codes[value] for value in batch), dtype=np.int64)
        except (KeyError, TypeError) as error:
            wrong = error.args[0] if isinstance(error, KeyError) else values
            few = ", ".join(self.names[:5]) + (", ..." if len(self.names) > 5 else "")
            raise InvalidValue("values", wrong, f"one of {few}") from None
