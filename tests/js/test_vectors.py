"""The browser's client computes what the library does. Run this file to write its vectors anew."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub import (
    BLH,
    GRR,
    OLH,
    OUE,
    SOLH,
    SUE,
    BasicRappor,
    BloomRappor,
    ExSub,
    Hybrid,
    Loloha,
    NetSeed,
    NetSub,
    Piecewise,
    Rappor,
    SquareWave,
    StochasticRounding,
)
from hubbub.core.domain import Categorical, Domain, KeyValue, Numeric, Ordinal, Sets, Strings
from hubbub.core.domain.texts import BitStrings
from hubbub.core.hashing import fingerprint, hash32
from hubbub.core.migrations import Format
from hubbub.core.spec import canonical
from hubbub.ledger.book import TABLES, Book
from hubbub.ledger.clock import StepRefused
from hubbub.ledger.file import LedgerFile
from hubbub.ledger.promise import Budget, BudgetExceeded, Promise, of_question
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.bundle import Bundle
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.mechanisms.memoised import Memoised
from hubbub.mechanisms.numeric.mean import Ranged
from hubbub.mechanisms.sets.priv_set import PrivSet
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.split_unary import SplitUnary
from hubbub.mechanisms.stateful import Stateful
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.mechanisms.ternary.vectors import INDEX_SHIFT
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask, group_on_circle, place_on_circle
from hubbub.protocols.changes.net_stream import NetStream
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.views.basic import Among, Binned, Clipped, Whole
from hubbub.protocols.views.records import (
    CellAxis,
    CodeAxis,
    Entries,
    FieldBits,
    GridAxis,
    Joint,
    Joints,
    PublicNumber,
    WithNumbers,
)
from hubbub.protocols.views.sets import Held, Members, On, Size, SubsetCount, Subsets
from hubbub.protocols.views.update import Update, model_hash
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.random.integers import GRAIN
from hubbub.random.source import Random
from hubbub.wire.upload import Entry, encode_upload_json, json_size
from tests.js.tab import RunNode
from tests.ledger.budget_ledger import ShownClock
from tests.vectors import make_prefix

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
    SOLH(epsilon=1.0, domain=1024),
    SOLH(epsilon=3.0, domain=EMOJI, buckets=512),
    OUE(epsilon=1.0, domain=5),
    OUE(epsilon=2.0, domain=8),
    OUE(epsilon=0.001, domain=13),
    OUE(epsilon=14.0, domain=131),
    SUE(epsilon=1.0, domain=EMOJI),
    SUE(epsilon=6.0, domain=2100),
    Rappor(epsilon=4.0),
    Rappor(epsilon=2.0, bits=13, hashes=5, cohorts=300),
    StochasticRounding(epsilon=1.0, low=-3.0, high=10.0),
    Piecewise(epsilon=2.0, cells=6, band=4),
    Piecewise(epsilon=0.3, low=0.1, high=0.7),
    Hybrid(epsilon=0.5, low=0.0, high=20.0),
    Hybrid(epsilon=2.0, low=-1e9, high=1e9),
    Hybrid(epsilon=7.5, low=0.1, high=0.3),
    SquareWave(epsilon=1.0, low=0.0, high=100.0),
    SquareWave(epsilon=2.0, low=-1.0, high=1.0, cells=6, band=4),
    SquareWave(epsilon=0.5, low=-60.0, high=300.0, cells=1023),
    ExSub(epsilon=1.0, dimension=4, sparsity=2, m=2),
    ExSub(epsilon=2.0, dimension=40, sparsity=4),
    ExSub(epsilon=0.1, dimension=300, sparsity=1),
    ExSub(epsilon=30.0, dimension=20, sparsity=20),
    NetSub(epsilon=1.0, dimension=4, sparsity=2, m=5, t=1),
    NetSub(epsilon=1.0, dimension=40, sparsity=4),
    NetSub(epsilon=3.0, dimension=200, sparsity=3),
    NetSeed(epsilon=0.5, dimension=2, sparsity=1),
    NetSeed(epsilon=1.0, dimension=4, sparsity=3, t=3),
    NetSeed(epsilon=1.0, dimension=128, sparsity=8),
    Measured(epsilon=1.0, domain=3, measures=2),
    Measured(epsilon=2.0, domain=300, measures=1),
    Measured(epsilon=1.0, domain=EMOJI, oracle=OUE(epsilon=1.0, domain=EMOJI), measures=1),
    Bundle(epsilon=2.0, oracles=(GRR(epsilon=1.0, domain=3), OLH(epsilon=1.0, domain=40))),
    Bundle(epsilon=1.0, oracles=(OLH(epsilon=0.4, domain=BitStrings(40)), GRR(epsilon=0.6, domain=300)), measures=2),
    PSFO(epsilon=1.0, domain=Sets(Ordinal(4), most=2), oracle="GRR"),
    PSFO(epsilon=2.0, domain=300, length=7),
    PSFO(epsilon=0.5, domain=70_000, length=1, oracle="OLH"),
    PSFO(epsilon=1.0, domain=EMOJI, length=2, oracle="OUE"),
    SplitUnary(epsilon=1.0, domain=Sets(Ordinal(4), most=2)),
    SplitUnary(epsilon=3.0, domain=Sets(EMOJI, most=4)),
    SplitUnary(epsilon=9.0, domain=Sets(Ordinal(21), most=3)),
    PrivSet(epsilon=1.0, domain=Sets(Ordinal(4), most=2)),
    PrivSet(epsilon=3.0, domain=Sets(EMOJI, most=3), m=5, t=2),
    PrivSet(epsilon=0.5, domain=Sets(Ordinal(300), most=6)),
    PrivSet(epsilon=0.1, domain=Sets(Ordinal(40), most=2), m=41, t=2),
]
MEMOS: list[BasicRappor | BloomRappor | Loloha] = [
    BasicRappor(epsilon=2.0, domain=8),
    BasicRappor(epsilon=9.0, domain=EMOJI),
    Loloha(epsilon=2.0, domain=1024),
    Loloha(epsilon=3.0, domain=["a", "b", "c", "d", "e"], buckets=2),
    Loloha(epsilon=6.0, domain=300, report_epsilon=1.5),
    BloomRappor(epsilon=4.0),
    BloomRappor(epsilon=6.0, bits=13, hashes=5, cohorts=300, keep=0xC0000001),
    BloomRappor(epsilon=2.0, bits=4, hashes=3, cohorts=1),
]
STREAMS: list[Stateful] = [
    ChangeStream(epsilon=1.0, dimension=2, steps=24, changes=2),
    ChangeStream(epsilon=3.0, dimension=5, steps=24, changes=7, one=True),
    ChangeStream(epsilon=0.4, dimension=1, steps=10, changes=3, fanout=3),
    ChangeStream(epsilon=8.0, dimension=12, steps=5, changes=40),
    NetStream(epsilon=0.5, dimension=2, steps=24, changes=2),
    NetStream(epsilon=4.0, dimension=3, steps=9, changes=5, one=True),
]


class Given(Random):
    """A stream that hands out the given bytes, and then others of its own; it remembers all that was drawn."""

    def __init__(self, given: bytes) -> None:
        super().__init__()
        self.given, self.more, self.drawn = given, Random(seed=given), b""

    def fill(self, out: NDArray[Any]) -> None:
        flat = out.reshape(-1).view(np.uint8)
        if len(self.given) < flat.size:
            self.given += self.more.bytes(flat.size - len(self.given))
        taken, self.given = self.given[: flat.size], self.given[flat.size :]
        flat[:] = np.frombuffer(taken, dtype=np.uint8)
        self.drawn += taken


def blocks(mechanism: Mechanism, value: Any) -> Iterator[bytes]:
    """Random bytes for one report: ordinary ones, the extremes, and those on either side of each threshold."""
    counting = Given(b"")
    mechanism.randomize([value], counting)
    size = len(counting.drawn)
    choosing: Any = mechanism.inner if isinstance(mechanism, PSFO) else mechanism
    rng = Random(seed=f"{mechanism.spec_id} {value}")
    if size > 1000:  # for its long column alone
        yield rng.bytes(size)
        return
    for _ in range(3):
        yield rng.bytes(size)
    yield bytes(size)
    yield b"\xff" * size
    if isinstance(mechanism, TernaryMechanism | PrivSet):
        before = 8 if isinstance(mechanism, TernaryMechanism) else 0
        for border in borders(mechanism):
            rest = b"".join(near(random.Random(f"{value} {border}")) for _ in range((size - before) // 4 - 2))
            yield rng.bytes(before) + border.to_bytes(8, "little") + rest
    elif isinstance(mechanism, Ranged):
        for draw in (getattr(mechanism, name) for name in ("coin", "other", "flip") if hasattr(mechanism, name)):
            for edge in (draw - 1, draw, 2**64 - draw - 1, 2**64 - draw):
                yield b"".join(
                    rng.bytes(8) if k % 2 else (edge % 2**64).to_bytes(8, "little") for k in range(size // 8)
                )
    elif hasattr(choosing, "other"):
        options = getattr(choosing, "buckets", None) or choosing.size
        keep = (1 << 64) - (options - 1) * choosing.other
        for draw in (keep - 1, keep, keep + choosing.other - 1, keep + choosing.other):
            yield rng.bytes(size - 8) + (draw % (1 << 64)).to_bytes(8, "little")
    else:
        octets = getattr(mechanism, "width", 32) // 8
        for threshold in (getattr(mechanism, name) for name in ("one", "zero") if hasattr(mechanism, name)):
            for draw in (threshold - 1, threshold):
                yield draw.to_bytes(octets, "little") * (size // octets)


def borders(mechanism: Any) -> list[int]:
    """64 bits that cannot decide among groups, and those next to them."""
    own = mechanism.overlap_choice if isinstance(mechanism, PrivSet) else None
    choice = own or (mechanism._groups[1] if isinstance(mechanism, SignedSets) else mechanism._trues)
    first: list[int] = choice._first_bits.tolist()
    return [bits + more for bits in first[:: max(1, len(first) // 4)] for more in (0, 1) if bits + more < 1 << 64]


def near(rng: random.Random) -> bytes:
    """32 bits at a border of some shares: where they cannot decide, more are drawn."""
    shares = rng.randrange(1, 90)
    return (rng.randrange(shares) * 2**32 // shares).to_bytes(4, "little")


def reports() -> Iterator[dict[str, Any]]:
    """Every mechanism with given randomness, and the bytes that it must send."""
    for mechanism in MECHANISMS:
        made = []
        for value in values_of(mechanism):
            for block in blocks(mechanism, value):
                given = Given(block)
                sent = mechanism.randomize([value], given).to_bare()
                shown = sorted(value.items()) if isinstance(value, dict) else value
                if getattr(mechanism, "measures", 0):
                    shown = value[0], [None if number != number else number for number in value[1]]
                made.append({"value": shown, "random": given.drawn.hex(), "bytes": sent.hex()})
        yield {
            "spec": json.loads(canonical(mechanism.spec())),
            "spec_id": mechanism.spec_id,
            "spent": str(mechanism.event().spent),
            "bytes": mechanism.report_bytes,
            "reports": made,
        }


def values_of(mechanism: Mechanism) -> list[Any]:
    """A few values, real numbers and too many keys among them."""
    if isinstance(mechanism, TernaryMechanism):
        many = range(min(mechanism.dimension, 2 * mechanism.sparsity))
        real = {key: (-1) ** key * key / (len(many) + 1) for key in many}
        return [*mechanism.example_values(3), real, {mechanism.dimension - 1: 0.3}]
    if isinstance(mechanism, Measured):
        numbers = [0.1, float("nan")], [-1e300, 5e-324]
        return [(code, row[: mechanism.measures]) for code in mechanism.inner.example_values(2) for row in numbers]
    if isinstance(mechanism, Bundle):
        rows = mechanism.example_values(40)[::13]
        return [(row[0], [0.1, float("nan")]) for row in rows] if mechanism.measures else rows
    if isinstance(mechanism, Rappor):
        return ["", "hello", "caf\u00e9", "cafe\u0301"]
    return mechanism.example_values(4)


def transcripts() -> Iterator[dict[str, Any]]:
    """Devices that remember: what each step costs, is paid or not, and sends, from given randomness."""
    devices: list[Stateful] = [*MEMOS, *STREAMS]
    for mechanism in devices:
        for device in range(6):
            rng = random.Random(f"{mechanism.spec_id} {device}")
            given = Given(rng.randbytes(12))
            states = mechanism.enroll(1, given)
            enrolled, turns = given.drawn.hex(), list[dict[str, Any]]()
            steps = sorted(rng.sample(range(24), 12))
            for step in steps:
                if turns and mechanism.state_key(step) != mechanism.state_key(turns[-1]["step"]):
                    break
                value = seen_by(mechanism, rng)
                (price,) = mechanism.price(states, step, [value]).tolist()
                paid = not price or rng.random() < 0.6
                given = Given(rng.randbytes(8))
                states, made, speaks = mechanism.step(states, step, [value], given, np.array([paid]))
                told, sends = mechanism.with_enrolment(states, made, speaks, np.array([True]))
                turns.append(
                    {
                        "step": step,
                        "seen": value,
                        "price": str(price),
                        "paid": paid,
                        "random": given.drawn.hex(),
                        "report": made.to_bare().hex() if speaks[0] else None,
                        "enrolment": told.to_bare().hex() if sends[0] else None,
                    }
                )
            event = mechanism.permanent_event() if isinstance(mechanism, Memoised) else mechanism.event()
            yield {
                "spec": json.loads(canonical(mechanism.spec())),
                "spec_id": mechanism.spec_id,
                "spent": str(event.spent),
                "bytes": mechanism.report_bytes,
                "enrolled": enrolled,
                "turns": turns,
            }


def seen_by(mechanism: Stateful, rng: random.Random) -> Any:
    """A value that a device of the mechanism may hold."""
    if isinstance(mechanism, ChangeStream):
        if mechanism.one:
            return rng.randrange(mechanism.dimension + 1)
        return [rng.randrange(2) for _ in range(mechanism.dimension)]
    if isinstance(mechanism, BloomRappor):
        return rng.choice(["", "hello", "caf\u00e9", "cafe\u0301"])
    assert isinstance(mechanism, BasicRappor | Loloha)
    return rng.choice(mechanism.example_values(4))


def refused() -> Iterator[dict[str, Any]]:
    """Specs that no client may answer: they spend a little more than they say, or are not what they seem."""
    mechanism: Any
    for mechanism in (*MECHANISMS, *MEMOS):
        spec: dict[str, Any] = json.loads(canonical(mechanism.spec()))
        if isinstance(mechanism, PSFO | Measured):
            inner = spec["oracle"]
            if "other" in inner:
                yield {**spec, "oracle": {**inner, "other": json.loads(canonical(int(inner["other"]) - 1))}}
            yield {**spec, "oracle": {**inner, "domain": {"kind": "ordinal", "size": mechanism.inner.size + 1}}}
            if isinstance(mechanism, PSFO):  # as if it were amplified, or more
                bolder = type(mechanism.inner)(epsilon=1.4 * mechanism.inner.epsilon, domain=mechanism.inner.domain)
                yield {**spec, "oracle": json.loads(canonical(bolder.spec()))}
            yield {**spec, "oracle": {"mechanism": "Nothing"}}
            yield {**spec, "oracle": spec}
        if hasattr(mechanism, "other"):
            less = mechanism.other - getattr(mechanism, "band", 1)
            if getattr(mechanism, "coin", 0) != 1 << 64:  # where the coin always falls on rounding, it is of no use
                yield {**spec, "other": json.loads(canonical(less))}
            yield {**spec, "other": 0}
        elif isinstance(mechanism, Bundle):
            first, second = spec["oracles"]
            bolder = json.loads(canonical(GRR(epsilon=1.5, domain=3).spec()))
            yield {**spec, "oracles": [bolder, second]}
            yield {**spec, "oracles": [first]}
            yield {**spec, "oracles": [first, {"mechanism": "Nothing"}]}
            yield {**spec, "oracles": [first, spec]}
            yield {**spec, "oracles": [first, json.loads(canonical(OLH(epsilon=0.1, domain=EMOJI).spec()))]}
            yield {**spec, "measures": 65}
        elif isinstance(mechanism, PSFO):
            yield {**spec, "length": mechanism.length + 1}
            yield {**spec, "domain": {**spec["domain"], "most": mechanism.size + 1}}
        elif isinstance(mechanism, Measured):
            yield {**spec, "measures": 0}
            yield {**spec, "measures": 65}
        elif isinstance(mechanism, PrivSet):
            yield {**spec, "least": json.loads(canonical(mechanism.least - 1))}
            yield {**spec, "m": mechanism.elements}
            yield {**spec, "t": mechanism.t + mechanism.m}
            yield {**spec, "domain": {**spec["domain"], "most": mechanism.size + 1}}
        elif isinstance(mechanism, SplitUnary):
            yield {**spec, "zero": mechanism.zero - 1}
            yield {**spec, "one": mechanism.one + (1 << 20)}
            yield {**spec, "one": mechanism.zero}
            yield {**spec, "domain": {**spec["domain"], "most": mechanism.sets.most + 1}}
        elif hasattr(mechanism, "least"):
            yield {**spec, "least": json.loads(canonical(mechanism.least - 1))}
            yield {**spec, "sparsity": mechanism.dimension + 1}
            yield {**spec, "bits": 4096}
        elif hasattr(mechanism, "one"):
            yield {**spec, "zero": mechanism.zero - 1, "one": mechanism.one + 1}
            yield {**spec, "one": mechanism.zero}
            yield {**spec, "width": 24}
        else:
            yield {**spec, "zero": mechanism.zero - 1}
        permanent = getattr(mechanism, "permanent_epsilon", mechanism.effective_epsilon)
        yield {**spec, "epsilon": float(np.nextafter(permanent, 0))}
        yield {**spec, "epsilon": -1}
        yield {**spec, "epsilon": "1"}
        yield {**spec, "extra": 1}
        yield {key: value for key, value in spec.items() if key != list(spec)[-1]}
        if "domain" in spec and not isinstance(mechanism, Rappor):
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


class Shown(ShownClock):
    """A clock that shows what it is told, on the grid in force."""

    def spec(self) -> dict[str, Any]:
        return {}


GRIDS = [(60, 0), (60, 7), (300, 0), (1000, 3)]
ACCOUNTS = ("asks", "memo:f:x", "memo:f:y")


def ledgers() -> Iterator[dict[str, Any]]:
    """Promises that were made and debits that were asked for, in turn, on clocks that jump, and what a ledger said."""
    for number in range(50):
        rng = random.Random(f"ledgers {number}")
        # On a coarse grid a clock may be set back within the step: the grids of the promises are finer.
        clock = Shown(rng.choice((60, 1000, 10**9)))
        file = LedgerFile(":memory:", {}, TABLES, Format("version", 2))
        turns: list[Any] = []
        book, scale = Book(file, clock), 1 if number % 10 else 10**15
        for turn in range(60):
            clock.wall = max(0, clock.wall + rng.choice((0, 1, 20, 60, 60, 300, 900, -60, -400)))
            clock.trusted += rng.choice((0, 20, 60, 60, 200, 300))
            made = [_promise(rng, scale) for _ in range(rng.randrange(1, 4))] if rng.random() < 0.04 or not turn else []
            with file.transaction():
                book.promise(made)
            account, question, cost = rng.choice(ACCOUNTS), rng.choice("pq"), rng.randrange(1, 9) * scale
            until = clock.wall + rng.choice((-50, 30, 500, 2000)) if rng.random() < 0.2 else None  # paid beforehand
            try:
                with file.transaction():
                    book.spend(clock.step, account, question, cost, until=until)
                taken = True
            except (BudgetExceeded, StepRefused):
                taken = False
            with file.transaction():
                kept = len(book.promises())
            made_specs = [{**promise.spec(), "question": _about(promise)} for promise in made]
            debit = [account, question, str(cost), clock.wall, clock.trusted]
            turns.append({"made": made_specs, "kept": kept, "debit": debit, "until": until, "taken": taken})
        file.close()
        yield json.loads(canonical({"interval": clock.interval, "turns": turns}))


def _promise(rng: random.Random, scale: int) -> Promise:
    limit, steps = rng.randrange(20, 90) * scale, rng.choice((0, 1, 1, 2, 3, 5))
    interval, origin = rng.choice(GRIDS) if steps else (0, 0)
    limit *= 1 if steps else 5
    if rng.random() < 0.4:
        return Promise(limit, steps, interval, origin, scope=of_question(rng.choice("pq")))
    parts, left = {}, limit
    for account in rng.sample(ACCOUNTS, rng.choice((2, 3, 3))):
        parts[account] = min(left, rng.randrange(limit // 4, limit // 2))
        left -= parts[account]
    return Promise(limit, steps, interval, origin, parts=parts)


def _about(promise: Promise) -> str | None:
    return promise.scope.removeprefix(of_question("")) or None


def collections() -> list[Collection]:
    """A question of every kind."""
    fields: dict[str, Domain] = {
        "a": Ordinal(4),
        "b": Categorical(EMOJI.names[:4]),
        "c": Ordinal(5000),
        "k": KeyValue(("x", "y", "z"), low=-1.0, high=5.0, most=2),
        "n": Numeric(0.0, 20.0, cells=8),
        "on": Ordinal(2),
        "s": Sets(Ordinal(9), most=3),
        "w": Strings(longest=16),
    }
    methods = ("LBU", "LBD", "LPU", "LPA")
    streams = {method.lower(): _question("stream", "a", method=method, w=5) for method in methods}
    shares = {
        "hist": _question("histogram", "b", epsilon=1.5),
        "numbers": _question("histogram", "n", epsilon=0.7),
        "sizes": _question("histogram", "s", of="size"),
        "items": _question("histogram", "s", epsilon=3.0),
        "words": _question("histogram", "w", candidates=("yes", "no")),
        "mean": _question("mean", "n"),
        "flow": _question("stream", "n", method="LBA", w=5),
        "keys": _question("keyvalue", "k"),
        "shares": _question("keyvalue", "k", of="frequency"),
    }
    lasting = {
        "hist": shares["hist"],
        "memo": _question("memo", "a", epsilon=0.5, permanent=1.0),
        "other": _question("memo", "b", epsilon=0.5, permanent=2.0),
        "large": _question("memo", "c", epsilon=0.5, permanent=2.0),
        "moves": _question("changes", "b", steps=8, changes=3),
        "awake": _question("changes", "on", steps=8, changes=3),
        "owned": _question("changes", "s", steps=8, changes=3),
    }
    budgets = [Budget.of(event=30.0, user=400.0), Budget.of(window=(60.0, 7), user=10**6)]
    return [
        Collection(
            name="vectors",
            title="vectors",
            fields=fields,
            questions=lasting if at else {**shares, **streams},
            budget=budget,
            step_seconds=(3600, 60)[at],
            origin=(0, 17)[at],
        )
        for at, budget in enumerate(budgets)
    ]


def _question(kind: str, field: str, epsilon: float = 1.0, **keys: Any) -> Question:
    return Question.make(kind=kind, field=field, epsilon=epsilon, **keys)


def documents() -> Iterator[dict[str, Any]]:
    """Signed documents, changes for which a device refuses them, and what their questions ask first."""
    for collection in collections():
        spec: dict[str, Any] = json.loads(canonical(collection.spec()))
        changes = [{"change": change, "why": why} for why, change in unsafe(spec)]
        yield {"spec": spec, "changes": [{"change": {}, "why": ""}, *changes], "asks": list(asks(collection))}


def unsafe(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes to a document, and what a device refuses it for; nothing, where a reason makes it right again."""
    name = "hist"
    (promise,) = spec["terms"][name]["promises"]
    whole, *rest = spec["promises"]
    nine, batch = {"epsilon_above_8": "because"}, {"minimum_batch_below_20": "because"}
    study = {"start": 0, "round_seconds": 60, "every": 0}

    def terms(**change: Any) -> dict[str, Any]:
        return {"terms": {name: {**spec["terms"][name], **change}}}

    yield "minimum_batch", {"minimum_batch": 19}
    yield "", {"minimum_batch": 19, "overrides": batch}
    yield "minimum_batch", {"minimum_batch": 19, "overrides": nine}
    yield "minimum_arc", {"planned_devices": 99_499}
    yield "", {"planned_devices": 99_501}
    yield "", {"planned_devices": 1000, "overrides": {"arc_below_100": "because"}}
    yield "planned_devices", {"planned_devices": 0}
    for large in (terms(limit=8 * 10**12 + 1), terms(promises=[{**promise, "limit": 8 * 10**12 + 1}])):
        yield "epsilon", large
        yield "", {**large, "overrides": nine}
    yield "", terms(promises=[{**promise, "limit": 8 * 10**12}])
    yield "", terms(promises=[{"limit": 9 * 10**12, "steps": 0, "interval": 0, "origin": 0}])
    yield "promises", {"promises": []}
    yield "promises", {"promises": [{**whole, "parts": {**whole["parts"], "asks": 10**12}}, *rest]}
    yield "promises", {"promises": [{**whole, "parts": {}}, *rest]}
    yield "parts", {"promises": [{**whole, "parts": {**whole["parts"], "asks": whole["limit"], "more": 1}}, *rest]}
    yield "account", terms(account="others")
    yield "account", terms(state="BasicRappor")
    yield "fields", terms(fields=["nothing"])
    yield "fields", terms(fields=[])
    yield "views", terms(views=[])
    yield "rounds", terms(rounds=0)
    yield "parts", terms(parts=0)
    yield "limit", terms(limit=0)
    yield "report_bytes", terms(report_bytes=0)
    yield "families", terms(families=[{"mechanism": "GRR"}])
    yield "units", terms(families=[{"mechanism": "GRR", "units": [0]}])
    yield "frozen", terms(frozen="value")
    yield "frozen", terms(frozen="study")
    yield "frozen", terms(study=study)
    yield "", terms(study=study, frozen="study")
    yield "every", terms(study={**study, "every": 119}, frozen="study", rounds=2)
    yield "study", terms(study={"start": 0}, frozen="study")
    yield "round_seconds", terms(study={**study, "round_seconds": 0}, frozen="study")
    yield "terms", terms(more=1)
    yield "promises", terms(promises=[])
    yield "promise", terms(promises=[{**promise, "parts": {}}])
    yield "interval", terms(promises=[{**promise, "interval": 0}])
    yield "origin", terms(promises=[{"limit": 1, "steps": 0, "interval": 0, "origin": 1}])
    yield "limit", terms(promises=[{**promise, "limit": -1}])
    yield "frame_bytes", {"frame_bytes": 0}
    yield "format", {"format": 2}
    yield "name", {"name": "others"}


