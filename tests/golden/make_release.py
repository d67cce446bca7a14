"""Makes the golden file of a release's state, in the format of the code that it is run with.

    python tests/golden/make_release.py FOLDER

Beside it, `expected.json`: what was published last, and what the values that follow must be answered with.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from hubbub.core.random import Random
from hubbub.curator.release_file import ReleaseFile
from hubbub.curator.tops import ToPS

TOPS = ToPS(
    epsilon=1.0, bound=50.0, holdout=40, max_range=256, fan_out=4, pruned=1, smoother="moving", watch=0.25, period=40
)
VALUES = [float(7 * k % 31) for k in range(200)]


def main(folder: str) -> None:
    target = Path(folder)
    target.mkdir()
    with ReleaseFile(target / "state", TOPS, source="golden", rng=Random(seed=1)) as release:
        release.push_many(VALUES[:90])
    with ReleaseFile(target / "state", TOPS, source="golden") as release:
        pending = release.pending.published
        rest = release.stream.push_many(VALUES[90:])
    told = {"settings": TOPS.spec(), "pending": _plain(pending), "rest": _plain(rest)}
    (target / "expected.json").write_text(json.dumps(told, indent=1) + "\n")


def _plain(published: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in published]


if __name__ == "__main__":
    main(sys.argv[1])
