"""A live demonstration: a real collector, and devices in several processes that answer it over HTTP.

Every process that is started holds one end of a pipe as its standard input, and stops when that ends: closing it stops
them in order, and none outlives this one, however this one ends.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.client.transport import HttpTransport, Unreachable
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.selected import Selected
from hubbub.demo.alarm_receiver import AlarmReceiver, DeliveredAlarm
from hubbub.demo.scenes import Scene, scenes

_FEWEST, _MOST = 50, 1_000_000
_NO_FAULT = ("accepted", "duplicate", "cover")
_PATIENCE = 30.0
_START_SECONDS = 4


class CollectorStopped(HubbubError):
    """A process of the demonstration ended by itself."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What can be seen of one scene.

    Parameters
    ----------
    scene
        The scene.
    outcomes
        Its reports by what became of them: "accepted", "duplicate", or why not.
    steps
        How many steps were released.
    estimate, truth
        Of the steps together, or of the latest one; None before the first. And what people really held.
    when
        The time that the latest step is of, in the data.
    """

    scene: Scene
    outcomes: Mapping[str, int]
    steps: int
    estimate: Estimate | None
    truth: NDArray[np.float64]
    when: str


@dataclass(frozen=True, eq=False)
class Look:
    """What can be seen at one moment, scene by scene."""

    seen: tuple[Seen, ...]
    alarms: tuple[DeliveredAlarm, ...] = ()
    """What the webhook was told so far."""

    @property
    def complete(self) -> bool:
        """Whether every scene has an estimate."""
        return all(scene.estimate is not None for scene in self.seen)

    @property
    def outcomes(self) -> dict[str, int]:
        """Reports by what became of them, of all scenes."""
        total: Counter[str] = Counter()
        for scene in self.seen:
            total.update(scene.outcomes)
        return dict(total)

    @property
    def accepted(self) -> int:
        """Reports that were counted."""
        return self.outcomes.get("accepted", 0)

    @property
    def rejected(self) -> int:
        """Reports that were not, for any reason."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in _NO_FAULT)


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
        How many answer each collection.
    step_seconds
        How long a step is.
    workers
        In how many processes the devices of each are.
    seed
        What the devices' owners do; what the devices draw, too: they are simulated.
    folder
        Where the store, keys and logs are; a temporary one, removed afterwards, if left out.
    port
        Where the collector listens on this machine; 0 takes a free one.
    say
        Told when data is fetched.
    """

    def __init__(
        self,
        *,
        devices: int = 8000,
        step_seconds: int = 4,
        workers: int = 2,
        seed: int = 1,
        folder: Path | None = None,
        port: int = 0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if isinstance(devices, bool) or not _FEWEST <= devices <= _MOST:
            raise InvalidValue("devices", devices, f"an integer from {_FEWEST} to {_MOST}")
        if isinstance(workers, bool) or not 1 <= workers <= 32:
            raise InvalidValue("workers", workers, "an integer from 1 to 32")
        self.devices, self.scenes = devices, scenes(step_seconds, say)
        self._folder, self._port = folder, port
        sizes = [devices // workers + (group < devices % workers) for group in range(workers)]
        self._people = {
            scene.name: [scene.people(n, seed, group) for group, n in enumerate(sizes)] for scene in self.scenes
        }
        self._truths: dict[tuple[str, int], NDArray[np.float64]] = {}
        self._stack = ExitStack()
        self._receiver = AlarmReceiver()
        self._running: list[tuple[str, subprocess.Popen[str], Path]] = []
        self.address = ""
        """Where the collector is, and the page for people."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._folder is None:
                # The first step waits for the devices; in a folder that is kept, steps go on from run to run.
                origin = int(time.time()) + _START_SECONDS
                self.scenes = tuple(scene.starting(origin) for scene in self.scenes)
                self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-live-")))
            self._folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(self._receiver)
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
    def token(self) -> str:
        """The token that opens it."""
        assert self._folder is not None
        return (self._folder / "keys" / "admin.token").read_text(encoding="ascii").strip()

    def check(self) -> None:
        """Raise `CollectorStopped` if a process has ended."""
        for name, process, log in self._running:
            if process.poll() is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise CollectorStopped(
                    f"the {name} ended with {process.returncode}: {lines[-1] if lines else 'no word'}"
                )

    def look(self) -> Look:
        """See what the collector's routes tell."""
        self.check()
        return Look(tuple(self._see(scene) for scene in self.scenes), tuple(self._receiver.alarms))

    def _see(self, scene: Scene) -> Seen:
        root = f"/v1/collections/{scene.name}"
        outcomes = self._get(f"{root}/counts")["outcomes"]
        releases = self._get(f"{root}/questions/{scene.question}/releases")["releases"]
        known = [row for row in releases if row["withheld"] is None and row["value"] and None not in row["variance"]]
        taken = known if scene.pooled else known[-1:]
        truths = [self._truth(scene, row["step"]) for row in taken]
        return Seen(
            scene=scene,
            outcomes=outcomes,
            steps=len(known),
            estimate=_mean(taken) if taken else None,
            truth=_named(np.mean(truths, axis=0), taken[0]["labels"], scene.texts) if taken else np.zeros(0),
            when=scene.when(taken[-1]["step"]) if taken else "",
        )

    def _truth(self, scene: Scene, step: int) -> NDArray[np.float64]:
        if (scene.name, step) not in self._truths:
            people = self._people[scene.name]
            values = np.concatenate([some.codes(step) for some in people])
            self._truths[scene.name, step] = np.bincount(values, minlength=people[0].symbols) / self.devices
        return self._truths[scene.name, step]

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        response = HttpTransport(self.address).request("GET", path, headers)
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return json.loads(response.body)

    def _start(self) -> None:
        specs = [scene.collection.spec() for scene in self.scenes]
        given = {
            "collections": specs,
            "alarms": {scene.name: scene.alarms.spec() for scene in self.scenes},
            "webhook": {"url": self._receiver.url, "secret": self._receiver.secret},
            "folder": str(self._folder),
            "port": self._port,
        }
        collector = self._launch("collector", given)
        assert collector.stdout is not None
        line = collector.stdout.readline()
        if not line:
            collector.wait()
            self.check()
        ready = json.loads(line)
        self.address = f"http://127.0.0.1:{ready['port']}"
        for name, several in self._people.items():
            reach = {"address": self.address, "public_key": ready["public_key"], "name": name}
            for people in several:
                self._launch("devices", {**reach, "people": asdict(people)})

    def _launch(self, part: str, settings: dict[str, Any]) -> subprocess.Popen[str]:
        assert self._folder is not None
        log = self._folder / f"{part}-{len(self._running)}.log"
        with log.open("w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", f"hubbub.demo.{part}"],
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


def _named(truth: NDArray[np.float64], labels: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
    """The truth of what an estimate names: in the order of the codes, or of texts that were found."""
    if not texts:
        return truth[: len(labels)]
    places = {text: place for place, text in enumerate(texts)}
    return np.array([truth[places[label]] if label in places else 0.0 for label in labels])


def _mean(releases: Sequence[dict[str, Any]]) -> Estimate:
    """The mean of releases, each of which has randomness of its own."""
    value = np.mean([row["value"] for row in releases], axis=0)
    variance = np.sum([row["variance"] for row in releases], axis=0) / len(releases) ** 2
    around = [row["centre"] for row in releases if row.get("centre") is not None]
    centre = np.mean(around, axis=0) if len(around) == len(releases) else None
    n = sum(row["n"] for row in releases)
    labels = tuple(releases[0]["labels"])
    if len(releases) == 1 and "cut" in releases[0]:
        cut = releases[0]["cut"]
        return Selected(value, variance, n, labels=labels, centre=centre, cut=-math.inf if cut is None else cut)
    return Estimate(value, variance, n, labels=labels, centre=centre)
