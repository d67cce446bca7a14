"""The definition of an alarm, as its author writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from hubbub.alarms.sequential import Direction
from hubbub.collection.time import seconds_of
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.questions.keys import NOTHING

LEAST_BASELINE, MOST_BASELINE = 8, 10_000
LARGEST = 1e100
"""The largest weight and threshold: their squares and sums are still finite floats."""
_FINITE = f"a finite number from -{LARGEST:g} to {LARGEST:g}"
_SIDES: dict[str, tuple[Direction, ...]] = {"up": ("above",), "down": ("below",), "either": ("above", "below")}


@dataclass(frozen=True, kw_only=True)
class AlarmDefinition:
    """What an alarm watches, and when it is raised and cleared.

    Parameters
    ----------
    weights
        The weights of a sum over the labels of an answer. An answer of one number needs none.
    each
        Instead of weights: watch every category separately. Their false alarms count together.
    forged
        Instead of a quantity: whether the reports of a round look forged.
    above, below
        The threshold. The alarm is raised once there is evidence that the truth is beyond it.
    change, baseline
        Instead of a threshold: a change "up", "down" or "either" from the mean of the first `baseline` steps.
    clears
        Where a raised alarm is cleared. With `above` at most the threshold, with `below` at least the threshold; by
        default the threshold. With `change` a distance from the baseline; by default half of the change that raised it.
    false_alarms
        How often the alarm may be false, such as "1 in 30d"; by default it shares the collection's rate with others.
    """

    question: str
    weights: Mapping[str, float] | None = None
    each: bool = False
    forged: bool = False
    above: float | None = None
    below: float | None = None
    change: str | None = None
    baseline: int | None = None
    clears: float | None = None
    false_alarms: str | None = None
    title: str = ""

    def __post_init__(self) -> None:
        for key, kind, words in _KINDS:
            value = getattr(self, key)
            if value is not None and (isinstance(value, bool) != (kind is bool) or not isinstance(value, kind)):
                raise InvalidValue(key, value, words)
        if self.weights is not None:
            self._check_weights(self.weights)
        for key in ("above", "below", "clears"):
            value = getattr(self, key)
            if value is not None and not abs(value) <= LARGEST:
                raise InvalidValue(key, value, _FINITE)
        kinds = [key for key in ("above", "below", "change") if getattr(self, key) is not None]
        if self.forged:
            kinds += [key for key in ("weights", "each", "clears", "baseline") if getattr(self, key)]
            if kinds:
                raise InvalidValue(kinds[0], getattr(self, kinds[0]), "nothing: forged watches reports, and no number")
            return
        if len(kinds) != 1:
            raise InvalidValue("above", kinds or NOTHING, "one of above, below and change, or forged = true")
        if self.change is None:
            if self.baseline is not None:
                raise InvalidValue("baseline", self.baseline, "nothing: only a change is one from a baseline")
            self._check_threshold()
        else:
            self._check_change(self.change)

    def _check_weights(self, weights: Mapping[str, float]) -> None:
        if self.each:
            raise InvalidValue("weights", dict(weights), "nothing: each watches every category for itself")
        for label, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) <= LARGEST:
                raise InvalidValue(f"weights.{label}", weight, _FINITE)
        if not any(weights.values()):
            raise InvalidValue("weights", dict(weights), "at least one that is not 0")
        object.__setattr__(self, "weights", {str(label): float(weight) for label, weight in weights.items()})

    def _check_threshold(self) -> None:
        if self.clears is None:
            return
        if self.above is not None and self.clears > self.above:
            raise InvalidValue("clears", self.clears, f"a number that is at most above, {self.above:g}")
        if self.below is not None and self.clears < self.below:
            raise InvalidValue("clears", self.clears, f"a number that is at least below, {self.below:g}")

    def _check_change(self, change: str) -> None:
        if change not in _SIDES:
            raise InvalidValue("change", change, f"one of {', '.join(_SIDES)}")
        if self.baseline is None or not LEAST_BASELINE <= self.baseline <= MOST_BASELINE:
            steps = f"how many steps to learn from: a whole number from {LEAST_BASELINE} to {MOST_BASELINE:,}"
            raise InvalidValue("baseline", NOTHING if self.baseline is None else self.baseline, steps)
        if self.clears is not None and self.clears < 0:
            raise InvalidValue("clears", self.clears, "a distance from the baseline, at least 0")

    @property
    def sides(self) -> tuple[Direction, ...]:
        """The sides on which a change is looked for."""
        if self.change is not None:
            return _SIDES[self.change]
        return ("above",) if self.above is not None else ("below",)

    @property
    def threshold(self) -> float | None:
        """The threshold; None for an alarm on a change."""
        return self.above if self.above is not None else self.below

    def spec(self) -> dict[str, Json]:
        """The alarm as JSON, without keys that have their default."""
        values = {key.name: getattr(self, key.name) for key in fields(self) if getattr(self, key.name) != key.default}
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}

    @staticmethod
    def from_spec(spec: Any) -> AlarmDefinition:
        """Read an alarm, from JSON or from TOML."""
        if not isinstance(spec, Mapping):
            raise InvalidValue("", spec, "a table")
        known = [key.name for key in fields(AlarmDefinition)]
        for key, value in spec.items():
            if key not in known:
                close = get_close_matches(key, known, n=1)
                hint = f" (did you mean {close[0]}?)" if close else ""
                raise InvalidValue(key, value, f"nothing: alarms have no such key{hint}")
        if "question" not in spec:
            raise InvalidValue("question", NOTHING, "the name of a question")
        return AlarmDefinition(**spec)


_NUMBER, _TEXT = ((int, float), "a number"), (str, "text")
_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("question", *_TEXT),
    ("title", *_TEXT),
    ("false_alarms", str, 'a number in a time, such as "1 in 30d"'),
    ("change", *_TEXT),
    ("weights", Mapping, "a table of weights by label"),
    ("each", bool, "true or false"),
    ("forged", bool, "true or false"),
    ("above", *_NUMBER),
    ("below", *_NUMBER),
    ("clears", *_NUMBER),
    ("baseline", int, "a whole number"),
)


DEFAULT_FALSE_ALARMS = "1 in 30d"
FEWEST_STEPS = 10
"""The fewest steps between two false alarms: with fewer, a test decides nothing."""

_WRITTEN = re.compile(r"([0-9]{1,6}) in ([0-9]+[dhms])")


def false_alarms_a_step(text: object, step_seconds: int) -> float:
    """The average number of false alarms that is allowed per step."""
    number, seconds = written_rate(text)
    if seconds < FEWEST_STEPS * step_seconds * number:
        raise InvalidValue("false_alarms", text, f"at most one in {FEWEST_STEPS} steps of {step_seconds:,} seconds")
    return number * step_seconds / seconds


def written_rate(text: object) -> tuple[int, int]:
    """The number of false alarms that is allowed, and in how many seconds."""
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    number, seconds = (int(match[1]), seconds_of("false_alarms", match[2])) if match else (0, 0)
    if not number or not seconds:
        raise InvalidValue("false_alarms", text, 'a number in a time, such as "1 in 30d"')
    return number, seconds
