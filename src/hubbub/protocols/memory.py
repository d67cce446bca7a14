"""The state that a protocol carries from one step to the next, as JSON, so that it can stop and be resumed later."""

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.spec import Json

Part = TypeVar("Part")
_ESTIMATE = "estimate"


class Memory:
    """The objects that hold a protocol's state between steps. A generator cannot be stored; they can, as JSON.

    A protocol registers each such object (a part) with `keep`. Right after a release, `state` is all that later steps
    depend on: a protocol made with `Memory(state)` goes on exactly as the first would have done.

    `state`: the `state` of an earlier memory, to resume from; None to begin anew.
    """

    def __init__(self, state: Mapping[str, Json] | None = None) -> None:
        self._saved = None if state is None else dict(state)
        self._parts: dict[str, object] = {}

    def keep(self, name: str, part: Part) -> Part:
        """Register a part under a name, and restore it if this memory was made from a state; return the part.

        The stored attributes are those that its class names in `remembered`; of a dataclass, its fields.
        """
        if name in self._parts:
            raise InvalidValue("part", name, "a name that is not taken")
        if self._saved is not None:
            if name not in self._saved:
                raise InvalidValue("state", sorted(self._saved), f"one with a part {name}")
            _recall(part, self._saved.pop(name))
        self._parts[name] = part
        return part

    def __getitem__(self, name: str) -> Any:
        """The part that is registered under a name."""
        return self._parts[name]

    def state(self) -> dict[str, Json]:
        """All parts, as JSON; floats come back bit for bit."""
        if self._saved:
            raise InvalidValue("state", sorted(self._saved), "only parts that the protocol has")
        return {name: _plain(part) for name, part in self._parts.items()}


def _attributes(part: object) -> tuple[str, ...] | None:
    """The names of the attributes of a part that are stored."""
    names: tuple[str, ...] | None = getattr(part, "remembered", None)
    if names is None and is_dataclass(part):
        names = tuple(field.name for field in fields(part))
    return names


def _plain(value: Any) -> Json:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, np.ndarray):
        return cast(Json, value.tolist())
    if isinstance(value, list | tuple | deque):
        return [_plain(item) for item in value]
    if isinstance(value, Estimate):
        # `bounds` are only for display, and no protocol compares estimates by the reports that they rest on.
        left_out = ("bounds", "noise", "reports", "origin")
        names = [field.name for field in fields(value) if field.name not in left_out]
        noise = None if value.noise is None else value.noise.moments()
        return {_ESTIMATE: {**{name: _plain(getattr(value, name)) for name in names}, "noise": noise}}
    attributes = _attributes(value)
    if attributes is None:
        raise InvalidValue("part", type(value).__name__, "a dataclass, or a class with `remembered`")
    return {name: _plain(getattr(value, name)) for name in attributes}


def _recall(part: object, state: Json) -> None:
    """Set the attributes of a part to those of a state."""
    names = _attributes(part)
    if names is None or not isinstance(state, dict) or set(state) != set(names):
        raise InvalidValue("state", state, f"exactly {', '.join(names or ())}")
    for name in names:
        present, stored = getattr(part, name), state[name]
        if isinstance(stored, dict) and set(stored) == {_ESTIMATE}:
            setattr(part, name, _estimate(stored[_ESTIMATE]))
        elif isinstance(stored, dict):
            _recall(present, stored)
        elif isinstance(present, np.ndarray):
            setattr(part, name, np.array(stored, dtype=present.dtype))
        elif isinstance(present, deque):
            setattr(part, name, deque(cast(list[Any], stored), maxlen=present.maxlen))
        else:
            setattr(part, name, stored)


def _estimate(state: Json) -> Estimate:
    fields: dict[str, Any] = dict(cast(dict[str, Any], state))
    fields["noise"] = None if fields["noise"] is None else Noise(**fields["noise"])
    fields["labels"] = None if fields["labels"] is None else tuple(fields["labels"])
    return Estimate(**fields)
