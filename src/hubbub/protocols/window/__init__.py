"""w-event streams: any w consecutive steps spend at most epsilon (LDP-IDS)."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hubbub.core.errors import InvalidValue
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Frequencies, Means, Statistic
from hubbub.protocols.window.division import BudgetDivision, Division, PopulationDivision
from hubbub.protocols.window.earlier_methods import (
    dsat,
    dsat_parts,
    fast,
    fast_parts,
    pegasus,
    pegasus_parts,
    rescue,
    rescue_parts,
)
from hubbub.protocols.window.ldp_ids import (
    absorption,
    absorption_parts,
    distribution,
    distribution_parts,
    sampling,
    sampling_parts,
    uniform,
    uniform_parts,
)

__all__ = [
    "METHODS",
    "OPTIONS",
    "BudgetDivision",
    "Division",
    "Frequencies",
    "Means",
    "Method",
    "PopulationDivision",
    "Statistic",
    "asked_parts",
    "check_options",
    "epsilons",
    "find_method",
    "window_stream",
]


class Decision(NamedTuple):
    """How a method decides at each step whether to publish, and facts about it.

    Parameters
    ----------
    decide, parts
        The generator of the method over a division, and the numbers of parts that its asks can take.
    rounds
        The most asks in a step.
    takes
        The part of a window of w steps that a publication is meant to take, with the options of the method.
    publishes
        The publication that `takes` is about.
    compared_with_lpu
        How the method compares with LPU if both divide the population, measured on streams that no choice was made on.
    even
        Whether every step takes the same part of the window.
    by_schedule
        Whether the steps that publish, and their parts, do not depend on answers.
    shrinking
        A note for methods whose arcs get smaller from publication to publication; empty for others.
    """

    decide: Callable[..., Protocol]
    parts: Callable[..., tuple[int, ...]]
    rounds: int
    takes: Callable[..., float]
    publishes: str
    compared_with_lpu: str
    even: bool = False
    by_schedule: bool = False
    shrinking: str = ""


class Method(NamedTuple):
    """A method of the paper: how it decides, what it divides, and the version of its arithmetic.

    The version rises with every change of what the method asks, releases or remembers. A collector then begins a new
    era instead of going on from stored numbers that this version would not have computed.
    """

    decision: Decision
    division: type[Division]
    arithmetic: int = 1

    @property
    def decide(self) -> Callable[..., Protocol]:
        """The generator of its asks and releases, over a division."""
        return self.decision.decide

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options, in `OPTIONS`."""
        named = accepted(self.decide, OPTIONS)
        return tuple(name for name in named if name != "u_min" or not self.everyone)

    @property
    def advice(self) -> str:
        """How the method compares with LPU, which has the least error on most streams that change."""
        return "LPU, of the population, errs far less" if self.everyone else self.decision.compared_with_lpu

    @property
    def everyone(self) -> bool:
        """Whether every device answers every ask; otherwise a part of the devices answers, with the whole epsilon."""
        return self.division is BudgetDivision


