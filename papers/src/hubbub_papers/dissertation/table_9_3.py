"""Table 9.3: the costs of sequential shuffling (SS) and PEOS for a user, a shuffler and the server.

PEOS is run by real programs, one process a party, over TLS on this machine. Costs grow with the number of reports and
are stated for the paper's million. Seconds are CPU seconds of all processes of a party.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import HubbubError
from hubbub.random.source import Random
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.local_parties import prepare_parties
from hubbub.shuffle.oblivious import divide
from hubbub.shuffle.onion import OnionKey, peel, shuffle_onions, wrap
from hubbub_papers.harness import Cell, Context, reproduction

MILLION = 1_000_000
PRINTED = {
    ("SS", 3): (0.24, 416, 49, 224, 49, 128),
    ("SS", 7): (0.49, 800, 50, 416, 49, 128),
    ("PEOS", 3): (1.6, 400, 0.2, 429.8, 65, 392),
    ("PEOS", 7): (1.6, 432, 0.7, 3293.3, 65, 408),
}
SIZES = {("SS", 3): 10_000, ("SS", 7): 10_000, ("PEOS", 3): 100_000, ("PEOS", 7): 1_000}
_PROGRAM = [sys.executable, "-c", "from hubbub.cli import main; main()", "oblivious", "run", "--json"]
_SAMPLE = 200
FRESH = "with fresh noise at every handing over, without which the server can follow ciphertexts; the paper has none"


class ShuffleCosts(NamedTuple):
    """The rows of the table: costs of one report for the user, of a million reports for the others."""

    user_ms: float
    user_bytes: float
    shuffler_seconds: float
    shuffler_megabytes: float
    server_seconds: float
    server_megabytes: float


@reproduction("dissertation-table-9.3", title="Cost of SS and PEOS for a user, a shuffler and the server")
def table_9_3(context: Context) -> tuple[list[Cell], None]:
    """The paper's machine used 32 threads; its seconds are printed, and not compared."""
    cells = []
    for (method, shufflers), printed in PRINTED.items():
        n = context.size(SIZES[method, shufflers], least=100)
        reports = context.rng.child(method, shufflers).uint64(n)
        costs = (sequential_costs if method == "SS" else oblivious_costs)(reports, shufflers, context.rng)
        note = f"measured at {n:,} reports; CPU seconds of all cores, the paper's of 32 threads"
        row = f"{method}, r = {shufflers}"
        named = zip(ShuffleCosts._fields, printed, costs, strict=True)
        for name, paper, ours in named:
            more = f"; {FRESH}" if (method, name) == ("PEOS", "shuffler_seconds") else ""
            cells.append(Cell(row, name.replace("_", " "), paper, ours, note + more))
    return cells, None


def sequential_costs(reports: NDArray[np.uint64], shufflers: int, rng: Random) -> ShuffleCosts:
    """The costs of onion encryption, in one process; every layer is removed."""
    keys = [OnionKey.generate() for _ in range(shufflers + 1)]
    route, times = [key.public for key in keys], MILLION / len(reports)
    start = time.process_time()
    onions = [wrap(report.tobytes(), route, "table 9.3") for report in reports]
    user = time.process_time() - start
    size, start, sent = len(onions[0]), time.process_time(), 0
    for place, key in enumerate(keys[:-1]):
        rest = route[place + 1 :]
        turn = shuffle_onions(onions, key, "table 9.3", place=place, rest=rest, least=1, rng=rng.child(place))
        onions = turn.inside
        sent += sum(map(len, onions))
    shuffled, received = (time.process_time() - start) / shufflers, sum(map(len, onions))
    start = time.process_time()
    received_reports = peel(onions, keys[-1], "table 9.3", place=shufflers).inside
    server = time.process_time() - start
    _check_same(reports, np.frombuffer(b"".join(received_reports), dtype=np.uint64))
    megabytes = (sent / shufflers * times / 1e6, received * times / 1e6)
    return ShuffleCosts(1000 * user / len(reports), size, shuffled * times, megabytes[0], server * times, megabytes[1])


def oblivious_costs(reports: NDArray[np.uint64], shufflers: int, rng: Random) -> ShuffleCosts:
    """The costs of PEOS, with a process for every party."""
    times = MILLION / len(reports)
    user, size = user_cost(shufflers, rng)
    with tempfile.TemporaryDirectory() as folder:
        configs = prepare_parties(Path(folder), reports, shufflers=shufflers, seconds=3600, rng=rng.child("shares"))
        outcomes = run_parties(configs)
        _check_same(reports, np.fromfile(Path(folder) / "reports.bin", dtype="<u8"))
    *others, server = outcomes
    seconds, sent = (
        sum(float(outcome[name]) for outcome in others) / shufflers for name in ("cpu_seconds", "sent_bytes")
    )
    return ShuffleCosts(
        1000 * user,
        size,
        seconds * times,
        sent * times / 1e6,
        float(server["cpu_seconds"]) * times,
        float(server["received_bytes"]) * times / 1e6,
    )


def user_cost(shufflers: int, rng: Random) -> tuple[float, float]:
    """The seconds that a report takes to divide and encrypt, and the bytes of its shares."""
    key = DGKPrivate.generate().public
    divide(rng.uint64(1), shufflers, key, rng)  # makes the tables of powers
    start = time.process_time()
    divided = divide(rng.uint64(_SAMPLE), shufflers, key, rng)
    seconds = (time.process_time() - start) / _SAMPLE
    return seconds, sum((len(part.to_bytes()) - 1) / _SAMPLE for part in divided)


def run_parties(configs: Sequence[Path]) -> list[dict[str, Any]]:
    """Run every party as a program of its own; return the output of each."""
    programs = [
        subprocess.Popen([*_PROGRAM, str(config)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for config in configs
    ]
    outputs = [program.communicate() for program in programs]
    for program, (_, error) in zip(programs, outputs, strict=True):
        if program.returncode:
            raise HubbubError(f"a party of the shuffle stopped: {error.strip()}")
    return [json.loads(output) for output, _ in outputs]


def _check_same(sent: NDArray[np.uint64], received_reports: NDArray[np.uint64]) -> None:
    if not np.array_equal(np.sort(sent), np.sort(received_reports)):
        raise HubbubError("what came out of the shuffle is not what was sent")
