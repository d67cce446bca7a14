"""A collector that asks arcs that overlap, to find out who is asked, and to isolate a few people's answers."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, exactly
from hubbub.authoring.toml import load_collection
from hubbub.collection.admits import admits
from hubbub.protocols.ask import CIRCLE, Arc
from hubbub.protocols.driver import Conversation
from hubbub.simulate.devices import ArrayStream
from hubbub.simulate.fleet import Fleet

_LEAST = 0.05
_COLLECTION = f"""
name = "arcs"
version = 1
title = "Who is asked?"
[schedule]
step = "1h"
lateness = "10m"
[privacy]
event = 1.0
minimum_batch = 100
minimum_arc = {_LEAST}
planned_devices = 100_000
[fields.value]
kind = "categorical"
names = ["a", "b", "c"]
[questions.asked]
kind = "stream"
field = "value"
epsilon = 1.0
method = "LPU"
w = 10
"""


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    collection = load_collection(_COLLECTION)
    terms, least = collection.terms["asked"], collection.minimum_arc
    fleet = Fleet(ArrayStream(np.zeros((1, setting.people), dtype=np.int64), 3), setting.rng("places"))
    ask = Conversation(collection.protocol("asked")).asks[0]
    rng, n = setting.rng("arcs"), setting.people

    def people(arc: Arc) -> int:
        return sum(devices.stop - devices.start for devices in fleet.on_arc(arc))

    smallest, refused = n, 0
    for exponent in range(33):
        arc = Arc(int(rng.uint32(1)[0]), max(CIRCLE >> exponent, 1))
        if admits(terms, replace(ask, cohort=arc), minimum_arc=least, fields=collection.fields) is None:
            smallest = min(smallest, people(arc))
        else:
            refused += 1
    allowed = n * least / CIRCLE
    slack = 4 * float(np.sqrt(allowed))  # of the places of n devices, which are random
    yield exactly(
        f"one ask: how much of the signed minimum ({_LEAST:.0%} of {n:,} devices) is missing; {refused} arcs refused",
        max(allowed - slack - smallest, 0.0),
        0.0,
        unit="devices",
    )
    shift = max(CIRCLE // (2 * n), 1)
    first = Arc(int(rng.uint32(1)[0]), max(least, 1))
    second = Arc((first.start + shift) % CIRCLE, first.length)
    both = [admits(terms, replace(ask, cohort=arc), minimum_arc=least) for arc in (first, second)]
    parted = people(Arc(first.start, shift))
    note = "two admitted asks differ by these devices: only epsilon protects their answers, and the ledger counts both"
    yield exactly(
        f"two asks whose arcs differ by {shift / CIRCLE:.1e} of the circle ({', '.join(map(str, both))})",
        float(parted),
        None,
        unit="devices",
        note=note,
    )


ATTACK = Attack(
    title="A collector asks small arcs of the circle, and arcs that overlap, to isolate a few people.",
    promise="Devices refuse an arc below the collection's signed minimum. What several asks have in common or not is "
    "not bounded: there, only the epsilon of each answer protects.",
    quantity="devices",
    run=_run,
)
