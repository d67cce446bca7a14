"""The parties of a run for tests: small keys, one attempt, one process each."""

from pathlib import Path

import numpy as np

from hubbub import Random
from hubbub.shuffle.local_parties import prepare_parties


def prepare(folder: Path, reports: np.ndarray, *, seconds: int = 30, attempts: int = 1, **settings: int) -> list[Path]:
    """The configurations of all parties, the server's last."""
    settings = {"bits": 2048, "processes": 1, **settings}
    return prepare_parties(folder, reports, seconds=seconds, attempts=attempts, rng=Random(seed=1), **settings)
