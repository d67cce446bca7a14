"""Checks of devices that remember: their transcripts, states, costs and silence."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import msgspec
import numpy as np

from hubbub.checks.failure import FALSE_ALARM, fit, require, require_refusal, same_counts, smallest
from hubbub.core.errors import DecodeError, HubbubError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.reports import Ints, Reports
from hubbub.mechanisms.stateful import Stateful, States, Transcript
from hubbub.random.integers import log_upper
from hubbub.random.source import Random

STEPS = 3
VALUES = 3
_DEVICES = 3_000
_SINGLES = 250
_MOST_PUBLICS = 64


@lru_cache(maxsize=64)
def steps_listed(mechanism: Stateful, most: int = STEPS) -> int:
    """How many steps, up to `most`, have few enough transcripts to list them all; 0 if one step has too many."""
    values = mechanism.example_values(VALUES)
    public = next(iter(mechanism.publics()))
    for steps in range(most, 0, -1):
        varied = [values[step % len(values)] for step in range(steps)]
        if mechanism.transcripts(public, varied) is not None and mechanism.transcripts(public, values[:1] * steps):
            return steps
    return 0


def check_transcript_epsilon(mechanism: Stateful, rng_seed: int = 1) -> None:
    """A device's whole transcript reveals no more of its values than it paid for, exactly.

    That is checked for all histories of values that agree in what is `unhidden`. And the probabilities sum to 1.
    """
    rng, histories = Random(seed=rng_seed), _histories(mechanism)
    enrolled = mechanism.enroll(8, rng)
    prices = [_total_price(mechanism, enrolled, history, rng) for history in histories]
    device_of = {public: device for device, public in enumerate(mechanism.public_of(enrolled).tolist())}
    for public, device in device_of.items():
        groups: dict[Hashable, list[int]] = {}
        for index, history in enumerate(histories):
            groups.setdefault(mechanism.unhidden(public, history), []).append(index)
        for group in groups.values():
            listed = [_listed_transcripts(mechanism, public, histories[index]) for index in group]
            for chances, index in zip(listed, group, strict=True):
                require(sum(chances.values()) == 1, f"the transcripts of {histories[index]} have a sum other than 1")
            worst = _worst_ratio(listed)
            spent = min(int(prices[index][device]) for index in group)
            require(
                worst is not None and log_upper(worst) <= spent / UNITS_PER_EPSILON,
                f"{len(group)} histories of {len(histories[0])} steps differ by "
                f"{'a report that only some can make' if worst is None else log_upper(worst)}, "
                f"and {spent / UNITS_PER_EPSILON} was paid",
            )


def check_transcripts(mechanism: Stateful, rng_seed: int = 1) -> None:
    """The transcripts that devices send, step by step, are distributed as `transcripts` and `publics` state."""
    publics = mechanism.publics()
    require(sum(publics.values()) == 1, "publics() have a sum other than 1")
    if len(publics) > _MOST_PUBLICS:
        return
    p_values = []
    for number, history in enumerate(_few_histories(mechanism)):
        rng = Random(seed=rng_seed).child("transcripts", number)
        states = mechanism.enroll(_DEVICES, rng)
        drawn = mechanism.public_of(states)
        transcripts = _transcripts_of(mechanism, states, [[value] * len(states) for value in history], rng)
        for public, chance in publics.items():
            rows = np.flatnonzero(drawn == public)
            chances = _listed_transcripts(mechanism, public, history)
            counts = Counter(transcripts[row] for row in rows.tolist())
            unknown = [transcript for transcript in counts if transcript not in chances]
            require(not unknown, f"{history}: a device sends {unknown[:1]}, which transcripts() does not list")
            observed = np.array([counts[transcript] for transcript in chances])
            expected = np.array([float(share) for share in chances.values()]) * float(chance) * _DEVICES
            rest = [_DEVICES - len(rows), _DEVICES * (1 - float(chance))]
            cells = zip((observed, expected), rest, strict=True)
            p_values.append(fit(*(np.append(counted, other) for counted, other in cells)))
    least = smallest(p_values)
    require(least > FALSE_ALARM, f"devices do not send what transcripts() states: p = {least:.1e}")


def check_state_batches(mechanism: Stateful, rng_seed: int = 1) -> None:
    """A batch of n devices sends what n batches of one send, in distribution."""
    rng, values = Random(seed=rng_seed), mechanism.example_values(2)
    steps = min(2, max(1, steps_listed(mechanism)))
    mixed = [[values[(device + step) % len(values)] for device in range(2 * _SINGLES)] for step in range(steps)]
    of_batch = _transcripts_of(mechanism, mechanism.enroll(2 * _SINGLES, rng), mixed, rng)
    p_values = []
    for half in (0, 1):  # devices with one history, and devices with the other
        singles = Counter[Transcript]()
        for _ in range(_SINGLES):
            history = [[row[half]] for row in mixed]
            singles[_transcripts_of(mechanism, mechanism.enroll(1, rng), history, rng)[0]] += 1
        batch = Counter(of_batch[half::2])
        every = sorted(batch | singles)
        p_values.append(same_counts(np.array([batch[t] for t in every]), np.array([singles[t] for t in every])))
    require(smallest(p_values) > FALSE_ALARM, f"a batch is not its singles: p = {smallest(p_values):.1e}")


def _histories(mechanism: Stateful) -> list[list[object]]:
    steps = steps_listed(mechanism)
    return [list(history) for history in product(mechanism.example_values(VALUES), repeat=steps)]


def _few_histories(mechanism: Stateful) -> list[list[object]]:
    """A few histories: one whose value stays, and two whose values change."""
    values, steps = mechanism.example_values(VALUES), steps_listed(mechanism)
    orders = ([0] * steps, [0, 1] * steps, [1, *[0] * steps])
    return [[values[k % len(values)] for k in order[:steps]] for order in orders]


def _listed_transcripts(mechanism: Stateful, public: int, history: Sequence[object]) -> dict[Transcript, Fraction]:
    chances = mechanism.transcripts(public, history)
    require(chances is not None, f"transcripts() lists those of some histories, but not of {history}")
    return chances or {}


def _worst_ratio(listed: Sequence[dict[Transcript, Fraction]]) -> Fraction | None:
    """The largest ratio of a transcript's probabilities; None where one of them is 0."""
    worst = Fraction(1)
    for transcript in set().union(*listed):
        chances = [chances.get(transcript, Fraction(0)) for chances in listed]
        if max(chances) and not min(chances):
            return None
        worst = max(worst, max(chances) / min(chances)) if max(chances) else worst
    return worst