def _often(w: int) -> int:
    return max(1, w // 4)


_SILENT = "no interval in a step that asks nobody; LPU has one in every step"
_NARROWER = "LPU errs less on most streams, and its intervals are a quarter narrower"
_UNIFORM = Decision(
    uniform,
    uniform_parts,
    rounds=1,
    takes=lambda w, **_: 1 / w,
    publishes="every step, before filtering",
    compared_with_lpu="an interval in every step, and the least error on most streams",
    even=True,
    by_schedule=True,
)
_SAMPLING = Decision(
    sampling,
    sampling_parts,
    rounds=1,
    takes=lambda w, **_: 1.0,
    publishes="one step in w; between, the last release stands in",
    compared_with_lpu=f"{_SILENT}, and follows what changes between",
    by_schedule=True,
)
_DISTRIBUTION = Decision(
    distribution,
    distribution_parts,
    rounds=2,
    takes=lambda w, beta=0.5, **_: (1 - beta) / 2,
    publishes="the first publication of a window; each further one has half of what is left",
    compared_with_lpu="LPU errs less where a stream keeps moving, and its intervals are a quarter narrower",
    shrinking="every publication of a window asks half of those left: one that falls below privacy.minimum_arc goes "
    "unanswered, and an earlier release stands in; LPA does not shrink",
)
_ABSORPTION = Decision(
    absorption,
    absorption_parts,
    rounds=2,
    takes=lambda w, beta=0.5, **_: (1 - beta) / w,
    publishes="a publication right after another; better the longer nothing changed",
    compared_with_lpu=_NARROWER,
)
_DSAT = Decision(
    dsat,
    dsat_parts,
    rounds=2,
    takes=lambda w, beta=0.5, publications=0, **_: (1 - beta) / (publications or _often(w)),
    publishes="a publication; at most a quarter of the steps have one",
    compared_with_lpu=_NARROWER,
)
_RESCUE = Decision(
    rescue,
    rescue_parts,
    rounds=1,
    takes=lambda w, most=0.1, **_: most,
    publishes="a sample, before filtering",
    compared_with_lpu=f"{_SILENT}, and errs less",
)
_FAST = Decision(
    fast,
    fast_parts,
    rounds=1,
    takes=lambda w, samples=0, **_: 1 / (samples or _often(w)),
    publishes="a sample, before filtering; a quarter of the steps have one",
    compared_with_lpu=f"{_SILENT}, and errs less where a stream moves",
)
_PEGASUS = Decision(
    pegasus,
    pegasus_parts,
    rounds=2,
    takes=lambda w, beta=0.2, **_: (1 - beta) / w,
    publishes="one step; better while nothing changes",
    compared_with_lpu="LPU errs less on most streams",
    even=True,
)

METHODS: dict[str, Method] = {
    "LBU": Method(_UNIFORM, BudgetDivision),
    "LSP": Method(_SAMPLING, PopulationDivision),
    "LBD": Method(_DISTRIBUTION, BudgetDivision),
    "LBA": Method(_ABSORPTION, BudgetDivision),
    "LPU": Method(_UNIFORM, PopulationDivision),
    "LPD": Method(_DISTRIBUTION, PopulationDivision),
    "LPA": Method(_ABSORPTION, PopulationDivision),
    "LB-DSAT": Method(_DSAT, BudgetDivision),
    "LP-DSAT": Method(_DSAT, PopulationDivision),
    "LB-RescueDP": Method(_RESCUE, BudgetDivision),
    "LP-RescueDP": Method(_RESCUE, PopulationDivision),
    "LB-FAST": Method(_FAST, BudgetDivision),
    "LP-FAST": Method(_FAST, PopulationDivision),
    "LB-PeGaSus": Method(_PEGASUS, BudgetDivision),
    "LP-PeGaSus": Method(_PEGASUS, PopulationDivision),
}


def find_method(name: str) -> Method:
    """The method of a name in `METHODS`."""
    if name not in METHODS:
        raise InvalidValue("method", name, f"one of {', '.join(METHODS)}")
    return METHODS[name]


def epsilons(method: str, *, epsilon: float, w: int, **options: Any) -> tuple[int, ...]:
    """All amounts that one ask of a method with these options may spend, in units of 1e-12 epsilon, smallest first."""
    chosen = find_method(method)
    division = chosen.division(Frequencies(2), epsilon=epsilon, w=w)
    if isinstance(division, PopulationDivision):
        return (division.units,)
    return tuple(sorted({units for units in asked_parts(chosen, division, options) if units > 0}))


def asked_parts(method: Method, division: Division, options: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers of parts that the asks of a method with these options can take."""
    return method.decision.parts(division, **accepted(method.decision.parts, options))


def window_stream(
    method: str,
    question: Statistic,
    *,
    epsilon: float,
    w: int,
    groups: int = 1,
    memory: Memory | None = None,
    **options: Any,
) -> Protocol:
    """A protocol that releases an estimate at every step and spends at most epsilon in any w steps on any device.

    Parameters
    ----------
    method
        A name of `METHODS`.
    question
        `Frequencies(domain)` or `Means(low, high)`.
    epsilon, w
        The promise: epsilon in any w consecutive steps.
    groups
        How many equal groups devices are in, of which one is asked.
    memory
        Where state is kept from step to step, so that a stream can be resumed.
    options
        Options of the method, such as `beta`: see `OPTIONS`.
    """
    chosen, memory = find_method(method), memory or Memory()
    check_options(method, chosen.options, w, options)
    division = memory.keep("division", chosen.division(question, epsilon=epsilon, w=w, groups=groups))
    return chosen.decide(division, memory=memory, **options)


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
