"""A live demonstration: a real collector, and devices in several processes that answer it over HTTP.

Every process that is started holds one end of a pipe as its standard input, and stops when that ends: closing it stops
them in order, and none outlives this one, however this one ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.client.transport import HttpTransport, Unreachable
from hubbub.collection import Collection, load_collection
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.data import DataError, emoji, fetch
from hubbub.simulate.live_devices import People

__all__ = ["Live", "Look", "Stopped", "live_collection"]

NAMES = (
    *("😂", "❤", "♥", "😍", "😭", "😘", "😊", "👌", "💕", "👏", "😁", "☺", "👍", "😩", "🙏", "✌", "😏", "😉", "🙌"),
    *("🙈", "💪", "😄", "😒", "💃", "💖", "😃", "😔", "😱", "🎉", "😜", "🌸", "💜", "💙", "✨", "😳", "💗", "another"),
)
_TEXT = """
name = "emoji"
version = 1
title = "Which emoji people use"
[schedule]
step = "{step}s"
lateness = "{lateness}s"
origin = {origin}
retention = "1d"
[privacy]
event = 2.0
window = {{ epsilon = 8.0, steps = 7 }}
minimum_batch = 20
[fields.used]
kind = "categorical"
names = {names}
[questions.popular]
title = "Which emoji is used most?"
kind = "histogram"
field = "used"
epsilon = 1.0
[questions.trend]
title = "How does that change?"
kind = "stream"
field = "used"
epsilon = 1.0
method = "LPA"
w = 7
"""
_FEWEST, _MOST, _LONGEST_STEP = 50, 1_000_000, 3600
_PATIENCE = 30.0
_START_SECONDS = 4


class Stopped(HubbubError):
    """A process of the demonstration ended by itself."""


def live_collection(step_seconds: int, origin: int = 0) -> Collection:
    """What the devices are asked: `examples/emoji.toml` with steps of seconds, from a Unix time on.

    Example:
        >>> sorted(live_collection(5).questions), live_collection(5).lateness_seconds
        (['popular', 'trend'], 1)
    """
    if isinstance(step_seconds, bool) or not 1 <= step_seconds <= _LONGEST_STEP:
        raise InvalidValue("step", step_seconds, f"from 1 to {_LONGEST_STEP} seconds")
    lateness = 1 if step_seconds >= 3 else 0  # a stream asks twice a step: the late must be in before its half is over
    names = json.dumps(NAMES, ensure_ascii=False)
    return load_collection(_TEXT.format(step=step_seconds, lateness=lateness, origin=origin, names=names))


@dataclass(frozen=True, eq=False)
class Look:
    """What can be seen at one moment.

    Parameters
    ----------
    outcomes
        Reports by what became of them: "accepted", "duplicate", or why not.
    steps
        How many steps were released.
    popular, popular_truth
        The mean over those steps of what is used, None before the first; and what was really used.
    trend, trend_truth
        The latest release of the stream, None where there is none or it is withheld; and the truth of its step.
    """

    outcomes: Mapping[str, int]
    steps: int
    popular: Estimate | None
    popular_truth: NDArray[np.float64]
    trend: Estimate | None
    trend_truth: NDArray[np.float64]

    @property
    def accepted(self) -> int:
        """Reports that were counted."""
        return self.outcomes.get("accepted", 0)

    @property
    def rejected(self) -> int:
        """Reports that were not, for any reason."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in ("accepted", "duplicate"))


def covered(estimate: Estimate, truth: NDArray[np.float64]) -> int:
    """How many 95% intervals hold the truth.

    Example:
        >>> covered(Estimate([0.5, 0.5], [0.01, 0.01], 10), np.array([0.4, 0.9]))
        1
    """
    low, high = estimate.interval(0.95)
    return int(((low <= truth) & (truth <= high)).sum())


