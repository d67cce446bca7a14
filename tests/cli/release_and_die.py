"""Processes that run `hubbub release --state` and are killed at every point of it: every step is told, none twice.

    python release_and_die.py FOLDER file|pipe|local STRIDE

A child process is forked for every statement of a transaction, every file that is put in place and every write to the
standard output, and kills itself there with SIGKILL. The next one goes on from what is left, with more values. Prints
how many points there were.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hubbub.cli.release as release_command
from hubbub.cli import main as hubbub
from hubbub.curator.files import ReleaseFile
from hubbub.curator.tops import ToPS
from hubbub.ledger.file import LedgerFile
from hubbub.protocols.topl.server import ToPL, ToPLServer
from hubbub.random.source import Random
from hubbub.rehearse.release import LocalReleaseFile, report_values  # noqa: F401 - before the children need them
from tests.cli.fares import KEYWORDS, SETTINGS, VALUES, lines, write
from tests.shared.killed_processes import fork, killed_after

EARLY = 1700
TOPS = ToPS(**KEYWORDS)
Steps = dict[int, str]


def arm(points: int) -> None:
    """Have this process killed after this number of points."""
    tick = killed_after(points)

    def wrapped(act: Any) -> Any:
        def ticking(*given: Any, **named: Any) -> Any:
            tick()
            return act(*given, **named)

        return ticking

    for owner, name in ((LedgerFile, "run"), (os, "replace"), (os, "fsync"), (sys.stdout, "write")):
        setattr(owner, name, wrapped(getattr(owner, name)))


def lived(here: Path, way: str, values: np.ndarray, points: int | None) -> tuple[int, Steps]:
    """What became of a process, which is killed after this number of points, and the steps that it told."""
    told = here / "told"
    told.unlink(missing_ok=True)

    def work() -> None:
        os.chdir(here)
        sys.stdout = told.open("w")
        if points is not None:
            arm(points)
        try:
            _release(way, values)
        except SystemExit as end:
            if end.code:
                raise
        sys.stdout.flush()

    status = os.waitpid(fork(work), 0)[1]
    return status, _steps(way, told.read_text() if told.exists() else "")


def _release(way: str, values: np.ndarray) -> None:
    if way == "pipe":
        Path("pipe").write_text(lines(values))
        os.dup2(os.open("pipe", os.O_RDONLY), 0)
        release_command.PIECE = 4096  # several batches
        rest = ["-"]
    else:
        write(values)
        rest = ["fares.csv", "--column", "fare", "--json", *(["--local"] if way == "local" else [])]
    sys.argv = ["hubbub", "release", *rest, *map(str, SETTINGS), "--state", "state"]
    hubbub()


def _steps(way: str, text: str) -> Steps:
    if way == "pipe":
        lines = [line.split("\t") for line in text.split("\n")[1:-1]]  # the last one may be cut off
        return {int(line[0]): line[1] for line in lines}
    try:
        return {step["step"]: repr(step["value"]) for step in json.loads(text)["steps"]}
    except ValueError:  # killed before it was written
        return {}


def position(here: Path) -> int:
    """How many values of the pipe the state has; 0 if there is none."""
    if not (here / "state").exists():
        return 0
    with ReleaseFile(here / "state", TOPS, source="-") as release:
        return release.stream.position


def warm_up() -> None:
    """Import and compile what the children need, once."""
    import hubbub.cli.app
    import hubbub.cli.output
    import hubbub.cli.release_view
    import hubbub.rehearse.columns  # noqa: F401

    TOPS.start(Random()).push_many(VALUES)
    report_values(ToPLServer(ToPL(**KEYWORDS, every=256)), VALUES, Random())


def main() -> None:
    folder, way, stride = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    warm_up()
    killed = 0
    for number in range(10_000):
        here = folder / str(number)
        here.mkdir()
        status, first = lived(here, way, VALUES[:EARLY], number * stride)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, here
        again, second = lived(here, way, VALUES[position(here) :] if way == "pipe" else VALUES, None)
        assert again == 0, here
        assert sorted(first | second) == list(range(9)), (here, first, second)
        assert all(second.get(step, value) == value for step, value in first.items()), (here, first, second)
        third = lived(here, way, VALUES[:0] if way == "pipe" else VALUES, None)[1]
        assert third == (first | second if way == "local" else {}), (here, third)  # devices' steps stay
        if not os.WIFSIGNALED(status):
            break
        killed += 1
    print(killed)


if __name__ == "__main__":
    main()