def _total_price(mechanism: Stateful, states: States, history: Sequence[object], rng: Random) -> Ints:
    n = len(states)
    total = np.zeros(n, dtype=np.int64)
    for step, value in enumerate(history):
        total += mechanism.price(states, step, [value] * n)
        states, _, _ = mechanism.step(states, step, [value] * n, rng, np.ones(n, dtype=bool))
    return total


def _transcripts_of(mechanism: Stateful, states: States, history: Sequence[Any], rng: Random) -> list[Transcript]:
    """The transcript of each device, whose values come step by step."""
    n = len(states)
    transcripts: list[list[bytes]] = [[] for _ in range(n)]
    for step, values in enumerate(history):
        states, reports, speaks = mechanism.step(states, step, values, rng, np.ones(n, dtype=bool))
        rows = iter(single_reports(reports))
        for device, speaking in enumerate(speaks.tolist()):
            transcripts[device].append(next(rows) if speaking else b"")
    return [tuple(transcript) for transcript in transcripts]


def single_reports(reports: Reports) -> list[bytes]:
    """The bare bytes of each report."""
    return [reports[row : row + 1].to_bare() for row in range(len(reports))]


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
            charged = mechanism.price(after, 1, [value] * n) > 0
            require(
                (charged == dear)[dear].all(), f"a device that did not pay for {value!r} need not pay the next time"
            )
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
