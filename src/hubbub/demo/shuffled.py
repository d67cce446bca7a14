"""The demonstration of shuffled reports: a real collector, real shufflers, and devices, each in its own process."""

import json
import socket
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from hubbub.authoring.coalitions import Coalition, coalitions_of
from hubbub.client.upload import HttpTransport, Unreachable
from hubbub.collection.shuffle_route import ROUTES, HomomorphicKey, ObliviousRoute, Route, RouteShuffler
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.demo.people import Owners, People
from hubbub.demo.programs import Programs
from hubbub.demo.scene_files import aircraft_file, emoji_file
from hubbub.demo.scenes import AWAY, EMOJI, Say, Scene, aircraft_scene, emoji_scene
from hubbub.questions.collection import Collection
from hubbub.service.http.key_folder import KeyFolder
from hubbub.shuffler.config import ShufflerKeys

HORIZON = 4
"""How many steps a stream is shown for."""


def collection_file(route: Route, step_seconds: int, origin: int, *, stream: bool = False) -> str:
    """The collection's file (TOML), with the shufflers of a route: one histogram, or a stream of changes."""
    given: dict[str, Any] = {
        "trust": route.trust,
        "lateness": max(2 * route.turns, step_seconds // 2),
        "origin": origin,
    }
    if stream:
        lines = [aircraft_file(AWAY, step_seconds, steps=HORIZON, epsilon=2.0, **given)]
    else:
        lines = [emoji_file(EMOJI, step_seconds, epsilon=3.0, **given)]
    lines += ["[shuffle]", *(f"{key} = {json.dumps(getattr(route, key))}" for key in ("collector_key", "delta"))]
    lines += [f"least = {route.least}", f"fakes = {route.fakes}"]
    if isinstance(route, ObliviousRoute):
        key = vars(route.homomorphic_key)
        lines += ["[shuffle.homomorphic_key]", *(f"{name} = {json.dumps(value)}" for name, value in key.items())]
    for shuffler in route.shufflers:
        lines += ["[[shuffle.shufflers]]", *(f"{key} = {json.dumps(value)}" for key, value in vars(shuffler).items())]
    return "\n".join(lines) + "\n"


SHUFFLERS = {"shuffle": 2, "oblivious": 3}
"""How many shufflers there are, by the trust of the collection."""
LEAST_STEP = {"shuffle": 6, "oblivious": 20}
DELTA = 1e-6
_START_SECONDS = 8


@dataclass(frozen=True, eq=False)
class ShuffledResult:
    """The result of one step; of a stream, of its last step.

    Parameters
    ----------
    estimate, truth
        The shares that were released, and those of the people.
    batches
        What the collector says of the batches that it took: one, or one for each level and step of a stream.
    present
        How many reports the coalitions' numbers count: of a stream, of devices of each level that missed no batch.
    """

    estimate: Estimate
    truth: Floats
    batches: tuple[dict[str, Any], ...]
    present: int
    coalitions: tuple[Coalition, ...]
    shufflers: tuple[dict[str, object], ...]
    outcomes: dict[str, int]


class ShuffledDemo:
    """The demonstration of shuffled reports; it runs while a `with` block lasts.

    Parameters
    ----------
    seed
        Decides what the owners of the devices hold, and what the devices draw: both are simulated.
    fakes
        How many reports each shuffler adds; all of them together, where shares are shuffled.
    trust
        "shuffle": reports in layers pass two shufflers. "oblivious": three shuffle shares of them together.
    stream
        Whether a value is followed over several steps, each of which is shuffled by itself; without fakes.
    """

    def __init__(
        self,
        *,
        devices: int = 600,
        step_seconds: int = 8,
        seed: int = 1,
        fakes: int = 300,
        trust: str = "shuffle",
        stream: bool = False,
        say: Say = None,
    ) -> None:
        if isinstance(devices, bool) or not 50 <= devices <= 20_000:
            raise InvalidValue("devices", devices, "an integer from 50 to 20000: every one of them seals its report")
        if isinstance(step_seconds, bool) or not LEAST_STEP[trust] <= step_seconds <= 3600:
            allowed = f"from {LEAST_STEP[trust]} to 3600 seconds, of which shufflers need some"
            raise InvalidValue("step", step_seconds, allowed)
        if stream and trust != "shuffle":
            raise InvalidValue("stream", stream, 'of trust "shuffle": signs are no numbers that could be shared out')
        self.devices, self.fakes, self.trust, self.stream = devices, 0 if stream else fakes, trust, stream
        self.scene: Scene = (aircraft_scene if stream else emoji_scene)(step_seconds, say)
        self._step, self._seed = step_seconds, seed
        self._stack = ExitStack()
        self.address = ""
        """Where the collector is, and the page for people."""
        self.urls: list[str] = []
        """Where the shufflers are."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-shuffled-")))
            self._programs = stack.enter_context(Programs(self._folder))
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes: the collector, the shufflers, the devices'."""
        return self._programs.ids

    @property
    def collection(self) -> Collection:
        """What the devices are asked, and who shuffles."""
        return self.scene.collection

    def result(self) -> ShuffledResult | None:
        """The result of the first step that was released; None before. A busy machine may miss earlier steps."""
        self._programs.check()
        root, question = f"/v1/collections/{self.scene.name}", self.scene.question
        rows = self._get(f"{root}/questions/{question}/releases")["releases"]
        steps = HORIZON if self.stream else 1
        row = next((row for row in rows if row["withheld"] is None and (row["step"] + 1) % steps == 0), None)
        if row is None:
            return None
        taken = self._get(f"{root}/shuffled")["questions"][question]["batches"]
        batches = tuple(batch for batch in taken if row["step"] - steps < batch["step"] <= row["step"])
        present = row["lost"]["present"] if self.stream else batches[0]["people"]
        people = self._people()
        truth = np.bincount(people.codes(row["step"]), minlength=people.symbols) / self.devices
        return ShuffledResult(
            estimate=Estimate(row["value"], row["variance"], row["n"], labels=tuple(row["labels"])),
            truth=truth[: len(row["value"])],
            batches=batches,
            present=present,
            coalitions=tuple(coalitions_of(self.collection, question, max(1, present))),
            shufflers=tuple(self._ask(url, "/v1/status") for url in self.urls),
            outcomes=self._get(f"{root}/counts")["outcomes"],
        )

    def _people(self) -> People | Owners:
        people = self.scene.people(self.devices, self._seed, 0)
        assert isinstance(people, People | Owners)
        return people

    def _start(self) -> None:
        keys = [ShufflerKeys.generate() for _ in range(SHUFFLERS[self.trust])]
        ports = _free_ports(len(keys))
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        collector = KeyFolder(self._folder / "keys")
        shared: dict[str, Any] = {}
        if self.trust == "oblivious":
            shared["homomorphic_key"] = HomomorphicKey.of(collector.homomorphic_key().public)
        route = ROUTES[self.trust](
            shufflers=tuple(RouteShuffler(url, **key.public()) for url, key in zip(self.urls, keys, strict=True)),
            collector_key=collector.onion_key().public.hex(),
            delta=DELTA,
            least=20 if self.stream else max(20, self.devices // 2),
            fakes=self.fakes,
            **shared,
        )
        file = self._folder / "collection.toml"
        origin = int(time.time()) + _START_SECONDS
        file.write_text(collection_file(route, self._step, origin, stream=self.stream), encoding="utf-8")
        from hubbub.authoring.toml import load_collection

        self.scene = replace(self.scene, collection=load_collection(file))
        options = ["--port", "0", "--keys", str(collector.path), "--store", f"sqlite:///{self._folder}/store.db"]
        serving = self._programs.start(
            "collector", ["hubbub.cli.until_input_ends", "serve", str(file), *options], "serving"
        )
        self.address, public = str(serving["at"]), str(serving["public_key"])
        for number, (port, key) in enumerate(zip(ports, keys, strict=True)):
            key.save(self._folder / f"shuffler-{number}.key")
            config = self._folder / f"shuffler-{number}.toml"
            config.write_text(
                f'collection = "{self.scene.name}"\ncollector = "{self.address}"\npublic_key = "{public}"\n'
                f'port = {port}\nkey = "shuffler-{number}.key"\nstore = "shuffler-{number}.db"\n'
            )
            command = ["hubbub.cli.until_input_ends", "shuffler", "serve", "--config", str(config)]
            self._programs.start(f"shuffler {number}", command, "shuffling")
        settings = {
            "address": self.address,
            "public_key": public,
            "name": self.scene.name,
            "people": asdict(self._people()),
        }
        self._programs.start("devices", ["hubbub.demo.shuffled_devices"], given=json.dumps(settings) + "\n")

    def _get(self, path: str) -> Any:
        token = (self._folder / "keys" / "admin.token").read_text(encoding="ascii").strip()
        return self._ask(self.address, path, {"Authorization": f"Bearer {token}"})

    def _ask(self, address: str, path: str, headers: dict[str, str] | None = None) -> Any:
        response = HttpTransport(address).request("GET", path, headers or {})
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return json.loads(response.body)


def _free_ports(count: int) -> list[int]:
    """Ports that nothing listens on: the signed collection names them before the shufflers listen there."""
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
