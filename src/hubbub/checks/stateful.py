"""Checks of mechanisms that remember: what a device says over several steps, what that costs, and what it keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hubbub.checks.failure import require, require_refusal
from hubbub.checks.statistics import FALSE_ALARM, fit, same_counts, smallest
from hubbub.core.errors import DecodeError, HubbubError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.exact import log_upper
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.stateful import Stateful, States, Transcript

STEPS = 3
_VALUES = 3
_DEVICES = 3_000
_SINGLES = 250
_MOST_PUBLICS = 64


@lru_cache(maxsize=64)
def transcribed(mechanism: Stateful, most: int = STEPS) -> int:
    """For how many steps, `most` at the most, all that a device can say can be listed; 0 where that is too much.

    Example:
        >>> from hubbub import BasicRappor
        >>> transcribed(BasicRappor(epsilon=2.0, domain=2)), transcribed(BasicRappor(epsilon=2.0, domain=100))
        (3, 0)
    """
    values = mechanism.example_values(_VALUES)
    public = next(iter(mechanism.publics()))
    for steps in range(most, 0, -1):
        varied = [values[step % len(values)] for step in range(steps)]
        if mechanism.transcripts(public, varied) is not None and mechanism.transcripts(public, values[:1] * steps):
            return steps
    return 0


def check_transcript_epsilon(mechanism: Stateful, rng_seed: int = 1) -> None:
    """All that a device says together tells no more than it paid for, exactly, whatever its values were.

    Of any two histories that differ in nothing that is `unhidden`; and the probabilities sum to 1.

    Example:
        >>> from hubbub import BasicRappor
        >>> check_transcript_epsilon(BasicRappor(epsilon=2.0, domain=2))
    """
    rng, histories = Random(seed=rng_seed), _histories(mechanism)
    enrolled = mechanism.enroll(8, rng)
    paid = {index: _paid(mechanism, enrolled, history, rng) for index, history in enumerate(histories)}
    publics = mechanism.public_of(enrolled).tolist()
    for device, public in {public: device for device, public in enumerate(publics)}.items():
        alike: dict[Any, list[int]] = {}
        for index, history in enumerate(histories):
            alike.setdefault(mechanism.unhidden(device, history), []).append(index)
        for group in alike.values():
            told = [_listed(mechanism, device, histories[index]) for index in group]
            for chances, index in zip(told, group, strict=True):
                require(sum(chances.values()) == 1, f"the transcripts of {histories[index]} have a sum other than 1")
            worst = _worst_ratio(told)
            spent = min(int(paid[index][public]) for index in group)
            require(
                worst is not None and log_upper(worst) <= spent / UNITS_PER_EPSILON,
                f"{len(group)} histories of {len(histories[0])} steps are told apart by "
                f"{'a report that only some can make' if worst is None else log_upper(worst)}, "
                f"and {spent / UNITS_PER_EPSILON} was paid",
            )


def check_transcripts(mechanism: Stateful, rng_seed: int = 1) -> None:
    """What devices say, step by step from their states, falls as `transcripts` and `publics` say.

    Example:
        >>> from hubbub import BasicRappor
        >>> check_transcripts(BasicRappor(epsilon=2.0, domain=2))
    """
    publics = mechanism.publics()
    require(sum(publics.values()) == 1, "publics() have a sum other than 1")
    if len(publics) > _MOST_PUBLICS:
        return
    p_values = []
    for number, history in enumerate(_telling(mechanism)):
        rng = Random(seed=rng_seed).child("transcripts", number)
        states = mechanism.enroll(_DEVICES, rng)
        drawn = mechanism.public_of(states)
        transcripts = _live(mechanism, states, history, rng)
        for public, chance in publics.items():
            rows = np.flatnonzero(drawn == public)
            chances = _listed(mechanism, public, history)
            counts = Counter(transcripts[row] for row in rows.tolist())
            unknown = [transcript for transcript in counts if transcript not in chances]
            require(not unknown, f"{history}: a device says {unknown[:1]}, which transcripts() do not list")
            observed = np.array([counts[transcript] for transcript in chances])
            expected = np.array([float(share) for share in chances.values()]) * float(chance) * _DEVICES
            rest = [_DEVICES - len(rows), _DEVICES * (1 - float(chance))]
            cells = zip((observed, expected), rest, strict=True)
            p_values.append(fit(*(np.append(counted, other) for counted, other in cells)))
    least = smallest(p_values)
    require(least > FALSE_ALARM, f"what devices say does not fall as transcripts() say: p = {least:.1e}")


def check_state_batches(mechanism: Stateful, rng_seed: int = 1) -> None:
    """A batch of n devices says what n batches of one do, in distribution, each about its own value.

    Example:
        >>> from hubbub import BasicRappor
        >>> check_state_batches(BasicRappor(epsilon=2.0, domain=2))
    """
    rng, values = Random(seed=rng_seed), mechanism.example_values(2)
    steps = min(2, max(1, transcribed(mechanism)))
    mixed = [[values[(device + step) % len(values)] for device in range(2 * _SINGLES)] for step in range(steps)]
    together = _live_mixed(mechanism, mechanism.enroll(2 * _SINGLES, rng), mixed, rng)
    p_values = []
    for half in (0, 1):  # those with one history, and those with the other
        singles = Counter[Transcript]()
        for _ in range(_SINGLES):
            history = [[row[half]] for row in mixed]
            singles[_live_mixed(mechanism, mechanism.enroll(1, rng), history, rng)[0]] += 1
        batch = Counter(together[half::2])
        every = sorted(batch | singles)
        p_values.append(same_counts(np.array([batch[t] for t in every]), np.array([singles[t] for t in every])))
    require(smallest(p_values) > FALSE_ALARM, f"a batch is not its singles: p = {smallest(p_values):.1e}")


def check_state_price(mechanism: Stateful, rng_seed: int = 1) -> None:
    """What is paid for is not asked for again, and what is not paid for is not looked at.

    Devices that did not pay say and keep the same whatever value they could not pay for, byte by byte. One that has
    paid before does not fall silent: that would tell of its value, too.

    Example:
        >>> from hubbub import BasicRappor
        >>> check_state_price(BasicRappor(epsilon=2.0, domain=2))
    """
    rng, n, values = Random(seed=rng_seed), 40, mechanism.example_values(4)
    everyone = np.ones(n, dtype=bool)
    fresh = mechanism.enroll(n, rng)
    require((mechanism.price(fresh, 0, _same(values[0], n)) > 0).all(), "a first answer costs nothing")
    known, _, _ = mechanism.step(fresh, 0, _same(values[0], n), rng, everyone)
    require((mechanism.price(known, 0, _same(values[0], n)) == 0).all(), "what was paid for is asked for again")
    for states, others in ((fresh, values), (known, values[1:])):
        kept = []
        for value in others:
            dear = mechanism.price(states, 1, _same(value, n)) > 0
            after, reports, speaks = mechanism.step(
                states, 1, _same(value, n), Random(seed=f"unpaid {rng_seed}"), ~everyone
            )
            if states is known:
                would = mechanism.step(states, 1, _same(value, n), Random(seed=1), everyone)[2]
                require((speaks == would).all(), f"a device that did not pay for {value!r} falls silent")
            again = mechanism.price(after, 1, _same(value, n)) > 0
            require((again == dear)[dear].all(), f"a device that did not pay for {value!r} is not asked to again")
            kept.append((dear, [after.to_bytes(row) for row in range(n)], _rows(mechanism, reports), speaks))
        for dear, bytes_after, rows, speaks in kept[1:]:
            both = dear & kept[0][0]
            same = [row for row in np.flatnonzero(both).tolist() if bytes_after[row] != kept[0][1][row]]
            require(not same, "the state of a device that did not pay depends on the value that it could not pay for")
            require((speaks == kept[0][3])[both].all(), "whether a device that did not pay speaks depends on its value")
            if both.all():
                require(rows == kept[0][2], "what a device says that did not pay depends on its value")


def check_state_silence(mechanism: Stateful, rng_seed: int = 1) -> None:
    """Which devices speak does not depend on their values, as long as all have paid.

    Example:
        >>> from hubbub import BasicRappor
        >>> check_state_silence(BasicRappor(epsilon=2.0, domain=2))
    """
    rng, n, values = Random(seed=rng_seed), 60, mechanism.example_values(_VALUES)
    enrolled, spoke = mechanism.enroll(n, rng), []
    for shift in range(len(values)):
        states, heard = enrolled, []
        for step in range(STEPS):
            batch = _same(values[(step * shift) % len(values)], n)
            states, reports, speaks = mechanism.step(states, step, batch, rng, np.ones(n, dtype=bool))
            require(len(reports) == int(speaks.sum()), "there are more or fewer reports than devices that speak")
            mechanism.check(reports)
            sent, sends = mechanism.with_enrolment(states, reports, speaks, np.ones(n, dtype=bool))
            require(len(sent) == int(sends.sum()), "there are more or fewer reports than devices that send one")
            require(bool((sends | ~speaks).all()), "a device that enrols loses its report")
            require(bool(sends.all()) or not mechanism.enrols, "a device that enrols sends nothing")
            heard.append(speaks)
        spoke.append(np.array(heard))
    require(all((other == spoke[0]).all() for other in spoke), "which devices speak depends on their values")


def check_state_bytes(mechanism: Stateful, rng_seed: int = 1) -> None:
    """A state comes back from its bytes and goes on as it would have; any other bytes are refused.

    Example:
        >>> from hubbub import BasicRappor
        >>> check_state_bytes(BasicRappor(epsilon=2.0, domain=2))
    """
    rng, values = Random(seed=rng_seed), mechanism.example_values(2)
    states = mechanism.enroll(5, rng)
    for step in range(2):
        data = [states.to_bytes(row) for row in range(5)]
        back = States.concat([States.from_bytes(mechanism, each) for each in data])
        require([back.to_bytes(row) for row in range(5)] == data, "a state does not come back from its bytes")
        require(states.take([3, 1]).to_bytes(1) == data[1], "take() gives other rows than it was asked for")
        batch = _same(values[step % len(values)], 5)
        runs = [mechanism.step(each, step, batch, Random(seed=step), np.ones(5, bool)) for each in (states, back)]
        require(
            [runs[0][0].to_bytes(row) for row in range(5)] == [runs[1][0].to_bytes(row) for row in range(5)]
            and runs[0][1] == runs[1][1],
            "a state that was stored goes on differently",
        )
        states = runs[0][0]
    good = states.to_bytes()
    for what, wrong in _hostile(good):
        require_refusal(f"a state {what}", DecodeError, lambda wrong=wrong: States.from_bytes(mechanism, wrong))  # type: ignore[misc]
    foreign = States("f" * 32, states.columns)
    everyone = np.ones(5, dtype=bool)
    require_refusal(
        "stepping with foreign states", HubbubError, lambda: mechanism.step(foreign, 2, batch, rng, everyone)
    )
    require_refusal("a value too few", HubbubError, lambda: mechanism.step(states, 2, batch[:4], rng, everyone))


def _hostile(good: bytes) -> Iterator[tuple[str, bytes]]:
    kind, version, spec_id, columns = msgspec.msgpack.decode(good)
    for cut in range(len(good)):
        yield f"cut at {cut}", good[:cut]
    encode = msgspec.msgpack.encode
    yield "with more after it", good + b"\x00"
    yield "of another version", encode((kind, version + 1, spec_id, columns))
    yield "of another mechanism", encode((kind, version, "f" * 32, columns))
    yield "of another kind", encode(("other", version, spec_id, columns))
    for name, (shape, data) in columns.items():
        rest = {other: column for other, column in columns.items() if other != name}
        yield f"without {name}", encode((kind, version, spec_id, rest))
        yield f"with a longer {name}", encode((kind, version, spec_id, {**columns, name: (shape, data + b"\x01" * 8)}))
        if data:
            spoilt = b"\xff" * len(data)
            yield f"with an impossible {name}", encode((kind, version, spec_id, {**columns, name: (shape, spoilt)}))


def _histories(mechanism: Stateful) -> list[list[Any]]:
    steps = transcribed(mechanism)
    return [list(history) for history in product(mechanism.example_values(_VALUES), repeat=steps)]


def _telling(mechanism: Stateful) -> list[list[Any]]:
    """A few histories: a value that stays, and two that change."""
    values, steps = mechanism.example_values(_VALUES), transcribed(mechanism)
    orders = ([0] * steps, [0, 1] * steps, [1, *[0] * steps])
    return [[values[k % len(values)] for k in order[:steps]] for order in orders]


def _listed(mechanism: Stateful, public: int, history: Sequence[Any]) -> dict[Transcript, Fraction]:
    chances = mechanism.transcripts(public, history)
    require(chances is not None, f"transcripts() lists those of some histories, and not those of {history}")
    return chances or {}


def _worst_ratio(told: Sequence[dict[Transcript, Fraction]]) -> Fraction | None:
    worst = Fraction(1)
    for transcript in set().union(*told):
        chances = [chances.get(transcript, Fraction(0)) for chances in told]
        if max(chances) and not min(chances):
            return None
        worst = max(worst, max(chances) / min(chances)) if max(chances) else worst
    return worst


def _paid(mechanism: Stateful, states: States, history: Sequence[Any], rng: Random) -> NDArray[np.int64]:
    n = len(states)
    total = np.zeros(n, dtype=np.int64)
    for step, value in enumerate(history):
        total += mechanism.price(states, step, _same(value, n))
        states, _, _ = mechanism.step(states, step, _same(value, n), rng, np.ones(n, dtype=bool))
    return total


def _live(mechanism: Stateful, states: States, history: Sequence[Any], rng: Random) -> list[Transcript]:
    return _live_mixed(mechanism, states, [_same(value, len(states)) for value in history], rng)


def _live_mixed(mechanism: Stateful, states: States, history: Sequence[Any], rng: Random) -> list[Transcript]:
    """What each device says, as its values come."""
    n = len(states)
    transcripts: list[list[bytes]] = [[] for _ in range(n)]
    for step, values in enumerate(history):
        states, reports, speaks = mechanism.step(states, step, values, rng, np.ones(n, dtype=bool))
        rows = iter(_rows(mechanism, reports))
        for device, speaking in enumerate(speaks.tolist()):
            transcripts[device].append(next(rows) if speaking else b"")
    return [tuple(each) for each in transcripts]


def _rows(mechanism: Stateful, reports: Reports) -> list[bytes]:
    """The bare bytes of each report."""
    return [reports[row : row + 1].to_bare() for row in range(len(reports))]


def _same(value: Any, n: int) -> list[Any]:
    return [value] * n
