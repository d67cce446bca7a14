"""The browser's client computes what the library does. Run this file to write its vectors anew."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub import BLH, GRR, OLH, OUE, SUE, BasicRappor
from hubbub.client.admit import admit
from hubbub.client.documents import Published, Refused
from hubbub.collection import Collection, QuestionSpec
from hubbub.collection.wire import Entry, encode_upload_json
from hubbub.core.domain import Categorical, Numeric, Ordinal
from hubbub.core.event import units_of
from hubbub.core.hashing import fingerprint, hash32
from hubbub.core.migrations import Format
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.spec import canonical
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.first_hash import with_first_hash
from hubbub.mechanisms.memo.memo import Memoised
from hubbub.privacy.book import Book
from hubbub.privacy.budget import Budget, BudgetExceeded
from hubbub.privacy.clock import Observation, StepRefused
from hubbub.privacy.ledger_file import LedgerFile
from hubbub.privacy.ledger_store import TABLES
from hubbub.privacy.promise import Promise, of_question
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, EVERYONE, Arc, place_on_circle
from hubbub.protocols.view import Binned, Clipped, Whole
from hubbub.protocols.window import epsilons

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
    with_first_hash(BLH(epsilon=1.0, domain=12)),
    with_first_hash(OLH(epsilon=5.9, domain=1 << 20)),
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
    made = report(mechanism, value, given).to_bare()
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
    """A clock that shows what it is told, on the grid in force."""

    origin = 0

    def __init__(self, interval: int) -> None:
        self.interval, self.wall, self.trusted = interval, 0, 0

    @property
    def step(self) -> int:
        return self.wall // self.interval

    def spec(self) -> dict[str, Any]:
        return {}

    def observe(self, last: Observation | None) -> Observation:
        return Observation(self.step, self.wall, 0, self.trusted)


GRIDS = [(60, 0), (60, 7), (300, 0), (1000, 3)]
ACCOUNTS = ("asks", "memo:f:x", "memo:f:y")


def ledgers() -> Iterator[dict[str, Any]]:
    """Promises that were made and debits that were asked for, in turn, on clocks that jump, and what a ledger said."""
    for number in range(50):
        rng = random.Random(f"ledgers {number}")
        # On a coarse grid a clock may be set back within the step: the grids of the promises are finer.
        clock = Shown(rng.choice((60, 1000, 10**9)))
        file = LedgerFile(":memory:", {}, TABLES, Format("version", 2))
        turns = []
        book, scale = Book(file, clock), 1 if number % 10 else 10**15
        for turn in range(60):
            clock.wall = max(0, clock.wall + rng.choice((0, 1, 20, 60, 60, 300, 900, -60, -400)))
            clock.trusted += rng.choice((0, 20, 60, 60, 200, 300))
            made = [_promise(rng, scale) for _ in range(rng.randrange(1, 4))] if rng.random() < 0.04 or not turn else []
            with file.transaction():
                book.promise(made)
            account, question, cost = rng.choice(ACCOUNTS), rng.choice("pq"), rng.randrange(1, 9) * scale
            try:
                with file.transaction():
                    book.spend(clock.step, account, question, cost)
                taken = True
            except (BudgetExceeded, StepRefused):
                taken = False
            with file.transaction():
                promises = [{**promise.spec(), "question": _about(promise)} for promise in book.promises()]
            turns.append(
                {
                    "made": [{**promise.spec(), "question": _about(promise)} for promise in made],
                    "kept": len(promises),
                    "debit": [account, question, str(cost), clock.wall, clock.trusted],
                    "taken": taken,
                }
            )
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
    """A question of every kind that a browser answers, and of those that it leaves to others."""
    fields = {"a": Ordinal(4), "b": Categorical(EMOJI.names[:4]), "n": Numeric(0.0, 20.0, cells=8)}
    streams = {
        method.lower(): QuestionSpec(kind="stream", field="a", epsilon=1.0, method=method, w=5)
        for method in ("LBU", "LBD", "LPU", "LPA")
    }
    shares = {
        "hist": QuestionSpec(kind="histogram", field="b", epsilon=1.5),
        "numbers": QuestionSpec(kind="histogram", field="n", epsilon=0.7),
    }
    lasting = {
        "memo": QuestionSpec(kind="memo", field="a", epsilon=0.5, permanent=1.0),
        "other": QuestionSpec(kind="memo", field="b", epsilon=0.5, permanent=2.0),
    }
    budgets = [Budget.of(event=20.0, user=400.0), Budget.of(window=(60.0, 7), user=10**6)]
    return [
        Collection(
            name="vectors",
            title="vectors",
            fields=fields,
            questions={**shares, **(lasting if at else streams)},
            budget=budget,
            step_seconds=(3600, 60)[at],
            origin=(0, 17)[at],
        )
        for at, budget in enumerate(budgets)
    ]


def documents() -> Iterator[dict[str, Any]]:
    """Signed documents and asks, and whether a device goes along with them."""
    for collection in collections():
        spec: dict[str, Any] = json.loads(canonical(collection.spec()))
        changes = [{"change": change, "why": why} for why, change in unsafe(spec)]
        yield {"spec": spec, "changes": [{"change": {}, "why": ""}, *changes], "asks": list(asks(collection))}


def unsafe(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes to a document, and what a device refuses it for; nothing, where a reason makes it right again."""
    name = "hist"
    (promise,) = spec["terms"][name]["promises"]
    whole, *_ = spec["promises"]
    nine, batch = {"epsilon_above_8": "because"}, {"minimum_batch_below_20": "because"}

    def terms(**change: Any) -> dict[str, Any]:
        return {"terms": {name: {**spec["terms"][name], **change}}}

    large = terms(promises=[{**promise, "limit": 8 * 10**12 + 1}])
    yield "minimum_batch", {"minimum_batch": 19}
    yield "", {"minimum_batch": 19, "overrides": batch}
    yield "minimum_batch", {"minimum_batch": 19, "overrides": nine}
    yield "epsilon", large
    yield "", {**large, "overrides": nine}
    yield "", terms(promises=[{**promise, "limit": 8 * 10**12}])
    yield "", terms(promises=[{"limit": 9 * 10**12, "steps": 0, "interval": 0, "origin": 0}])
    yield "promises", {"promises": []}
    yield "promises", {"promises": [{**whole, "parts": {**whole["parts"], "asks": 10**12}}]}
    yield "promises", {"promises": [{**whole, "parts": {}}]}
    yield "parts", {"promises": [{**whole, "parts": {**whole["parts"], "asks": whole["limit"], "more": 1}}]}
    yield "account", terms(account="others")
    yield "account", terms(state="memo")
    yield "field", terms(field="nothing")
    yield "rounds", terms(rounds=3)
    yield "frozen", terms(frozen="value")
    yield "terms", terms(more=1)
    yield "promise", terms(promises=[{**promise, "parts": {}}])
    yield "interval", terms(promises=[{**promise, "interval": 0}])
    yield "origin", terms(promises=[{"limit": 1, "steps": 0, "interval": 0, "origin": 1}])
    yield "limit", terms(promises=[{**promise, "limit": -1}])
    yield "format", {"format": 1}
    yield "name", {"name": "others"}