def asks(collection: Collection) -> Iterator[dict[str, Any]]:
    """What every question asks first, as it is published."""
    for name in collection.questions:
        asked = next(collection.protocol(name))
        ask = asked[0] if isinstance(asked, list) else asked
        assert isinstance(ask, Ask)
        named: dict[str, Any] = {"question": name, "run": 0, "step": 9, "round": 1, "part": 0}
        named["closes"] = collection.opens(10)
        inner = {**ask.spec(), "step": 9, "cohort": EVERYONE.spec()}
        yield json.loads(canonical({**named, "ask": inner}))


def frames() -> Iterator[dict[str, Any]]:
    """Readable uploads, letter for letter."""
    for question, (run, step, turn, part), length, size in (
        ("popular", (0, 7, 1, 0), 3, 1024),
        ("q", (0, 10**9, 2, 0), 0, 1024),
        ("a-long_name" * 5, (12, 0, 900, 31), 900, 1024),
        ("study", (2, 0, 3, 1), 3000, 4096),
    ):
        answer = {"question": question, "run": run, "step": step, "round": turn, "part": part}
        name = {"collection": "themes", "version": 3, **answer, "size": json_size(size)}
        entry = Entry(question, run, step, turn, part, bytes(range(16)), bytes(k % 256 for k in range(length)))
        body = encode_upload_json("themes", 3, [entry], size)
        yield {**name, "id": entry.report_id.hex(), "report": entry.report.hex(), "body": body.decode()}
        cover = encode_upload_json("themes", 3, [], size)
        yield {**name, "id": entry.report_id.hex(), "report": entry.report.hex(), "cover": True, "body": cover.decode()}


