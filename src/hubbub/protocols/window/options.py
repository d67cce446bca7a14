"""The options of the methods for window streams: which each has, in which range, and what they mean."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hubbub.core.errors import InvalidValue

Value = bool | int | float
_MOST = 1 << 40


class MethodOption(NamedTuple):
    """An option: the type of its value, its range (`most` is None for w), and its meaning."""

    kind: type[Value]
    least: float
    most: float | None
    meaning: str
    open: bool = False
    """Whether the ends are not in the range."""

    def allowed(self, w: int) -> str:
        """The values that are allowed, in words."""
        if self.kind is bool:
            return "true or false"
        most = w if self.most is None else self.most
        number = "an integer" if self.kind is int else "a number"
        if self.open and most < _MOST:
            return f"{number} between {self.least:g} and {most:g}"
        return f"{number} above {self.least:g}" if self.open else f"{number} from {self.least:g} to {most:,g}"

    def holds(self, value: object, w: int) -> bool:
        """Whether a value is allowed."""
        if isinstance(value, bool) or self.kind is bool:
            return isinstance(value, bool) and self.kind is bool
        if not isinstance(value, int if self.kind is int else int | float) or not math.isfinite(value):
            return False
        most = w if self.most is None else self.most
        return self.least < value < most if self.open else self.least <= value <= most


OPTIONS: Mapping[str, MethodOption] = {
    "beta": MethodOption(float, 0, 1, "the part of the window that measures how far the stream has moved", open=True),
    "filtered": MethodOption(bool, 0, 1, "release the mean of a filter over all answers, instead of the last release"),
    "u_min": MethodOption(int, 1, _MOST, "publish only if at least this many people would answer"),
    "publications": MethodOption(int, 1, None, "DSAT's C: the most publications in a window"),
    "threshold": MethodOption(
        float, 0, 20, "DSAT's first threshold, in errors of a publication, which a controller adjusts", open=True
    ),
    "tolerance": MethodOption(
        float, 0, _MOST, "of DSAT: of the rate of publications; of PeGaSus: of a group, in errors of a step", open=True
    ),
    "samples": MethodOption(int, 1, None, "of FAST: the most samples in a window"),
    "scale": MethodOption(float, 0, _MOST, "of RescueDP: how the part of a sample grows with the interval", open=True),
    "most_share": MethodOption(float, 0.001, 1, "of RescueDP: the most of what the window has left for a sample"),
    "most": MethodOption(float, 0.001, 1, "of RescueDP: the most of a window for a sample"),
    "gain": MethodOption(float, 0, _MOST, "of RescueDP and FAST: how fast the interval of samples grows", open=True),
    "target": MethodOption(float, 0, _MOST, "of FAST: the distance at which the interval stays, in errors", open=True),
    "process_variance": MethodOption(
        float, 0, _MOST, "of RescueDP and FAST: the variance of a value's change in a step; learnt unless given"
    ),
}


def accepted(function: Callable[..., object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some options that a function takes."""
    taken = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in taken}


def check_options(method: str, own: tuple[str, ...], w: int, options: Mapping[str, object]) -> None:
    """Refuse options that a method does not have, and values out of range. `own` are the names of its options."""
    for name, value in options.items():
        if name not in own:
            listed = f"those of {method} are {', '.join(own)}" if own else f"{method} has no options"
            raise InvalidValue(name, value, f"nothing: {listed}")
        if not OPTIONS[name].holds(value, w):
            raise InvalidValue(name, value, OPTIONS[name].allowed(w))
