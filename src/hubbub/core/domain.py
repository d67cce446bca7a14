"""Domains: what values may be, and the integer codes that mechanisms see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.hashing import fingerprint
from hubbub.core.spec import Json

LARGEST = 1 << 32
MOST_CELLS = 1 << 20
WORDS = 24
"""How many words stand for an open domain."""
_MOST_NUMBER = 1e300  # the width of a domain must be a float too

NONE = "(none)"
"""The last symbol of a categorical or ordinal field: nothing was recorded."""
MOST_LABELS = 1 << 12

Code: TypeAlias = int | float | str | tuple[int, ...] | tuple[tuple[int, float], ...]
"""An integer (categorical, ordinal), a number (numeric), a text (strings), sorted integers (sets), pairs (keyvalue)."""


class Domain:
    """A set of values. `encode` turns values into integer codes and refuses any other.

    A collection's fields are domains too: `code` is what a device keeps of one recorded value, and `missing` what it
    answers with where nothing was recorded, because silence would tell something.
    """

    kinds: ClassVar[dict[str, type[Domain]]] = {}
    size: int | None
    """How many codes there are; None where the domain is open."""
    in_order: ClassVar[bool] = True
    """Whether the codes have an order of their own; otherwise results are shown by size."""

    def __init_subclass__(cls) -> None:
        Domain.kinds[cls.__name__.lower()] = cls

    @property
    def labels(self) -> tuple[str, ...] | None:
        """A name for each code, where there are names."""
        return None

    def encode(self, values: Any) -> NDArray[Any]:
        """The codes of a batch of values; one value is a batch of one."""
        raise NotImplementedError

    @property
    def listed(self) -> tuple[str, ...]:
        """The names that `describe` counts and does not spell out."""
        return ()

    def describe(self) -> str:
        """The values in a line.

        Example:
            >>> Ordinal(10).describe(), Categorical(["a", "b"]).describe(), Sets(Ordinal(9), most=3).describe()
            ('0 to 9', 'one of 2 names', 'at most 3 of: 0 to 8')
        """
        raise NotImplementedError

    def check_field(self) -> None:
        """Refuse a domain that leaves a field no room for "nothing was recorded".

        Example:
            >>> Categorical(["yes", "(none)"]).check_field()
            Traceback (most recent call last):
                ...
            hubbub.core.errors.InvalidValue: names: got '(none)'; allowed: names other than (none), which is added
        """

    def code(self, value: Any) -> Code:
        """What is kept of a recorded value; one that the field does not have is refused, a number is clipped later.

        Example:
            >>> Categorical(["yes", "no"]).code("no"), Numeric(0, 9, cells=3).code(12), Sets(Ordinal(9), 3).code({7, 2})
            (1, 12.0, (2, 7))
        """
        if isinstance(value, bool):
            raise InvalidValue("value", value, "one of the field's values")
        return int(self.encode([value])[0])

    def candidate(self, text: str) -> int | str:
        """The symbol that a text names: a name, the number of a value, or the text itself where all are allowed.

        Example:
            >>> Categorical(["yes", "no"]).candidate("no"), Ordinal(9).candidate("7"), Strings(9).candidate("maybe")
            (1, 7, 'maybe')
        """
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InvalidValue("candidate", text, "the code of a value")
        return int(text)

    def missing(self) -> Code:
        """What stands for a field that nothing was recorded for: "(none)", the lower end, the empty text or set.

        Example:
            >>> Categorical(["yes", "no"]).missing(), Numeric(5, 9, cells=3).missing(), Strings(9).missing()
            (2, 5.0, '')
        """
        return self.symbols().size - 1

    def absent(self) -> Code | None:
        """What stands for it in a record of several fields: None where `missing` is a number like any other.

        Example:
            >>> Categorical(["yes", "no"]).absent(), Numeric(5, 9, cells=3).absent()
            (2, None)
        """
        return self.missing()

    def symbols(self) -> Ordinal:
        """The codes of a field with a size: one more than it has values, for "nothing was recorded".

        Example:
            >>> Categorical(["yes", "no"]).symbols()
            Ordinal(size=3)
        """
        assert self.size is not None
        return Ordinal(self.size + 1)

    def symbol_labels(self) -> tuple[str, ...] | None:
        """A name for each symbol of a field, "(none)" last; None where there are too many or too few to name.

        Example:
            >>> Categorical(["yes", "no"]).symbol_labels(), Ordinal(2).symbol_labels()
            (('yes', 'no', '(none)'), ('0', '1', '(none)'))
        """
        return self.labels

    def examples(self, most: int) -> list[Any]:
        """At most so many different values, the first and the last among them: all of them if they fit.

        Example:
            >>> Ordinal(100).examples(3), Categorical(["a", "b"]).examples(9)
            ([0, 50, 99], ['a', 'b'])
        """
        assert self.size is not None
        count = min(most, self.size)
        codes = [round(k * (self.size - 1) / max(count - 1, 1)) for k in range(count)]
        return [self._value(code) for code in codes]

    def _value(self, code: int) -> Any:
        """A value with this code."""
        return code

    def spec(self) -> dict[str, Json]:
        """The domain as JSON.

        Example:
            >>> Ordinal(3).spec()
            {'kind': 'ordinal', 'size': 3}
        """
        return {"kind": type(self).__name__.lower(), **{key: _plain(value) for key, value in asdict(self).items()}}  # type: ignore[call-overload]

    @staticmethod
    def from_spec(spec: object) -> Domain:
        """Read a domain back.

        Example:
            >>> Domain.from_spec({"kind": "categorical", "names": ["a", "b"]})
            Categorical(names=('a', 'b'))
        """
        if not isinstance(spec, Mapping) or spec.get("kind") not in tuple(Domain.kinds):  # hostile kinds have no hash
            raise InvalidValue("domain", spec, f"an object whose kind is one of {', '.join(Domain.kinds)}")
        kind = Domain.kinds[str(spec["kind"])]
        given = {key: value for key, value in spec.items() if key != "kind"}
        known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        if set(given) != known:
            raise InvalidValue("domain", sorted(given), f"exactly the fields {sorted(known)}")
        if "items" in given:
            given["items"] = Domain.from_spec(given["items"])
        return kind(**given)


@dataclass(frozen=True)
class Ordinal(Domain):
    """The integers 0 to size-1.

    Example:
        >>> Ordinal(4).encode([0, 3]).tolist()
        [0, 3]
    """

    size: int

    def __post_init__(self) -> None:
        _check_size("domain", self.size)

    def describe(self) -> str:
        return f"0 to {self.size - 1:,}"

    def check_field(self) -> None:
        self.symbols()

    def symbol_labels(self) -> tuple[str, ...] | None:
        return (*map(str, range(self.size)), NONE) if self.size <= MOST_LABELS else None

    def encode(self, values: Any) -> NDArray[np.int64]:
        codes = _batch(values)
        if codes.size == 0:
            return np.empty(0, dtype=np.int64)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InvalidValue("values", values, "a one-dimensional batch of integers")
        outside = (codes < 0) | (codes >= self.size)
        if outside.any():
            raise InvalidValue("values", codes[outside][0].item(), f"integers from 0 to {self.size - 1}")
        return codes.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Categorical(Domain):
    """A list of names.

    Example:
        >>> Categorical(["red", "green"]).encode(["green", "green", "red"]).tolist()
        [1, 1, 0]
    """

    names: tuple[str, ...]
    in_order = False

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
            raise InvalidValue("domain", names, "a list of names")
        object.__setattr__(self, "names", tuple(names))
        for name in self.names:
            if not isinstance(name, str):
                raise InvalidValue("domain", name, "names that are strings")
        _check_size("domain", len(self.names))
        if len(set(self.names)) < len(self.names):
            seen: set[str] = set()
            twice = next(name for name in self.names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise InvalidValue("domain", twice, "names that differ from each other")

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

    def symbol_labels(self) -> tuple[str, ...]:
        return (*self.names, NONE)

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


@dataclass(frozen=True)
class Numeric(Domain):
    """Numbers from low to high, seen as equal cells.

    Example:
        >>> Numeric(0.0, 10.0, cells=5).encode([0.0, 1.9, 2.0, 10.0]).tolist()
        [0, 0, 1, 4]
    """

    low: float
    high: float
    cells: int

    def __post_init__(self) -> None:
        for field in ("low", "high"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST_NUMBER:
                raise InvalidValue(field, value, f"a number of at most {_MOST_NUMBER:g}")
            object.__setattr__(
                self, field, float(value)
            )  # JSON does not tell 1e17 from an integer; the spec's id would
        if not self.low < self.high:
            raise InvalidValue("high", self.high, f"a number above low = {self.low}")
        check_integer("cells", self.cells, 2, MOST_CELLS)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return self.cells

    @property
    def edges(self) -> NDArray[np.float64]:
        """The borders of the cells.

        Example:
            >>> Numeric(0, 1, cells=4).edges.tolist()
            [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        return np.linspace(self.low, self.high, self.cells + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        edges = self.edges
        return tuple(f"{a:g} to {b:g}" for a, b in pairwise(edges))

    def describe(self) -> str:
        return f"{self.low:g} to {self.high:g}, in {self.cells:,} cells"

    def code(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InvalidValue("value", value, "a finite number")
        return float(value)

    def missing(self) -> float:
        return self.low

    def absent(self) -> None:
        return None

    def _value(self, code: int) -> float:
        width = (self.high - self.low) / self.cells
        return self.low + (code + 0.5) * width

    def encode(self, values: Any) -> NDArray[np.int64]:
        numbers = _batch(values)
        if numbers.size == 0:
            return np.empty(0, dtype=np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
            raise InvalidValue("values", values, "a one-dimensional batch of numbers")
        outside = ~((numbers >= self.low) & (numbers <= self.high))
        if outside.any():
            raise InvalidValue("values", numbers[outside][0].item(), f"numbers from {self.low} to {self.high}")
        cells = np.searchsorted(self.edges, numbers, side="right") - 1
        return np.minimum(cells, self.cells - 1).astype(np.int64)


@dataclass(frozen=True)
class Strings(Domain):
    """Any text of at most `longest` UTF-8 bytes: an open domain, seen through 64-bit fingerprints.

    Example:
        >>> Strings(longest=16).encode(["hello"]).tolist() == [fingerprint("hello")]
        True
    """

    longest: int
    size = None
    in_order = False

    def __post_init__(self) -> None:
        check_integer("longest", self.longest, 1, 1 << 20)

    def describe(self) -> str:
        return f"texts of at most {self.longest} bytes"

    def code(self, value: Any) -> str:
        self.encode([value])
        return str(value)

    def missing(self) -> str:
        return ""

    def candidate(self, text: str) -> str:
        return text

    def examples(self, most: int) -> list[str]:
        return list(dict.fromkeys(f"{k}word"[: self.longest] for k in range(min(most, WORDS))))

    def encode(self, values: Any) -> NDArray[np.uint64]:
        batch = [values] if isinstance(values, str) else _items(values)
        for value in batch:
            if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
                raise InvalidValue("values", value, "strings of whole characters")
            if len(value.encode()) > self.longest:
                raise InvalidValue("values", value, f"strings of at most {self.longest} bytes")
        return np.fromiter((fingerprint(value) for value in batch), dtype=np.uint64, count=len(batch))


@dataclass(frozen=True)
class Sets(Domain):
    """Sets of at most `most` items of another domain. A batch is an array padded with -1.

    Example:
        >>> Sets(Ordinal(9), most=3).encode([{1, 2}, set()]).tolist()
        [[1, 2, -1], [-1, -1, -1]]
    """

    items: Domain
    most: int
    size = None

    def __post_init__(self) -> None:
        if not isinstance(self.items, Domain) or self.items.size is None:
            raise InvalidValue("items", self.items, "a domain with a size")
        check_integer("most", self.most, 1, self.items.size)

    def spec(self) -> dict[str, Json]:
        return {"kind": "sets", "items": self.items.spec(), "most": self.most}

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
        rows = [_items(members) for members in _items(values)]
        out = np.full((len(rows), self.most), -1, dtype=np.int64)
        for row, members in enumerate(rows):
            codes = np.unique(self.items.encode(members))
            if codes.size < len(members):
                raise InvalidValue("values", members, "sets without repeats")
            if codes.size > self.most:
                raise InvalidValue("values", members, f"sets of at most {self.most} items")
            out[row, : codes.size] = codes
        return out


def as_domain(field: str, value: object) -> Domain:
    """Read the shorthand: an integer is `Ordinal`, a list of names `Categorical`, a mapping a spec.

    Example:
        >>> as_domain("domain", 5), as_domain("domain", ["a", "b"])
        (Ordinal(size=5), Categorical(names=('a', 'b')))
    """
    if isinstance(value, Domain):
        return value
    if isinstance(value, Mapping):
        return Domain.from_spec(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Ordinal(int(value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return Categorical(value)
    raise InvalidValue(field, value, "a size of at least 2, a list of names, or a Domain")


def _batch(values: Any) -> NDArray[Any]:
    try:
        return np.atleast_1d(np.asarray(values))
    except ValueError:  # rows of different lengths
        raise InvalidValue("values", values, "a one-dimensional batch") from None


def _items(values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidValue("values", values, "a batch: a list, an array or the like")
    return list(values)


def _check_size(field: str, size: object) -> None:
    check_integer(field, size, 2, LARGEST)


def _plain(value: object) -> Json:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value  # type: ignore[return-value]
