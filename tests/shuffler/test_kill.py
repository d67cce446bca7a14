"""A shuffler that is killed at any commit loses nothing and doubles nothing: real processes, real kills."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Unreachable
from hubbub.service.base.limits import Receipt
from tests.shuffler.share_world import ShareWorld
from tests.shuffler.shuffle_world import KEYS, PEOPLE, ShuffleWorld

VALUES = PEOPLE[:22]


class Killed(Exception):
    """The process is gone."""


class HopProcess:
    """A shuffler in a process of its own, in the place of one in this process. It begins again after a kill."""

    def __init__(self, world: ShuffleWorld, number: int, folder: Path, dies_at: int) -> None:
        self.world, self.number, self.folder, self.dies_at = world, number, folder, dies_at
        self.deaths = self.moments = 0
        world.stores[number].close()
        world.keys[number].save(folder / "keys.json")
        self.begin(dies_at)

    def begin(self, dies_at: int) -> None:
        given = [self.folder / f"shuffler-{self.number}.db", self.folder / "keys.json", "survey", KEYS.public.hex()]
        script = Path(__file__).with_name("hop_and_die.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), *map(str, given), str(dies_at)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert self.read() == {"ready": True}
        except Killed:
            self.again()

    def again(self) -> None:
        assert self.process.wait() == -9
        self.shut()
        self.deaths += 1
        self.begin(0)

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Killed
        return json.loads(line)

    def write(self, line: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def call(self, what: str, given: Any = None) -> Any:
        """Do something there; whoever asks tries again if it died meanwhile."""
        try:
            self.write([self.world.clock.now(), what, given])
            while "request" in (told := self.read()):
                who, method, path, headers, body = told["request"]
                try:
                    raw = None if body is None else bytes.fromhex(body)
                    answer = self.world.to(who).request(method, path, headers, raw)
                    self.write([answer.status, answer.body.hex()])
                except Unreachable:
                    self.write([0, ""])
        except Killed:
            self.again()
            raise Unreachable("it was killed") from None
        if "problem" in told:
            raise Unreachable(str(told["problem"]))
        self.moments = told.get("moments", self.moments)
        return told["done"]

    # -- what a ShufflerHop has -------------------------------------------------------------------------------

    def refresh(self) -> None:
        self.call("refresh")

    def take(self, kind: str, body: bytes) -> Receipt:
        accepted, duplicates, rejected = self.call("take", [kind, body.hex()])
        return Receipt(accepted, duplicates, [tuple(row) for row in rejected])

    def receive(self, body: bytes) -> Any:
        return self.call("receive", body.hex())

    def receive_message(self, body: bytes) -> Any:
        return self.call("receive_message", body.hex())

    def tick(self) -> None:
        try:
            self.call("tick")
        except Unreachable:
            self.call("tick")

    def status(self) -> Any:
        return self.call("status")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.shut()

    def shut(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def live(folder: Path, number: int, dies_at: int, kind: type[ShuffleWorld] = ShuffleWorld) -> HopProcess:
    """One step with a shuffler that dies once: everyone is counted, once."""
    folder.mkdir()
    world = kind(folder)
    world.hops[number] = hop = HopProcess(world, number, folder, dies_at)
    try:
        while True:
            try:
                hop.refresh()
                break
            except Unreachable:
                continue
        for entry in world.entries(VALUES):
            while any(told["status"] != 200 for told in world.send([entry])):
                pass  # as devices do: the same bytes until they are acknowledged
        world.close()
        for _ in range(1 if kind is ShuffleWorld else 30):
            world.tick()
        assert world.released()["n"] == len(VALUES)
        batch, fakes = world.stored(), 10 if kind is ShuffleWorld else 5
        assert (batch.n, batch.fakes, batch.unreadable, batch.repeated) == (len(VALUES) + fakes, fakes, 0, 0)
        assert world.handed()  # however often it was sent: one order, one set of fakes
        return hop
    finally:
        hop.end()
        world.store.close()
        for store in world.stores:
            store.close()


def moments(folder: Path, number: int, kind: type[ShuffleWorld] = ShuffleWorld) -> range:
    """Every moment of a run at which it may die; of the many uploads, the first and the last ones."""
    hop = live(folder, number, 0, kind)
    assert not hop.deaths
    return range(1, hop.moments + 1)


@pytest.mark.parametrize(("number", "part"), [(0, 0.97), (1, 0.8)], ids=["first", "second"])
def test_a_kill_loses_and_doubles_nothing(tmp_path: Path, number: int, part: float) -> None:
    """The commit of the turn itself, of the first shuffler and of the second."""
    every = moments(tmp_path / "whole", number)
    assert live(tmp_path / "killed", number, int(part * every[-1])).deaths == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1], ids=["first", "second"])
def test_a_kill_at_any_commit(tmp_path: Path, number: int) -> None:
    every = moments(tmp_path / "whole", number)
    uploads = 2 * len(VALUES) if number == 0 else 0
    for moment in every:
        if uploads and 8 < moment <= uploads:
            continue  # uploads are all alike
        assert live(tmp_path / str(moment), number, moment).deaths == 1, moment


@pytest.mark.parametrize(("number", "parts"), [(0, [0.8, 0.97]), (1, [0.85]), (2, [0.76, 0.9])])
def test_a_kill_of_a_shuffler_of_shares_loses_and_doubles_nothing(
    tmp_path: Path, number: int, parts: list[float]
) -> None:
    """In the middle of its steps, whose messages are then sent as they were."""
    every = moments(tmp_path / "whole", number, ShareWorld)
    for part in parts:
        assert live(tmp_path / str(part), number, int(part * every[-1]), ShareWorld).deaths == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_kill_of_a_shuffler_of_shares_at_any_commit(tmp_path: Path, number: int) -> None:
    every = moments(tmp_path / "whole", number, ShareWorld)
    for moment in every:
        if not 8 < moment <= 2 * len(VALUES):  # uploads are all alike
            assert live(tmp_path / str(moment), number, moment, ShareWorld).deaths == 1, moment
