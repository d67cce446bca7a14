"""The browser's client computes what the library does. Run this file to write its vectors anew."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub import BLH, GRR, OLH, OUE, SUE, BasicRappor
from hubbub.client.split import split_budget
from hubbub.collection import Collection, QuestionSpec
from hubbub.core.domain import Categorical, Numeric, Ordinal
from hubbub.core.event import Event
from hubbub.core.hashing import fingerprint, hash32
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.spec import canonical
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.memo.memo import Memoised
from hubbub.privacy.clock import Observation
from hubbub.privacy.ledger import Budget, BudgetExceeded, Ledger, Status, StepRefused, Window
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, EVERYONE, Arc, place_on_circle
from hubbub.protocols.view import Binned, Clipped, Whole

VECTORS = Path(__file__).parents[1] / "vectors" / "js.json"
EMOJI = Categorical(["\U0001f602", "\u2764", "\U0001f60d", "caf\u00e9", "(none)"])
MECHANISMS: list[Mechanism] = [
    GRR(epsilon=1.0, domain=2),
    GRR(epsilon=0.1, domain=EMOJI),
    GRR(epsilon=0.3, domain=256),
    GRR(epsilon=8.0, domain=300),
    GRR(epsilon=3.7, domain=70_000),
    GRR(epsilon=2.5, domain=Numeric(-1.0, 2.0, cells=7)),
    BLH(epsilon=1.0, domain=12),
    OLH(epsilon=1.0, domain=1024),
    OLH(epsilon=0.25, domain=EMOJI),
    OLH(epsilon=5.9, domain=1 << 20),
    OLH(epsilon=40.0, domain=1 << 32),
    OUE(epsilon=1.0, domain=5),
    OUE(epsilon=2.0, domain=8),
    OUE(epsilon=0.001, domain=13),
    OUE(epsilon=14.0, domain=131),
    SUE(epsilon=1.0, domain=EMOJI),
    SUE(epsilon=6.0, domain=2100),
    BasicRappor(epsilon=2.0, domain=8),
    BasicRappor(epsilon=9.0, domain=EMOJI),
]


class Given(Random):
    """A stream that hands out the given bytes."""

    def __init__(self, given: bytes) -> None:
        super().__init__()
        self.given = given

    def fill(self, out: NDArray[Any]) -> None:
        flat = out.reshape(-1).view(np.uint8)
        flat[:] = np.frombuffer(self.given[: flat.size], dtype=np.uint8)
        self.given = self.given[flat.size :]


class Counting(Random):
    """A stream that counts what is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def fill(self, out: NDArray[Any]) -> None:
        self.size += out.nbytes
        super().fill(out)


