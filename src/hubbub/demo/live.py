"""The live demonstration: a real collector, and devices in several processes that answer it over HTTP."""

import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from hubbub.client.upload import HttpTransport, Unreachable
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.demo.alarm_receiver import AlarmReceiver, DeliveredAlarm
from hubbub.demo.programs import Programs
from hubbub.demo.scenes import Scene, scenes
from hubbub.statistics.selection import Selected

_NO_FAULT = ("accepted", "duplicate", "cover")


@dataclass(frozen=True, eq=False)
class SceneResult:
    """What the collector has released for one scene so far.

    Parameters
    ----------
    outcomes
        The number of reports by outcome: "accepted", "duplicate", or why they were rejected.
    estimate, truth
        The estimate of all steps together, or of the latest step, and the truth; no estimate before the first release.
    when
        The time of the latest step in the data, in words.
    """

    scene: Scene
    outcomes: Mapping[str, int]
    steps: int
    estimate: Estimate | None
    truth: Floats
    when: str


@dataclass(frozen=True, eq=False)
class LiveResults:
    """The results of all scenes at one moment."""

    scenes: tuple[SceneResult, ...]
    alarms: tuple[DeliveredAlarm, ...] = ()
    """The alarms that the webhook has received so far."""

    @property
    def complete(self) -> bool:
        """Whether every scene has an estimate."""
        return all(scene.estimate is not None for scene in self.scenes)

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of reports by outcome, over all scenes."""
        total: Counter[str] = Counter()
        for scene in self.scenes:
            total.update(scene.outcomes)
        return dict(total)

    @property
    def accepted(self) -> int:
        """Reports that were counted."""
        return self.outcomes.get("accepted", 0)

    @property
    def rejected(self) -> int:
        """Reports that were refused, for any reason."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in _NO_FAULT)


def covered(estimate: Estimate, truth: Floats) -> int:
    """How many 95% intervals hold the truth.

    Example:
        >>> covered(Estimate([0.5, 0.5], [0.01, 0.01], 10), np.array([0.4, 0.9]))
        1
    """
    low, high = estimate.interval(0.95)
    return int(((low <= truth) & (truth <= high)).sum())


def true_shares(truth: Floats, labels: Sequence[str], texts: Sequence[str]) -> Floats:
    """The true share of each label: in the order of the codes, or, of texts that were found, by the text.

    Example:
        >>> true_shares(np.array([0.7, 0.3]), ["of"], ["the", "of"]).tolist()
        [0.3]
    """
    if not texts:
        return truth[: len(labels)]
    places = {text: place for place, text in enumerate(texts)}
    return np.array([truth[places[label]] if label in places else 0.0 for label in labels])


def mean_of_releases(releases: Sequence[dict[str, Any]]) -> Estimate:
    """The mean estimate of releases whose errors are independent.

    Example:
        >>> row = {"value": [0.5], "variance": [0.02], "n": 10, "labels": ["a"]}
        >>> mean_of_releases([row, row]).variance.tolist()
        [0.01]
    """
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


_FEWEST, _MOST = 50, 1_000_000
_START_SECONDS = 4


class Live:
    """The live demonstration; it runs while a `with` block lasts.

    Parameters
    ----------
    devices
        How many answer each collection.
    workers
        In how many processes the devices of each collection run.
    seed
        Decides what the owners of the devices hold, and what the devices draw: both are simulated.
    folder
        The folder of the store, keys and logs; unless given, a temporary one that is removed afterwards.
    port
        The port on which the collector listens on this machine; 0 takes a free one.
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
        self._truths: dict[tuple[str, int], Floats] = {}
        self._stack = ExitStack()
        self._receiver = AlarmReceiver()
        self._programs: Programs | None = None
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
            self._programs = stack.enter_context(Programs(self._folder))
            self._start(self._programs)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes: the collector, then the devices'."""
        return [] if self._programs is None else self._programs.ids

    @property
    def token(self) -> str:
        """The token that opens the collector's results."""
        assert self._folder is not None
        return (self._folder / "keys" / "admin.token").read_text(encoding="ascii").strip()

    def check(self) -> None:
        """Raise `ProgramStopped` if a process has ended."""
        assert self._programs is not None
        self._programs.check()

    def results(self) -> LiveResults:
        """Ask the collector for the results of all scenes."""
        self.check()
        return LiveResults(tuple(self._result(scene) for scene in self.scenes), tuple(self._receiver.alarms))

    def _result(self, scene: Scene) -> SceneResult:
        root = f"/v1/collections/{scene.name}"
        outcomes = self._get(f"{root}/counts")["outcomes"]
        releases = self._get(f"{root}/questions/{scene.question}/releases")["releases"]
        known = [row for row in releases if row["withheld"] is None and row["value"] and None not in row["variance"]]
        shown = known if scene.pooled else known[-1:]
        truths = [self._truth(scene, row["step"]) for row in shown]
        return SceneResult(
            scene=scene,
            outcomes=outcomes,
            steps=len(known),
            estimate=mean_of_releases(shown) if shown else None,
            truth=true_shares(np.mean(truths, axis=0), shown[0]["labels"], scene.texts) if shown else np.zeros(0),
            when=scene.when(shown[-1]["step"]) if shown else "",
        )

    def _truth(self, scene: Scene, step: int) -> Floats:
        if (scene.name, step) not in self._truths:
            groups = self._people[scene.name]
            values = np.concatenate([group.codes(step) for group in groups])
            self._truths[scene.name, step] = np.bincount(values, minlength=groups[0].symbols) / self.devices
        return self._truths[scene.name, step]

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        response = HttpTransport(self.address).request("GET", path, headers)
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return json.loads(response.body)

    def _start(self, programs: Programs) -> None:
        settings = {
            "collections": [scene.collection.spec() for scene in self.scenes],
            "alarms": {scene.name: scene.alarms.spec() for scene in self.scenes},
            "webhook": {"url": self._receiver.url, "secret": self._receiver.secret},
            "folder": str(self._folder),
            "port": self._port,
        }
        ready = programs.start("collector", ["hubbub.demo.collector"], "public_key", _line(settings))
        self.address = f"http://127.0.0.1:{ready['port']}"
        for name, groups in self._people.items():
            collector = {"address": self.address, "public_key": ready["public_key"], "name": name}
            for people in groups:
                given = _line({**collector, "people": asdict(people)})
                programs.start("devices", ["hubbub.demo.devices"], given=given)


def _line(settings: dict[str, Any]) -> str:
    return json.dumps(settings) + "\n"