def vectors() -> dict[str, Any]:
    """What every implementation must agree on; 64-bit numbers are decimal strings."""
    rng = Random(seed="js vectors")
    seeds, values = rng.uint64(20), [0, 1, 2**32 - 1, 2**32, fingerprint("hello")]
    keys = [b"k" * 16, bytes(range(32)), rng.bytes(32)]
    looks = [None, 0, -0.5, 0.1, 1, 1.5, 2.0, 4, 1e300, -1e300]
    views = [Clipped(0.0, 1.5), Binned(1.0, 2.0, 4), Binned(0.5, 10.0, 3)]
    sets: list[Any] = [[], [0], [2, 5, 7], [0, 1, 2, 3, 4, 5, 6, 7]]
    pairs: list[Any] = [[], [[0, 3.0]], [[0, 0.5], [2, 9.0], [7, 1.0]], [[1, 1.0], [2, 5.0], [3, 4.99]]]
    codes_seen = [0, 1, 2, 3, 7, 2**40]
    others: list[tuple[Any, list[Any]]] = [
        (Size(3), sets),
        (Members(6), sets),
        (Held(4, 1.0, 5.0), pairs),
        (On(), codes_seen),
        (Among((0, 3, 2**40)), codes_seen),
        (Among((2,)), codes_seen),
        (Subsets(((0,), (2,), (2, 5), (2, 5, 7), (2, 6), (5,), (2**40,))), sets),
        (SubsetCount(((0,), (2,), (2, 5), (2, 5, 7), (2, 6), (5,), (2**40,))), sets),
    ]
    return {
        "hash32": [
            {"seed": str(seed), "value": str(value), "hash": int(hash32(seed, np.array(value, dtype=np.uint64)))}
            for seed in seeds
            for value in values
        ],
        "places": [
            {
                "key": key.hex(),
                "collection": name,
                "place": place_on_circle(key, name),
                "groups": [group_on_circle(key, name, groups) for groups in (1, 2, 3, 1000)],
            }
            for key in keys
            for name in ("weather", "caf\u00e9", "0" * 32)
        ],
        "arcs": [
            {"arc": arc.spec(), "places": places, "holds": arc.holds(np.array(places)).tolist()}
            for places in [[0, 1, 2, 3, CIRCLE // 2, CIRCLE - 3, CIRCLE - 2, CIRCLE - 1]]
            for arc in (EVERYONE, Arc(0, 0), Arc(CIRCLE - 2, 4), Arc(1, 2), Arc(3, CIRCLE - 1), Arc(CIRCLE - 1, 1))
        ],
        "views": [
            {"view": view.spec(), "values": looks, "sees": [view([_number(value)])[0].item() for value in looks]}
            for view in views
        ]
        + [
            {"view": view.spec(), "values": values, "sees": [_shown(view([value])[0]) for value in values]}
            for view, values in others
        ]
        + [{"view": Whole().spec(), "values": looks, "sees": looks}],
        "entries": entries(),
        "joint": list(joint()),
        "updates": list(updates()),
        "withnumbers": with_numbers(),
        "codes": list(codes()),
        "mechanisms": list(reports()),
        "transcripts": list(transcripts()),
        "refused": list(refused()),
        "ledgers": list(ledgers()),
        "documents": list(documents()),
        "frames": list(frames()),
    }


def joint() -> Iterator[dict[str, Any]]:
    """Cells of records of several fields, with the random bytes that numbers are rounded by."""
    codes, cells = CodeAxis("os", codes=4), CellAxis("age", low=0.0, high=99.0, cells=9)
    grid = GridAxis("age", low=-1.5, high=3.0, points=4)
    views = [
        Joint((codes, CodeAxis("crashed", codes=3))),
        Joint((cells, CodeAxis("os", codes=4, width=3))),
        Joint((CellAxis("age", low=0.0, high=99.0, cells=9, width=5), codes)),
        Joint((codes, grid)),
        Joint((grid, codes, GridAxis("os", low=0.0, high=3.0, points=2))),
        Joint((CodeAxis("os", codes=2**52), CodeAxis("crashed", codes=2))),
    ]
    ages: list[Any] = [None, -7.0, -1.5, 0.0, 0.1, 10.999999999, 11.0, 98.9, 1e300, 3.0, 1.5]
    records: list[Any] = [{"os": at % 5, "age": age, "crashed": at % 3} for at, age in enumerate(ages)]
    records += [{"os": None, "age": 2.0, "crashed": -1}, {"age": 1.0}, {"os": 2**40, "age": "x", "crashed": 0.5}]
    for view in views:
        rng, drawn, sees = Random(seed=str(view)), [], []
        for record in records:
            given = Given(rng.bytes(8))
            sees.append(int(view.look([record], given)[0]))
            drawn.append(given.drawn.hex())
        yield {"view": view.spec(), "size": view.size, "values": records, "drawn": drawn, "sees": sees}


def entries() -> dict[str, Any]:
    """Several fields as one row of 0 and 1; all of a field are 0 where nothing was recorded."""
    view = Entries((FieldBits("os", "code", 3), FieldBits("dark", "bit", 1), FieldBits("tags", "items", 4)))
    values: list[Any] = [
        {"os": 2, "dark": 1, "tags": [0, 3]},
        {"os": 0, "dark": 0, "tags": []},
        {"os": 3, "dark": 2, "tags": [4, 1]},
        {"os": None, "tags": None},
        {"os": -1, "dark": -1, "tags": 2},
    ]
    return {"view": view.spec(), "values": values, "sees": view(values).tolist()}


def updates() -> Iterator[dict[str, Any]]:
    """Vectors as they are stored, and the signs that they are rounded to by 4 random bytes."""
    values: list[Any] = [
        [],
        [[0, 0.5]],
        [[0, 0.25], [2, -0.125], [4, 0.0625]],
        [[at, 0.5 - (at % 2)] for at in range(6)],
        [[0, 8.0], [5, -4.0]],
        [[3, 1e300], [4, 1.0]],
        [[-1, 1.0], [6, 1.0], [1, -0.5]],
    ]
    for clip in (0.5, 2.0):
        view = Update(model_hash(str(clip).encode()), 6, 2, clip)
        drawn = ["00000000", "ffffffff", "00000080", "ffffff3f", "12345678"]
        sees = [
            [_ternary(view.look([value], Given(bytes.fromhex(bits))).entries[0]) for bits in drawn] for value in values
        ]
        yield {"view": view.spec(), "bytes": view.content_bytes, "values": values, "drawn": drawn, "sees": sees}


def _ternary(entries: NDArray[np.int64]) -> list[list[int]]:
    """Pairs of position and sign."""
    held = entries[entries >= 0]
    return [[int(entry >> INDEX_SHIFT), 1 if entry & (2 * GRAIN - 1) else -1] for entry in held]


def with_numbers() -> dict[str, Any]:
    """Cells, and with them numbers that are sent as they are: null where there is none."""
    numbers = PublicNumber("price", low=0.0, high=9.5), PublicNumber("age", low=-1.0, high=1.0)
    view = WithNumbers(Joint((CodeAxis("os", codes=4), CodeAxis("crashed", codes=3))), numbers)
    records = [
        {"os": 1, "crashed": 2, "price": 3.25, "age": 7.0},
        {"os": 9, "price": -4.0},
        {"crashed": 0, "age": None},
    ]
    seen = view(records)
    sees = [
        [int(code), [None if number != number else number for number in row]]
        for code, row in zip(seen["code"], seen["measures"].tolist(), strict=True)
    ]
    several = Joints((view.of, Joint((CodeAxis("os", codes=4, width=3),))))  # type: ignore[arg-type]
    both = WithNumbers(several, numbers[:1])(records)
    return {
        "view": view.spec(),
        "gives": ["12 with 2", "4 bits with 2"],
        "values": records,
        "sees": sees,
        "several": {
            "view": several.spec(),
            "numbers": [dict(vars(number)) for number in numbers[:1]],
            "sees": several(records).tolist(),
            "with": [
                [codes, [None if number != number else number for number in row]]
                for codes, row in zip(both["code"].tolist(), both["measures"].tolist(), strict=True)
            ],
        },
    }


def _shown(seen: Any) -> Any:
    if isinstance(seen, dict):
        return [list(pair) for pair in seen.items()]
    return [code for code in seen.tolist() if code >= 0] if seen.ndim else seen.item()


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


def test_the_stored_prefixes_are_these() -> None:
    stored = json.loads(make_prefix.PLACE.read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(make_prefix.vectors()))


def test_the_browser_agrees(run_node: RunNode) -> None:
    run_node("vectors.test.mjs", "--test", HUBBUB_VECTORS=str(VECTORS.parent))


def test_the_browser_sees_and_sends_prefixes_alike(run_node: RunNode) -> None:
    run_node("prefix.test.mjs", "--test", HUBBUB_VECTORS=str(VECTORS.parent))


if __name__ == "__main__":
    text = json.dumps(vectors(), ensure_ascii=False, separators=(",", ":"))
    VECTORS.write_text(text.replace('{"', '\n{"') + "\n", encoding="utf-8")
