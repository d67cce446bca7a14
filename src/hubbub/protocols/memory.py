"""What a protocol carries from one step to the next, in a form that can be stored: it stops here and goes on there."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.spec import Json

Part = TypeVar("Part")
_ESTIMATE = "estimate"


class Memory:
    """The parts of a protocol that outlive a step. A generator cannot be stored; these can, as JSON.

    A protocol gives every such part to `keep`. Right after a release, `state` is all that its next steps depend on:
    a protocol that is made with `Memory(state)` says from there on exactly what the first would have said.

    Parameters
    ----------
    state
        What another memory's `state` was; None begins anew.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.driver import converse
        >>> from hubbub.protocols.window import Frequencies, window_stream
        >>> def answer(ask):
        ...     return ask.mechanism.accumulate(ask.mechanism.randomize([0, 1, 1] * 200, Random(seed=ask.step)))
        >>> def stream(memory):
        ...     return window_stream("LBA", Frequencies(2), epsilon=4.0, w=3, memory=memory)
        >>> memory = Memory()
        >>> whole = converse(stream(memory), answer, steps=9)
        >>> release = [next(whole) for _ in range(5)][-1]
        >>> rest = converse(stream(Memory(memory.state())), answer, steps=4)
        >>> all(np.array_equal(a.estimate.value, b.estimate.value) for a, b in zip(whole, rest, strict=True))
        True
    """

    def __init__(self, state: Mapping[str, Json] | None = None) -> None:
        self._saved = None if state is None else dict(state)
        self._parts: dict[str, object] = {}

    def keep(self, name: str, part: Part) -> Part:
        """Remember a part, which goes on where it was if this memory has a state.

        What is remembered of it are the attributes that its class names in `remembered`; of a dataclass, its fields.

        Example:
            >>> from hubbub.protocols.cohort import Pointer
            >>> Memory({"pointer": {"at": 7}}).keep("pointer", Pointer()).at
            7
        """
        if name in self._parts:
            raise InvalidValue("part", name, "a name that is not taken")
        if self._saved is not None:
            if name not in self._saved:
                raise InvalidValue("state", sorted(self._saved), f"one with a part {name}")
            _recall(part, self._saved.pop(name))
        self._parts[name] = part
        return part

    def state(self) -> dict[str, Json]:
        """All parts, as JSON; floats come back bit for bit."""
        if self._saved:
            raise InvalidValue("state", sorted(self._saved), "only parts that the protocol has")
        return {name: _plain(part) for name, part in self._parts.items()}


def _names(part: object) -> tuple[str, ...] | None:
    named: tuple[str, ...] | None = getattr(part, "remembered", None)
    if named is None and is_dataclass(part):
        named = tuple(field.name for field in fields(part))
    return named


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
        # Without what is only shown, and without what Noise did not have at first where it says nothing.
        inside = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "bounds"}
        noise = None if value.noise is None else asdict(value.noise)
        for name, nothing in (("square", 0.0), ("pairs", True)):
            if noise is not None and noise[name] == nothing:
                del noise[name]
        return {_ESTIMATE: {**{name: _plain(part) for name, part in inside.items() if name != "noise"}, "noise": noise}}
    names = _names(value)
    if names is None:
        raise InvalidValue("part", type(value).__name__, "a class that says what is remembered of it")
    return {name: _plain(getattr(value, name)) for name in names}


def _recall(part: object, state: Json) -> None:
    """Put a part back to where it was, in place."""
    names = _names(part)
    if names is None or not isinstance(state, dict) or set(state) != set(names):
        raise InvalidValue("state", state, f"exactly {', '.join(names or ())}")
    for name in names:
        now, then = getattr(part, name), state[name]
        if isinstance(then, dict) and set(then) == {_ESTIMATE}:
            setattr(part, name, _estimate(then[_ESTIMATE]))
        elif isinstance(then, dict):
            _recall(now, then)
        elif isinstance(now, np.ndarray):
            setattr(part, name, np.array(then, dtype=now.dtype))
        elif isinstance(now, deque):
            setattr(part, name, deque(cast(list[Any], then), maxlen=now.maxlen))
        else:
            setattr(part, name, then)


def _estimate(state: Json) -> Estimate:
    given: dict[str, Any] = dict(cast(dict[str, Any], state))
    given["noise"] = None if given["noise"] is None else Noise(**given["noise"])
    given["labels"] = None if given["labels"] is None else tuple(given["labels"])
    return Estimate(**given)