def blocks(mechanism: Mechanism, value: Any) -> Iterator[bytes]:
    """Random bytes for one report: ordinary ones, the extremes, and those on either side of each threshold."""
    counting = Counting()
    report(mechanism, value, counting)
    size = counting.size
    rng = Random(seed=f"{mechanism.spec_id} {value}")
    if size > 1000:  # for its long column alone
        yield rng.bytes(size)
        return
    for _ in range(3):
        yield rng.bytes(size)
    yield bytes(size)
    yield b"\xff" * size
    if hasattr(mechanism, "other"):
        options = mechanism.buckets if hasattr(mechanism, "buckets") else mechanism.size
        keep = (1 << 64) - (options - 1) * mechanism.other
        for draw in (keep - 1, keep, keep + mechanism.other - 1, keep + mechanism.other):
            yield rng.bytes(size - 8) + (draw % (1 << 64)).to_bytes(8, "little")
    else:
        octets = mechanism.width // 8
        names = ("one", "zero", "keep", "lift")
        for threshold in (getattr(mechanism, name) for name in names if hasattr(mechanism, name)):
            for draw in (threshold - 1, threshold):
                yield draw.to_bytes(octets, "little") * (size // octets)


def reports() -> Iterator[dict[str, Any]]:
    """Every mechanism with given randomness, and the bytes that it must send."""
    for mechanism in MECHANISMS:
        values = mechanism.example_values(3)
        event = mechanism.permanent_event() if isinstance(mechanism, Memoised) else mechanism.event()
        yield {
            "spec": json.loads(canonical(mechanism.spec())),
            "spec_id": mechanism.spec_id,
            "spent": str(event.spent),
            "reports": [
                {"value": value, "random": block.hex(), "bytes": sent(mechanism, value, block)}
                for value in values
                for block in blocks(mechanism, value)
            ],
        }


def sent(mechanism: Mechanism, value: Any, block: bytes) -> str:
    given = Given(block)
    made = report(mechanism, value, given).to_bytes()
    assert not given.given
    return made.hex()


def report(mechanism: Mechanism, value: Any, rng: Random) -> Reports:
    """One report; where the mechanism remembers, by way of a new permanent answer."""
    if isinstance(mechanism, Memoised):
        return mechanism.report_from(mechanism.remember(value, rng), rng)
    return mechanism.randomize([value], rng)


def refused() -> Iterator[dict[str, Any]]:
    """Specs that no client may answer: they spend a little more than they say, or are not what they seem."""
    for mechanism in MECHANISMS:
        spec: dict[str, Any] = json.loads(canonical(mechanism.spec()))
        if hasattr(mechanism, "other"):
            yield {**spec, "other": json.loads(canonical(mechanism.other - 1))}
            yield {**spec, "other": 0}
        else:
            yield {**spec, "zero": mechanism.zero - 1, "one": mechanism.one + 1}
            yield {**spec, "one": mechanism.zero}
            yield {**spec, "width": 24}
        permanent = getattr(mechanism, "permanent_epsilon", mechanism.effective_epsilon)
        yield {**spec, "epsilon": float(np.nextafter(permanent, 0))}
        yield {**spec, "epsilon": -1}
        yield {**spec, "epsilon": "1"}
        yield {**spec, "extra": 1}
        yield {key: value for key, value in spec.items() if key != "domain"}
        yield {**spec, "domain": {"kind": "strings", "longest": 16}}
        yield {**spec, "domain": {"kind": "ordinal", "size": 1}}
        yield {**spec, "mechanism": "Nothing"}
        yield {**spec, "mechanism": "constructor"}


def codes() -> Iterator[dict[str, Any]]:
    """Values and their codes in every kind of domain."""
    numeric = Numeric(-1.0, 2.0, cells=7)
    near = [float(np.nextafter(edge, side)) for edge in numeric.edges for side in (-9, 9)]
    inside = [*numeric.edges.tolist(), *(x for x in near if -1 <= x <= 2), 0.0, -0.0, 1, 2]
    for domain, values in (
        (Ordinal(5), [0, 4]),
        (EMOJI, list(EMOJI.names)),
        (numeric, inside),
        (Numeric(0.1, 0.7, cells=1000), [0.1 + 0.6 * k / 1000 for k in range(0, 1000, 7)]),
    ):
        yield {"domain": domain.spec(), "values": values, "codes": [str(code) for code in domain.encode(values)]}


class Shown:
    """A clock that shows what it is told."""

    interval = 100
    now = Observation(0, 0, 0, 0)

    def spec(self) -> dict[str, Any]:
        return {}

    def observe(self, last: Observation | None) -> Observation:
        return self.now


def accounts() -> Iterator[dict[str, Any]]:
    """Debits that a ledger was asked for, on clocks that jump, and what it said."""
    budgets = [
        Budget(event=30),
        Budget(window=Window(50, 4)),
        Budget(user=200),
        Budget(event=25, window=Window(40, 3), user=300),
        Budget(window=Window(10**18, 2), user=10**18),
    ]
    for number, budget in enumerate(budgets):
        rng = Random(seed=f"accounts {number}")
        clock = Shown()
        asked = []
        with Ledger(":memory:", budget, clock=clock) as ledger:
            step = trusted = 0
            for turn in range(80):
                jump, passed, amount = (int(x) for x in rng.uint32(3))
                step = max(0, step + (0, 0, 1, 1, 1, 2, 5, -2)[jump % 8])
                trusted += (0, 0, 40, 100, 100, 130, 300, 0)[passed % 8]
                clock.now = Observation(step, step, step, trusted)
                spent = 1 + amount % 30 if number < 4 else 10**17 + amount
                try:
                    ledger.answer(f"ask {turn}", step, Event("GRR", "0" * 32, spent, step), lambda: b"")
                    taken = True
                except (BudgetExceeded, StepRefused):
                    taken = False
                units = ledger.status()
                asked.append(
                    {
                        "step": step,
                        "trusted": trusted,
                        "cost": str(spent),
                        "taken": taken,
                        "lifetime": str(units.lifetime),
                        "units": _units(units),
                    }
                )
        yield {"budget": json.loads(canonical(budget.spec())), "interval": clock.interval, "asked": asked}


def splits() -> Iterator[dict[str, Any]]:
    """Budgets, and how they are divided between memos and the other questions."""
    shares = QuestionSpec(kind="histogram", field="a", epsilon=1.0, mechanism="GRR")
    stream = QuestionSpec(kind="stream", field="a", epsilon=1.0, method="LPU", w=5)
    memo = QuestionSpec(kind="memo", field="a", epsilon=0.5, permanent=1.0)
    asked = [[shares], [memo], [shares, memo], [shares, stream, memo], [shares, stream]]
    budgets = [
        Budget.of(event=9.0),
        Budget.of(window=(30.0, 7)),
        Budget.of(user=100.0),
        Budget.of(event=9.5, window=(25.0, 7), user=77.0),
    ]
    for questions in asked:
        for budget in budgets:
            collection = Collection(
                name="split",
                title="split",
                fields={"a": Ordinal(4)},
                questions={f"q{k}": question for k, question in enumerate(questions)},
                budget=budget,
                step_seconds=60,
            )
            split = split_budget(collection, budget.user)
            yield {
                "budget": json.loads(canonical(budget.spec())),
                "questions": [question.spec() for question in questions],
                "asks": _budget(split.asks),
                "memos": _budget(split.memos),
            }


def _budget(budget: Budget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    limit, width = (None, 1) if budget.window is None else budget.window
    units = {"event": budget.event, "window": limit, "user": budget.user}
    return {**{name: None if value is None else str(value) for name, value in units.items()}, "width": width}


def _units(status: Status) -> dict[str, str]:
    named = {"event": status.event, "window": status.window, "user": status.user}
    return {name: str(spending.spent) for name, spending in named.items() if spending is not None}


def vectors() -> dict[str, Any]:
    """What every implementation must agree on; 64-bit numbers are decimal strings."""
    rng = Random(seed="js vectors")
    seeds, values = rng.uint64(20), [0, 1, 2**32 - 1, 2**32, fingerprint("hello")]
    keys = [b"k" * 16, bytes(range(32)), rng.bytes(32)]
    asks = [
        Ask(mechanism=MECHANISMS[0], step=0),
        Ask(mechanism=MECHANISMS[4], step=20_000, cohort=Arc(CIRCLE - 5, 10), standing=True),
        Ask(mechanism=MECHANISMS[11], step=3, view=Binned(1.0, 2.0, 5), cohort=EVERYONE),
        Ask(mechanism=MECHANISMS[5], step=3, view=Clipped(-1.0, 2.0)),
    ]
    looks = [None, 0, -0.5, 0.1, 1, 1.5, 2.0, 4, 1e300, -1e300]
    views = [Clipped(0.0, 1.5), Binned(1.0, 2.0, 4), Binned(0.5, 10.0, 3)]
    return {
        "hash32": [
            {"seed": str(seed), "value": str(value), "hash": int(hash32(seed, np.uint64(value)))}
            for seed in seeds
            for value in values
        ],
        "places": [
            {"key": key.hex(), "collection": name, "place": place_on_circle(key, name)}
            for key in keys
            for name in ("weather", "caf\u00e9", "0" * 32)
        ],
        "arcs": [
            {"arc": arc.spec(), "places": places, "holds": arc.holds(np.array(places)).tolist()}
            for places in [[0, 1, 2, 3, CIRCLE // 2, CIRCLE - 3, CIRCLE - 2, CIRCLE - 1]]
            for arc in (EVERYONE, Arc(0, 0), Arc(CIRCLE - 2, 4), Arc(1, 2), Arc(3, CIRCLE - 1), Arc(CIRCLE - 1, 1))
        ],
        "asks": [{"spec": json.loads(canonical(ask.spec())), "ask_id": ask.ask_id} for ask in asks],
        "views": [
            {"view": view.spec(), "values": looks, "sees": [view([_number(value)])[0].item() for value in looks]}
            for view in views
        ]
        + [{"view": Whole().spec(), "values": looks, "sees": looks}],
        "codes": list(codes()),
        "mechanisms": list(reports()),
        "refused": list(refused()),
        "accounts": list(accounts()),
        "splits": list(splits()),
    }


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def test_the_stored_vectors_are_these() -> None:
    assert json.loads(VECTORS.read_text(encoding="utf-8")) == json.loads(json.dumps(vectors()))


def test_the_library_refuses_what_the_vectors_say() -> None:
    from hubbub.core.errors import InvalidValue

    for spec in refused():
        if spec.get("other", 1) == 0:
            continue  # here it means "choose for me"; a device is sent resolved specs only
        try:
            Mechanism.from_spec(spec)
        except (InvalidValue, TypeError):
            continue
        raise AssertionError(spec)


def test_the_browser_agrees(built: Path, node: list[str]) -> None:
    test = Path(__file__).with_name("vectors.test.mjs")
    done = subprocess.run(
        [*node, "--test", str(test)],
        env={"HUBBUB_JS": str(built / "internals.mjs"), "HUBBUB_VECTORS": str(VECTORS.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    text = json.dumps(vectors(), ensure_ascii=False, separators=(",", ":"))
    VECTORS.write_text(text.replace('{"', '\n{"') + "\n", encoding="utf-8")
