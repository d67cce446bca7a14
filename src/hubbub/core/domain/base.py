"""The contract of every domain (codes, "nothing was recorded", labels), and the domains of integers and of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Array, Ints
from hubbub.core.spec import Json

MOST_CODES = 1 << 32
MOST_LABELS = 1 << 12

NONE = "(none)"
"""The last symbol of a categorical or ordinal field: nothing was recorded."""

Code: TypeAlias = int | float | str | tuple[int, ...] | tuple[tuple[int, float], ...]
"""What a device stores of a recorded value: an integer (categorical, ordinal), a number (numeric), a text (strings),
sorted integers (sets), or pairs of key and number (keyvalue)."""


class Values(Protocol):
    """A batch of what people answer, one value per person: a list, an array, `ItemSets`, a batch of ternary vectors."""

    def __len__(self) -> int: ...

    def __getitem__(self, people: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class Domain:
    """A set of values. `encode` turns values into integer codes and refuses any other.

    A collection's fields are domains too. `code` is what a device stores of one recorded value. `missing` is what the
    device answers with where nothing was recorded: staying silent would reveal that.
    """

    kind: ClassVar[str]
    """The name of the domain's class in specs and collection files."""
    size: int | None
    """How many codes there are; None where the domain is open."""
    in_order: ClassVar[bool] = True
    """Whether the codes have an order of their own; otherwise results are shown by size."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """A name for each code, where there are names."""
        return None

    def encode(self, values: Values) -> Array:
        """The codes of a batch of values; one value is a batch of one."""
        raise NotImplementedError

    @property
    def listed(self) -> tuple[str, ...]:
        """The names that `describe` counts without listing them."""
        return ()

    def describe(self) -> str:
        """The values, described in one line.

        Example:
            >>> from hubbub import Categorical, Ordinal, Sets
            >>> Ordinal(10).describe(), Categorical(["a", "b"]).describe(), Sets(Ordinal(9), most=3).describe()
            ('0 to 9', 'one of 2 names', 'at most 3 of: 0 to 8')
        """
        raise NotImplementedError

    def check_field(self) -> None:
        """Refuse a domain that has no free code for "nothing was recorded"."""

    def code(self, value: Any) -> Code:
        """What a device stores of a recorded value. Values outside the domain are refused; numbers are clipped."""
        if isinstance(value, bool):
            raise InvalidValue("value", value, "one of the field's values")
        return int(self.encode([value])[0])

    def candidate(self, text: str) -> int | str:
        """The symbol that a text means: the code of a name, a code in digits, or, in an open domain, the text."""
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InvalidValue("candidate", text, "the code of a value")
        return int(text)

    def missing(self) -> Code:
        """The code of "nothing was recorded": "(none)", the lower end of a range, the empty text or set."""
        return self.symbols().size - 1

    def absent(self) -> Code | None:
        """The code of "nothing was recorded" in a record of several fields; None where `missing` is a valid value."""
        return self.missing()

    def symbols(self) -> Ordinal:
        """The codes of a field with a size: one for each value, and a last one for "nothing was recorded"."""
        assert self.size is not None
        return Ordinal(self.size + 1)

    def symbol_labels(self) -> tuple[str, ...] | None:
        """A name for each symbol of a field, "(none)" last; None where symbols have no names or are too many."""
        labels = self.labels
        return labels if labels is None or self.size is None else (*labels, NONE)

    def examples(self, most: int) -> list[Any]:
        """At most `most` different values, the first and the last among them; all values if they are that few."""
        assert self.size is not None
        count = min(most, self.size)
        codes = [round(k * (self.size - 1) / max(count - 1, 1)) for k in range(count)]
        return [self._value(code) for code in codes]

    def _value(self, code: int) -> Any:
        return code

    def spec(self) -> dict[str, Json]:
        return {"kind": self.kind, **{key: _plain(value) for key, value in asdict(self).items()}}  # type: ignore[call-overload]

    @staticmethod
    def from_spec(spec: object) -> Domain:
        """Read a domain back.

        Example:
            >>> Domain.from_spec({"kind": "categorical", "names": ["a", "b"]})
            Categorical(names=('a', 'b'))
        """
        from hubbub.core.domain import DOMAINS

        name = spec.get("kind") if isinstance(spec, Mapping) else None
        if not isinstance(spec, Mapping) or not isinstance(name, str) or name not in DOMAINS:
            raise InvalidValue("domain", spec, f"an object whose kind is one of {', '.join(DOMAINS)}")
        domain_class = DOMAINS[name]
        keys = {key: value for key, value in spec.items() if key != "kind"}
        expected = {field.name for field in fields(domain_class)}  # type: ignore[arg-type]
        if set(keys) != expected:
            raise InvalidValue("domain", sorted(keys), f"exactly the fields {sorted(expected)}")
        return domain_class(**keys)


def as_domain(field: str, value: object) -> Domain:
    """Read the shorthand: an integer is `Ordinal`, a list of names `Categorical`, a mapping a spec."""
    from hubbub.core.domain import DOMAINS

    if isinstance(value, Domain):
        return value
    if isinstance(value, Mapping):
        return Domain.from_spec(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return DOMAINS["ordinal"](int(value))  # type: ignore[call-arg]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return DOMAINS["categorical"](value)  # type: ignore[call-arg]
    raise InvalidValue(field, value, "a size of at least 2, a list of names, or a Domain")


def as_array(values: Values) -> Array:
    """A batch of values as an array; a single value is a batch of one."""
    try:
        return np.atleast_1d(np.asarray(values))
    except ValueError:  # rows of different lengths
        raise InvalidValue("values", values, "a one-dimensional batch") from None


def as_list(values: Values) -> list[Any]:
    """A batch of values as a list; a text or a mapping is not a batch."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidValue("values", values, "a batch: a list, an array or the like")
    return list(values)


def check_size(size: object) -> None:
    """Refuse a number of codes that no domain may have."""
    check_integer("domain", size, 2, MOST_CODES)


def _plain(value: object) -> Json:
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value  # type: ignore[return-value]


@dataclass(frozen=True)
class Ordinal(Domain):
    """The integers 0 to size-1.

    Example:
        >>> Ordinal(4).encode([0, 3]).tolist()
        [0, 3]
    """

    kind: ClassVar[str] = "ordinal"
    size: int

    def __post_init__(self) -> None:
        check_size(self.size)

    def describe(self) -> str:
        return f"0 to {self.size - 1:,}"

    def check_field(self) -> None:
        self.symbols()

    def symbol_labels(self) -> tuple[str, ...] | None:
        return (*map(str, range(self.size)), NONE) if self.size <= MOST_LABELS else None

    def encode(self, values: Values) -> Ints:
        codes = as_array(values)
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

    def encode(self, values: Values) -> Ints:
        batch = [values] if isinstance(values, str) else values
        try:
            return np.fromiter((self._codes[value] for value in batch), dtype=np.int64)
        except (KeyError, TypeError) as error:
            wrong = error.args[0] if isinstance(error, KeyError) else values
            few = ", ".join(self.names[:5]) + (", ..." if len(self.names) > 5 else "")
            raise InvalidValue("values", wrong, f"one of {few}") from None
