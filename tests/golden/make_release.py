"""Makes the golden files of a release's state, in the format of the code that it is run with.

    python -m tests.golden.make_release release|local|sums FOLDER

Next to the state, `expected.json`: the settings, what was published, and what must be published again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.curator.factorised import FactorisedCounter
from hubbub.curator.files import ReleaseFile, SumsFile
from hubbub.curator.tops import ToPS
from hubbub.protocols.topl.server import ToPL
from hubbub.random.source import Random
from hubbub.rehearse.release import LocalReleaseFile

TOPS = ToPS(
    epsilon=1.0,
    bound=50.0,
    holdout=40,
    max_range=256,
    fan_out=4,
    pruned=1,
    smoother="moving",
    watch=0.25,
    period=40,
    follow="update",
)
TOPL = ToPL(epsilon=4.0, bound=50.0, holdout=80, max_range=4096, every=32)
COUNTER = FactorisedCounter(rho=0.5, length=200)
VALUES = [float(7 * k % 31) for k in range(200)]


def release(path: Path) -> dict[str, Any]:
    """Half way through a block, with carried answers; then more, interrupted before it was settled."""
    with ReleaseFile(path, TOPS, source="golden", every=8, rng=Random(seed=1)) as file:
        published = file.replay(np.array(VALUES[:90]))
        file.settle(carry=published[-2:])
        interrupted = file.replay(np.array(VALUES[:150]))
    return {"settings": TOPS.spec(), "every": 8, "pending": _plain(published[-2:]), "again": _plain(interrupted)}


def local(path: Path) -> dict[str, Any]:
    with LocalReleaseFile(path, TOPL, source="golden") as file:
        file.report(np.array(VALUES[:150]), Random(seed=1))
        return {"settings": TOPL.spec(), "steps": file.steps, "theta": file.server.theta}


def sums(path: Path) -> dict[str, Any]:
    """As `release`."""
    with SumsFile(path, COUNTER, 20.0, source="golden", rng=Random(seed=1)) as file:
        published = file.replay(np.array(VALUES[:90]))
        file.settle(carry=published[-2:])
        interrupted = file.replay(np.array(VALUES[:150]))
    return {"settings": COUNTER.spec(), "pending": _plain(published[-2:]), "again": _plain(interrupted)}


def _plain(published: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in published]


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir()
    told = {"release": release, "local": local, "sums": sums}[kind](folder / "state")
    (folder / "expected.json").write_text(json.dumps(told, indent=1) + "\n")