class Live:
    """The demonstration, while a `with` block lasts.

    Parameters
    ----------
    devices
        How many.
    step_seconds
        How long a step is.
    workers
        In how many processes the devices are.
    seed
        What the devices' owners do; what the devices draw, too: they are simulated.
    folder
        Where the store, keys and logs are; a temporary one, removed afterwards, if left out.
    port
        Where the collector listens on this machine; 0 takes a free one.
    """

    def __init__(
        self,
        *,
        devices: int = 2000,
        step_seconds: int = 5,
        workers: int = 3,
        seed: int = 1,
        folder: Path | None = None,
        port: int = 0,
    ) -> None:
        if isinstance(devices, bool) or not _FEWEST <= devices <= _MOST:
            raise InvalidValue("devices", devices, f"an integer from {_FEWEST} to {_MOST}")
        if isinstance(workers, bool) or not 1 <= workers <= 64:
            raise InvalidValue("workers", workers, "an integer from 1 to 64")
        # In a folder of its own the first step waits for the devices; in one that is kept, steps go on from run to run.
        origin = int(time.time()) + _START_SECONDS if folder is None else 0
        self.devices, self.collection = devices, live_collection(step_seconds, origin)
        self._workers, self._folder, self._port = workers, folder, port
        weights, self.source = _weights()
        sizes = [devices // workers + (group < devices % workers) for group in range(workers)]
        party = NAMES.index("🎉")
        self._people = [People(weights, party, n, seed, group) for group, n in enumerate(sizes)]
        self._truths: dict[int, NDArray[np.float64]] = {}
        self._stack = ExitStack()
        self._running: list[tuple[str, subprocess.Popen[str], Path]] = []
        self.address = ""
        """Where the collector is."""
        self.has_page = False
        """Whether there is a page for people at that address."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._folder is None:
                self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-live-")))
            self._folder.mkdir(parents=True, exist_ok=True)
            stack.callback(self._stop)
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes: the collector, then the devices'."""
        return [process.pid for _, process, _ in self._running]

    @property
    def releases_path(self) -> str:
        """The route of the releases."""
        return f"/v1/collections/{self.collection.name}/questions/popular/releases"

    @property
    def token(self) -> str:
        """The token that opens it."""
        assert self._folder is not None
        return (self._folder / "keys" / "admin.token").read_text(encoding="ascii").strip()

    def check(self) -> None:
        """Raise `Stopped` if a process has ended."""
        for name, process, log in self._running:
            if process.poll() is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise Stopped(f"{name} ended with {process.returncode}: {lines[-1] if lines else 'no word'}")

    def look(self) -> Look:
        """See what the collector's routes tell."""
        self.check()
        root = f"/v1/collections/{self.collection.name}"
        outcomes = self._get(f"{root}/counts")["outcomes"]
        popular = self._shown(self._get(self.releases_path)["releases"])
        trend = self._shown(self._get(f"{root}/questions/trend/releases?most=1")["releases"])
        truths = [self._truth(row["step"]) for row in popular]
        nothing = np.zeros(len(NAMES) + 1)
        return Look(
            outcomes=outcomes,
            steps=len(popular),
            popular=_mean(popular) if popular else None,
            popular_truth=np.mean(truths, axis=0) if truths else nothing,
            trend=_mean(trend) if trend else None,
            trend_truth=self._truth(trend[-1]["step"]) if trend else nothing,
        )

    def _shown(self, releases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in releases if row["withheld"] is None and None not in row["variance"]]

    def _truth(self, step: int) -> NDArray[np.float64]:
        if step not in self._truths:
            values = np.concatenate([people.values(step) for people in self._people])
            self._truths[step] = np.bincount(values, minlength=len(NAMES) + 1) / self.devices
        return self._truths[step]

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        response = HttpTransport(self.address).request("GET", path, headers)
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return json.loads(response.body)

    def _start(self) -> None:
        settings = {"collection": self.collection.spec(), "folder": str(self._folder), "port": self._port}
        collector = self._launch("collector", settings)
        assert collector.stdout is not None
        line = collector.stdout.readline()
        if not line:
            collector.wait()
            self.check()
        said = json.loads(line)
        self.address, self.has_page = f"http://127.0.0.1:{said['port']}", said["page"]
        reach = {"address": self.address, "public_key": said["public_key"], "name": self.collection.name}
        for people in self._people:
            self._launch("devices", {**reach, "people": people._asdict()})

    def _launch(self, part: str, settings: dict[str, Any]) -> subprocess.Popen[str]:
        assert self._folder is not None
        log = self._folder / f"{part}-{len(self._running)}.log"
        with log.open("w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", f"hubbub.simulate.live_{part}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # a Ctrl-C is for this process, which then stops the others in order
            )
        self._running.append((part, process, log))
        assert process.stdin is not None
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        return process

    def _stop(self) -> None:
        """The devices first, then the collector."""
        for part in ("devices", "collector"):
            several = [process for name, process, _ in self._running if name == part]
            for process in several:
                assert process.stdin is not None
                process.stdin.close()
            for process in several:
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                assert process.stdout is not None
                process.stdout.close()


def _mean(releases: Sequence[dict[str, Any]]) -> Estimate:
    """The mean of releases, each of which has randomness of its own."""
    value = np.mean([row["value"] for row in releases], axis=0)
    variance = np.sum([row["variance"] for row in releases], axis=0) / len(releases) ** 2
    return Estimate(value, variance, sum(row["n"] for row in releases), labels=tuple(releases[0]["labels"]))


def _weights() -> tuple[list[float], str]:
    """How often each emoji is used, and where that comes from."""
    try:
        fetch("emoji")
        found = emoji()
    except DataError:
        return [1 / k for k in range(1, len(NAMES) + 1)], "invented: the k-th in proportion to 1/k"
    counts = dict(zip(found.labels.tolist(), found.counts.tolist(), strict=True))
    weights = [float(counts.get(name, 0)) for name in NAMES[:-1]]
    return [*weights, float(found.n - sum(weights))], f"{found.n:,} uses in tweets (Emoji Sentiment Ranking 1.0)"
