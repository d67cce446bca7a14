"""A collector whose planes are late for a while: an alarm is raised, and cleared if enough hours pass."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hubbub import Random
from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.service.collector.collector import Collector
from tests.dashboard.pages_fleet import PageFleet, serve
from tests.shared.small_collections import collection_text

START = 500_000 * 3600.0

PLANES = collection_text(
    "planes",
    "Planes <in> the snow",
    schedule={"step": "1h", "lateness": "5m"},
    privacy={"event": 4.0},
    fields={"delay": {"kind": "categorical", "names": ["early", "on time", "late"]}},
    questions={
        "delays": {
            "title": "How late are planes?",
            "kind": "stream",
            "field": "delay",
            "epsilon": 2.0,
            "method": "LPU",
            "w": 2,
        },
        "quiet": {"kind": "histogram", "field": "delay", "epsilon": 1.0},
    },
    alarms={
        "late": {
            "question": "delays",
            "title": "planes that are <late>",
            "weights": {"late": 1},
            "above": 0.25,
            "clears": 0.2,
        },
        "any": {"question": "delays", "title": "any delay", "each": True, "change": "either", "baseline": 8},
    },
)


def planes(hours: int, *, first: int = 12, last: int = 16, n: int = 4000) -> Collector:
    """A number of hours, in which 10% of planes are late, and from one hour to another 40%."""
    collection = load_collection(PLANES)

    def values(step: int) -> Mapping[str, Any]:
        hour = step - round(START / 3600)
        late = 0.4 if first <= hour <= last else 0.1
        return {"delay": np.searchsorted([0.2, 1 - late, 1.0], (Random(seed=step).uint32(n) + 0.5) / 2**32)}

    alarms = {"planes": load_alarms(PLANES)}
    return serve([PageFleet(collection, n, values, seed=3)], start=START, seconds=3600 * hours, alarms=alarms)
