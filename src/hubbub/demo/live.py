"""The live demonstration: a real collector, and devices in several processes that answer it over HTTP."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.client.transport import HttpTransport, Unreachable
from hubbub.core.errors import InvalidValue
from hubbub.demo.alarm_receiver import AlarmReceiver
from hubbub.demo.live_results import LiveResults, SceneResult, mean_of_releases, true_shares
from hubbub.demo.programs import Programs
from hubbub.demo.scene import Scene
from hubbub.demo.scenes import scenes

_FEWEST, _MOST = 50, 1_000_000
_START_SECONDS = 4


class Live:
    """The live demonstration; it runs while a `with` block lasts.

    Parameters
    ----------
    devices
        How many answer each collection.
    step_seconds
        How long a step is.
    workers
        In how many processes the devices of each collection run.
    seed
        Decides what the owners of the devices hold, and what the devices draw: both are simulated.
    folder
        The folder of the store, keys and logs; unless given, a temporary one that is removed afterwards.
    port
        The port on which the collector listens on this machine; 0 takes a free one.
    say
        Called with a message when data is fetched.
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

    def _truth(self, scene: Scene, step: int) -> NDArray[np.float64]:
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
