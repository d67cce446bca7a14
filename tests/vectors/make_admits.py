"""Terms, asks, and which of them a device admits: what every client must agree on. Run this file to write them anew.

A case is the terms of a question, and asks as they are published, each with the word that it is refused for; the word is
empty where it is admitted. `rounds` are asks of one round together: "parts" where no device may answer any of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hubbub import GRR, OUE, BasicRappor, Hybrid
from hubbub.core.event import epsilon_of
from hubbub.core.spec import canonical
from hubbub.mechanisms.base import Reporting
from hubbub.protocols.change_stream import ChangeStream
from hubbub.protocols.cohort import CIRCLE

VECTORS = Path(__file__).with_name("admits.json")
MINIMUM_ARC = CIRCLE // 100
EPSILON = 10**12
WHOLE = {"kind": "whole"}
STREAM = ChangeStream(epsilon=1.0, dimension=4, steps=4, changes=2, one=True)
RAPPOR = BasicRappor(epsilon=2.0, domain=5)


def terms(**given: Any) -> dict[str, Any]:
    """The terms of a question of one ordinal field, and what is other in them."""
    limit = given.get("limit", EPSILON)
    return {
        "fields": ["f"],
        "frozen": "step",
        "views": [WHOLE],
        "mechanisms": [],
        "families": [],
        "rounds": 1,
        "parts": 1,
        "account": "asks",
        "state": "",
        "limit": limit,
        "promises": [{"limit": limit, "steps": 1, "interval": 3600, "origin": 0}],
        "report_bytes": 16,
        "study": None,
        **given,
    }


def ask(mechanism: Reporting, view: Any = WHOLE, *, start: int = 0, length: int = CIRCLE, **named: Any) -> dict[str, Any]:
    """An ask as it is published."""
    cohort = {"start": start, "length": length}
    inner = {"mechanism": mechanism.spec(), "step": 0, "view": view, "cohort": cohort, "standing": False}
    inner |= {"kept": True} if named.pop("kept", False) else {}
    name = {"question": "q", "run": 0, "step": 0, "round": 1, "part": 0, "closes": 3600}
    return {**name, **named, "ask": inner}


def among(*codes: int) -> dict[str, Any]:
    return {"kind": "among", "codes": list(codes)}


def clipped(low: float, high: float) -> dict[str, Any]:
    return {"kind": "clipped", "low": low, "high": high}


Asks = list[tuple[str, dict[str, Any]]]
Rounds = list[tuple[str, list[dict[str, Any]]]]


def cases() -> Iterator[tuple[dict[str, Any], Asks, Rounds]]:
    """Terms, asks of them, and rounds of asks."""
    grr, other = GRR(epsilon=1.0, domain=5), GRR(epsilon=0.999, domain=5)
    exact = terms(mechanisms=[grr.spec_id], rounds=2)
    asks: Asks = [
        ("", ask(grr)),
        ("", ask(grr, round=2)),
        ("", ask(grr, length=MINIMUM_ARC)),
        ("", ask(grr, kept=True)),
        ("run", ask(grr, run=1)),
        ("round", ask(grr, round=3)),
        ("round", ask(grr, round=0)),
        ("part", ask(grr, part=1)),
        ("arc", ask(grr, length=MINIMUM_ARC - 1)),
        ("view", ask(grr, among(0, 1, 2, 3))),
        ("view", ask(grr, {"kind": "size", "most": 4})),
        ("mechanism", ask(other)),
        ("mechanism", ask(OUE(epsilon=1.0, domain=5))),
        ("mechanism", ask(RAPPOR)),
    ]
    everyone = ask(grr)
    yield exact, asks, [("", []), ("", [everyone]), ("parts", [everyone, everyone])]
    yield terms(mechanisms=[grr.spec_id], limit=EPSILON - 1), [("limit", ask(grr))], []
    account = f"memo:f:{grr.spec_id}"
    yield terms(mechanisms=[grr.spec_id], state="BasicRappor", account=account), [("state", ask(grr))], []

    half, quarter = (GRR(epsilon=epsilon_of(units), domain=4) for units in (EPSILON // 2, EPSILON // 4))
    study = terms(
        frozen="study",
        views=[{"kind": "among", "codes": {"most": 3}}],
        families=[{"mechanism": "GRR", "units": [EPSILON // 2, EPSILON]}],
        rounds=3,
        parts=4,
        limit=2 * EPSILON,
        study={"start": 7200, "round_seconds": 600, "every": 86400},
    )
    three = among(1, 5, 9)
    asks = [
        ("", ask(half, three)),
        ("", ask(half, three, run=12, round=3, part=3)),
        ("", ask(GRR(epsilon=1.0, domain=4), among(0, 1, 2**40))),
        ("", ask(GRR(epsilon=1.0, domain=2), among(7))),
        ("round", ask(half, three, round=4)),
        ("part", ask(half, three, part=4)),
        ("view", ask(GRR(epsilon=1.0, domain=5), among(1, 2, 3, 4))),
        ("view", ask(half, WHOLE)),
        ("mechanism", ask(quarter, three)),
        ("mechanism", ask(half, among(1, 5))),  # reads one code more than the view gives
        ("mechanism", ask(OUE(epsilon=0.5, domain=4), three)),
    ]
    parts = [ask(half, three, start=at * CIRCLE // 4, length=CIRCLE // 4, part=at) for at in range(4)]
    turned = [ask(half, three, start=(at * CIRCLE // 2 + 99) % CIRCLE, length=CIRCLE // 2, part=at) for at in (1, 0)]
    last = ask(half, three, start=CIRCLE - 5, length=CIRCLE // 4, part=3)
    rounds: Rounds = [
        ("", parts),
        ("", parts[::-1]),
        ("", turned),
        ("", [parts[2], parts[0]]),
        ("", [ask(half, three, part=2)]),
        ("parts", [*parts[:3], last]),  # goes round into the first
        ("parts", [*parts, ask(half, three, part=4)]),
        ("parts", [parts[0], ask(half, three, start=1, length=CIRCLE // 4, part=1)]),
        ("parts", [parts[0], {**parts[1], "part": 0}]),
        ("parts", [ask(half, three), ask(half, three, start=9, length=MINIMUM_ARC, part=1)]),
    ]
    yield study, asks, rounds
    once = {**study, "study": {"start": 7200, "round_seconds": 600, "every": 0}}
    yield once, [("", ask(half, three)), ("run", ask(half, three, run=1))], []

    inside = Hybrid(epsilon=1.0, low=-10.0, high=2.5)
    between = terms(
        views=[{"kind": "clipped", "low": {"from": -100, "to": 0}, "high": {"from": 0.5, "to": 100}}, clipped(0.0, 1e6)],
        families=[{"mechanism": "Hybrid", "units": [EPSILON]}],
    )
    asks = [
        ("", ask(inside, clipped(-10.0, 2.5))),
        ("", ask(Hybrid(epsilon=1.0, low=-100.0, high=100.0), clipped(-100.0, 100.0))),
        ("", ask(Hybrid(epsilon=1.0, low=0.0, high=1e6), clipped(0.0, 1e6))),
        ("view", ask(Hybrid(epsilon=1.0, low=-100.5, high=2.5), clipped(-100.5, 2.5))),
        ("view", ask(Hybrid(epsilon=1.0, low=-10.0, high=100.1), clipped(-10.0, 100.1))),
        ("view", ask(Hybrid(epsilon=1.0, low=-1.0, high=1e6), clipped(-1.0, 1e6))),
        ("mechanism", ask(inside, clipped(-10.0, 2.0))),
        ("mechanism", ask(Hybrid(epsilon=0.5, low=-10.0, high=2.5), clipped(-10.0, 2.5))),
    ]
    yield between, asks, []
    yield {**between, "report_bytes": 2}, [("size", asks[0][1])], []

    account = f"memo:f:{RAPPOR.spec_id}"
    memo = terms(mechanisms=[RAPPOR.spec_id], frozen="last", account=account, state="BasicRappor", limit=2 * EPSILON)
    yield memo, [("", ask(RAPPOR)), ("mechanism", ask(BasicRappor(epsilon=1.9, domain=5)))], []
    stream = terms(mechanisms=[STREAM.spec_id], frozen="last", state="ChangeStream")
    yield stream, [("", ask(STREAM)), ("arc", ask(STREAM, length=5))], []
    yield {**stream, "state": ""}, [("state", ask(STREAM))], []


def vectors() -> dict[str, Any]:
    """The cases as JSON."""
    found = [
        {
            "terms": given,
            "asks": [{"why": why, "published": published} for why, published in asks],
            "rounds": [{"why": why, "asks": together} for why, together in rounds],
        }
        for given, asks, rounds in cases()
    ]
    read: dict[str, Any] = json.loads(canonical({"minimum_arc": MINIMUM_ARC, "cases": found}))  # type: ignore[dict-item]
    return read


if __name__ == "__main__":
    text = json.dumps(vectors(), ensure_ascii=False, separators=(",", ":"))
    VECTORS.write_text(text.replace('{"terms"', '\n{"terms"').replace('{"why"', '\n{"why"') + "\n", encoding="utf-8")
