"""Devices for the tests: a client on a clock that is moved by hand, against a local server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from local_server import KEYS, LocalServer

from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.random import Random
from hubbub.core.reports import Reports

HOUR = 3600


def device(folder: Path, server: Any, clock: ManualClock, **options: Any) -> Client:
    given = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "survey", **options}
    return Client(folder, server, KEYS.public, **given)


def begin(server: LocalServer, clock: ManualClock, step: int) -> None:
    """Go to the start of a step, and publish its asks."""
    clock.set(server.collection.opens(step) + 1.0)
    server.begin(step)


def values_of(server: LocalServer, step_reports: dict[bytes, bytes], name: str = "value") -> np.ndarray:
    return np.concatenate([Reports.from_bytes(report).private[name] for report in step_reports.values()])


def seeded(seed: int) -> Random:
    return Random(seed=seed)
