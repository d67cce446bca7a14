"""Checks of the states of devices that remember: what they cost, when devices are silent, and how they are stored."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from hubbub.checks.failure import require, require_refusal
from hubbub.checks.transcripts import STEPS, VALUES, single_reports
from hubbub.core.errors import DecodeError, HubbubError
from hubbub.core.random import Random
from hubbub.mechanisms.stateful import Stateful, States


def check_state_price(mechanism: Stateful, rng_seed: int = 1) -> None:
    """Nothing is paid for twice, and a value that is not paid for is not used.

    Devices that did not pay have the same reports and states, byte by byte, whatever value they did not pay for. A
    device that has paid before does not fall silent: that would also reveal something of its value.
    """
    rng, n, values = Random(seed=rng_seed), 40, mechanism.example_values(4)
    everyone = np.ones(n, dtype=bool)
    fresh = mechanism.enroll(n, rng)
    require((mechanism.price(fresh, 0, [values[0]] * n) > 0).all(), "a first answer costs nothing")
    paid_once, _, _ = mechanism.step(fresh, 0, [values[0]] * n, rng, everyone)
    require((mechanism.price(paid_once, 0, [values[0]] * n) == 0).all(), "what was paid for must be paid again")
    for states, others in ((fresh, values), (paid_once, values[1:])):
        outcomes = []
        for value in others:
            dear = mechanism.price(states, 1, [value] * n) > 0
            after, reports, speaks = mechanism.step(
                states, 1, [value] * n, Random(seed=f"unpaid {rng_seed}"), ~everyone
            )
            if states is paid_once:
                would = mechanism.step(states, 1, [value] * n, Random(seed=1), everyone)[2]
                require((speaks == would).all(), f"a device that did not pay for {value!r} falls silent")
            again = mechanism.price(after, 1, [value] * n) > 0
            require((again == dear)[dear].all(), f"a device that did not pay for {value!r} need not pay the next time")
            outcomes.append((dear, [after.to_bytes(row) for row in range(n)], single_reports(reports), speaks))
        first_dear, first_bytes, first_rows, first_speaks = outcomes[0]
        for dear, bytes_after, rows, speaks in outcomes[1:]:
            both = dear & first_dear
            changed = [row for row in np.flatnonzero(both).tolist() if bytes_after[row] != first_bytes[row]]
            require(
                not changed, "the state of a device that did not pay depends on the value that it could not pay for"
            )
            require(
                (speaks == first_speaks)[both].all(), "whether a device that did not pay speaks depends on its value"
            )
            if both.all():
                require(rows == first_rows, "the report of a device that did not pay depends on its value")


def check_state_silence(mechanism: Stateful, rng_seed: int = 1) -> None:
    """Which devices send a report does not depend on their values, as long as all have paid."""
    rng, n, values = Random(seed=rng_seed), 60, mechanism.example_values(VALUES)
    enrolled, spoke = mechanism.enroll(n, rng), []
    for shift in range(len(values)):
        states, speaking = enrolled, []
        for step in range(STEPS):
            batch = [values[(step * shift) % len(values)]] * n
            states, reports, speaks = mechanism.step(states, step, batch, rng, np.ones(n, dtype=bool))
            require(len(reports) == int(speaks.sum()), "there are more or fewer reports than devices that speak")
            mechanism.check(reports)
            sent, sends = mechanism.with_enrolment(states, reports, speaks, np.ones(n, dtype=bool))
            require(len(sent) == int(sends.sum()), "there are more or fewer reports than devices that send one")
            require(bool((sends | ~speaks).all()), "a device that enrols loses its report")
            require(bool(sends.all()) or not mechanism.enrols, "a device that enrols sends nothing")
            speaking.append(speaks)
        spoke.append(np.array(speaking))
    require(all((other == spoke[0]).all() for other in spoke), "which devices send a report depends on their values")


def check_state_bytes(mechanism: Stateful, rng_seed: int = 1) -> None:
    """A state is read back from its bytes and goes on as before; any other bytes are refused."""
    rng, values = Random(seed=rng_seed), mechanism.example_values(2)
    states = mechanism.enroll(5, rng)
    for step in range(2):
        data = [states.to_bytes(row) for row in range(5)]
        back = States.concat([States.from_bytes(mechanism, state) for state in data])
        require([back.to_bytes(row) for row in range(5)] == data, "a state does not come back from its bytes")
        require(states.take([3, 1]).to_bytes(1) == data[1], "take() gives other rows than it was asked for")
        batch = [values[step % len(values)]] * 5
        runs = [mechanism.step(start, step, batch, Random(seed=step), np.ones(5, bool)) for start in (states, back)]
        require(
            [runs[0][0].to_bytes(row) for row in range(5)] == [runs[1][0].to_bytes(row) for row in range(5)]
            and runs[0][1] == runs[1][1],
            "a state that was stored goes on differently",
        )
        states = runs[0][0]
    good = states.to_bytes()
    for flaw, wrong in _hostile(good):
        require_refusal(f"a state {flaw}", DecodeError, lambda wrong=wrong: States.from_bytes(mechanism, wrong))  # type: ignore[misc]
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
