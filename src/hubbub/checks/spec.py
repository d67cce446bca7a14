"""Checks of the spec: it describes the whole mechanism, cannot change, and cannot be made to spend more."""

import dataclasses
import json
import math
from collections.abc import Iterator
from fractions import Fraction

from hubbub.checks.failure import CheckFailed, require, require_refusal
from hubbub.checks.probability import enumerate_outputs, public_rows, worst_ratio
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.spec import Json, canonical
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.random.integers import log_upper
from hubbub.random.source import Random

_FEW = 64  # outputs: a dozen changed specs are then enumerated fast


def check_spec_round_trip(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """A spec goes through JSON, plain or canonical, and comes back as an equal mechanism with the same id."""
    spec = mechanism.spec()
    readers = [type(mechanism).from_spec]
    if MECHANISMS.get(type(mechanism).__name__) is type(mechanism):
        readers.append(ReportFormat.from_spec)  # the registry finds it by name
    for text in (json.dumps(spec), canonical(spec)):
        for read in readers:
            back = read(json.loads(text))
            require(back == mechanism, f"from_spec({text}) gives {back!r}")
            require(back.spec_id == mechanism.spec_id, f"the id {mechanism.spec_id} comes back as {back.spec_id}")
            require(canonical(back.spec()) == canonical(spec), f"the spec {text} comes back as {back.spec()}")


def check_spec_fields(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """A spec with a field missing, a field too many, another name, no proper epsilon or no known hash is refused."""
    spec = mechanism.spec()
    for name in spec:
        less: dict[str, Json] = {key: value for key, value in spec.items() if key != name}
        require_refusal(f"a spec without {name}", InvalidValue, lambda less=less: _build(mechanism, less))  # type: ignore[misc]
    for name, value in {
        "surplus": 1,
        "mechanism": "NoSuchMechanism",
        "epsilon": math.nan,
        "hash": "no such function",
    }.items():
        require_refusal(
            f"a spec with {name}={value}",
            InvalidValue,
            lambda n=name, v=value: _build(mechanism, {**spec, n: v}),  # type: ignore[misc]
        )
    for epsilon in (0, -1.0, math.inf, None, "1", True, [1.0]):
        require_refusal(
            f"epsilon={epsilon!r}",
            InvalidValue,
            lambda e=epsilon: _build(mechanism, {**spec, "epsilon": e}),  # type: ignore[misc]
        )


def check_hostile_spec(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """Whatever integer or epsilon a hostile server puts in a spec, it is refused or spends what it declares."""
    for name, value in _nudges(mechanism):
        try:
            changed = _build(mechanism, {**mechanism.spec(), name: value})
        except HubbubError:
            continue
        require(
            changed.effective_epsilon <= changed.epsilon,
            f"with {name}={value} it spends {changed.effective_epsilon!r} and declares {changed.epsilon!r}",
        )
        _check_small_enumeration(changed, f"with {name}={value}", rng_seed)
        if name == "epsilon":
            require(changed.epsilon == value, f"a spec of epsilon={value!r} was read as epsilon={changed.epsilon!r}")


def check_frozen(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """No field can be set, every field can be hashed, and what `spec()` returns is the caller's own."""
    before = canonical(mechanism.spec())
    for field in dataclasses.fields(mechanism):
        value = getattr(mechanism, field.name)
        try:
            setattr(mechanism, field.name, value)
        except AttributeError:  # dataclasses.FrozenInstanceError is one
            pass
        else:
            raise CheckFailed(f"the field {field.name} can be set")
        try:
            hash(value)
        except TypeError:
            raise CheckFailed(f"the field {field.name} holds something that can change: {value!r}") from None
    _spoil(mechanism.spec())
    require(canonical(mechanism.spec()) == before, "changing what spec() returned changed the mechanism")


def check_event(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """The event names the mechanism and charges its effective epsilon, rounded up to whole units."""
    event = mechanism.event()
    wanted = math.ceil(Fraction(mechanism.effective_epsilon) * UNITS_PER_EPSILON)
    require(event.spent == wanted, f"one report spends {wanted} units, and the event says {event.spent}")
    require(event.spec_id == mechanism.spec_id, f"the event is of {event.spec_id}, not {mechanism.spec_id}")
    require(event.mechanism == type(mechanism).__name__, f"the event names {event.mechanism}")


def _build(mechanism: ReportFormat, spec: dict[str, object]) -> ReportFormat:
    return type(mechanism).from_spec(spec)


def _check_small_enumeration(changed: ReportFormat, how: str, rng_seed: int) -> None:
    """Enumerate a changed mechanism: `ratio()` may be right for its own parameters and wrong for others it accepts."""
    if not isinstance(changed, Mechanism):
        return
    outputs = changed.outputs(public_rows(changed, 1, Random(seed=rng_seed))[0])
    if outputs is not None and len(outputs) <= _FEW:
        worst = worst_ratio(enumerate_outputs(changed, rng_seed))
        require(worst <= changed.ratio(), f"{how} a report has the epsilon {log_upper(worst)!r}, above that of ratio()")


def _nudges(mechanism: ReportFormat) -> Iterator[tuple[str, object]]:
    for share in (0.5, 0.9, 0.999):
        yield "epsilon", mechanism.effective_epsilon * share
    for field in dataclasses.fields(mechanism):
        value = getattr(mechanism, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            for near in (value - 1, value + 1, value - 2, value // 2, value * 2, value * 9 // 10, value * 11 // 10, 1):
                yield field.name, near
            yield from ((field.name, wrong) for wrong in (-1, 1 << 200, 0.5, "x", None))


def _spoil(value: object) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _spoil(item)
        value["spoilt"] = 1
    elif isinstance(value, list):
        for item in value:
            _spoil(item)
        value.append("spoilt")