def asks(collection: Collection) -> Iterator[dict[str, Any]]:
    """Asks of every question, mechanism and round that its terms allow, and others, and what they are refused for."""
    for name, question in collection.questions.items():
        terms, domain = collection.terms[name], collection.fields[question.field]
        asked = question.question(domain)
        if question.kind == "stream":
            assert question.method is not None
            assert question.w is not None
            units = epsilons(question.method, epsilon=question.epsilon, w=question.w)
        else:
            units = (units_of(question.epsilon),)
        first = next(collection.protocol(name))
        assert isinstance(first, Ask)
        first = replace(first, cohort=EVERYONE)
        for number, spent in enumerate(units):
            for why, turn, ask in ways(first, asked.mechanism(spent), terms.rounds, collection.minimum_arc):
                if number and why:
                    continue
                published = {"question": name, "run": 0, "round": turn, "part": 0, "ask": ask}
                yield json.loads(canonical({"published": published, "step": 9, "why": why}))
        for spent in (units[-1] * 3 // 2, units[-1] - 1000):  # more, and as good as the same: it would tag a device
            ask = {**first.spec(), "step": 9, "mechanism": asked.mechanism(spent).spec()}
            published = {"question": name, "run": 0, "round": 1, "part": 0, "ask": ask}
            yield json.loads(canonical({"published": published, "step": 9, "why": "mechanism"}))


def ways(first: Ask, mechanism: Mechanism, rounds: int, arc: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Ways to ask with a mechanism: what it is refused for, the round, the ask."""
    spec = {**first.spec(), "mechanism": mechanism.spec(), "step": 9, "standing": False}
    for turn in range(1, rounds + 1):
        yield "", turn, {**spec}
        yield "", turn, {**spec, "cohort": Arc(7, arc).spec()}
    yield "round", rounds + 1, spec
    yield "round", 0, spec
    yield "cohort", 1, {**spec, "cohort": Arc(7, arc - 1).spec()}
    yield "view", 1, {**spec, "view": Binned(1.0, 2.0, 9).spec()}
    yield "step", 1, {**spec, "step": 8}
    yield "", 1, {**spec, "step": 8, "standing": True}


def frames() -> Iterator[dict[str, Any]]:
    """Readable uploads, letter for letter."""
    for question, step, turn, size in (("popular", 7, 1, 3), ("q", 10**9, 2, 0), ("a-long_name" * 5, 12, 1, 900)):
        name = {"collection": "themes", "version": 3, "question": question, "step": step, "round": turn}
        entry = Entry(question, 0, step, turn, 0, bytes(range(16)), bytes(k % 256 for k in range(size)))
        body = encode_upload_json("themes", 3, [entry], 1024)
        yield {**name, "id": entry.report_id.hex(), "report": entry.report.hex(), "body": body.decode()}
        cover = encode_upload_json("themes", 3, [], 1024)
        yield {**name, "id": entry.report_id.hex(), "report": entry.report.hex(), "cover": True, "body": cover.decode()}


def vectors() -> dict[str, Any]:
    """What every implementation must agree on; 64-bit numbers are decimal strings."""
    rng = Random(seed="js vectors")
    seeds, values = rng.uint64(20), [0, 1, 2**32 - 1, 2**32, fingerprint("hello")]
    keys = [b"k" * 16, bytes(range(32)), rng.bytes(32)]
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
        "views": [
            {"view": view.spec(), "values": looks, "sees": [view([_number(value)])[0].item() for value in looks]}
            for view in views
        ]
        + [{"view": Whole().spec(), "values": looks, "sees": looks}],
        "codes": list(codes()),
        "mechanisms": list(reports()),
        "refused": list(refused()),
        "ledgers": list(ledgers()),
        "documents": list(documents()),
        "frames": list(frames()),
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


def test_the_library_admits_what_the_vectors_say() -> None:
    for collection in collections():
        for each in asks(collection):
            published, step = each["published"], each["step"]
            ask = Ask.from_spec(published["ask"])
            ask = replace(ask, step=step) if ask.standing else ask
            try:
                admit(collection, Published(published["question"], ask, published["round"]), step)
                admitted = True
            except Refused:
                admitted = False
            assert admitted == (each["why"] == ""), each


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
