"""A shuffler in a process of its own, driven by lines of JSON, which kills itself at a commit.

    python hop_and_die.py STORE KEYS COLLECTION PUBLIC_KEY NUMBER

A commit has two moments, before and after it; it dies at the NUMBER-th moment, counted from 1. It asks whoever drives
it for everything that it would ask of the network.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hubbub.client import Response, Unreachable
from hubbub.collection import ManualClock
from hubbub.core.errors import HubbubError
from hubbub.random.source import Random
from hubbub.service.http.problems import problem_of
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.hop import ShufflerHop
from hubbub.shuffler.store import ShufflerStore


class DyingStore(ShufflerStore):
    """Kills its process at a moment of a commit."""

    moments = 0
    last = int(sys.argv[5])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        outer = not self._file.in_transaction
        with super().transaction():
            yield
            if outer:
                self.moment()
        if outer:
            self.moment()

    def moment(self) -> None:
        type(self).moments += 1
        if self.moments == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def say(line: Any) -> None:
    print(json.dumps(line), flush=True)


class Driven:
    """The network: whoever drives this process."""

    def __init__(self, who: str) -> None:
        self.who = who

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None, *, at_most: float = 0.0
    ) -> Response:
        say({"request": [self.who, method, path, dict(headers), None if body is None else body.hex()]})
        status, answer = json.loads(sys.stdin.readline())
        if status == 0:
            raise Unreachable("no route")
        return Response(status, {}, bytes.fromhex(answer))


def main() -> None:
    clock = ManualClock(0.0)
    store = DyingStore(sys.argv[1])
    keys, trusted = ShufflerKeys.load(sys.argv[2]), bytes.fromhex(sys.argv[4])
    hop = ShufflerHop(sys.argv[3], keys, store, Driven("collector"), trusted, clock=clock, connect=Driven, rng=Random())
    say({"ready": True})
    for line in sys.stdin:
        now, what, given = json.loads(line)
        clock.set(now)
        try:
            if what == "take":
                receipt = hop.take(given[0], bytes.fromhex(given[1]))
                say({"done": [receipt.accepted, receipt.duplicates, receipt.rejected]})
            elif what in ("receive", "receive_message"):
                say({"done": getattr(hop, what)(bytes.fromhex(given))})
            else:
                done = getattr(hop, what)()
                say({"done": done, "moments": store.moments})
        except HubbubError as error:
            problem = problem_of(error)
            say({"problem": [503 if isinstance(error, Unreachable) else problem.status, problem.body().decode()]})


if __name__ == "__main__":
    main()
