"""Collector processes over one PostgreSQL for tests, with a mechanism that hides nothing: a parent and its workers.

    python serve_joint.py STORE KEYS STEP LATENESS WORKERS

As `hubbub serve --workers`; a kind that only tests have cannot be in a collection file.
"""

import os
import sys
from pathlib import Path

from hubbub.dashboard.pages import dashboard
from hubbub.mechanisms import MECHANISMS
from hubbub.service.base.logs import log, set_up
from hubbub.service.base.trusted_clock import TrustedClock
from hubbub.service.collector.joint import JointCollector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import KeyFolder, bind, run
from hubbub.service.http.workers import fork_workers
from hubbub.service.store.joint import JointStore
from tests.service.exact_world import Exact, exact_collection


def main(url: str, keys: str, step: str, lateness: str, workers: str) -> int:
    MECHANISMS["Exact"] = Exact
    folder, listening = KeyFolder(Path(keys)), bind("127.0.0.1", 0)
    signing, token = folder.keys(), folder.token()
    set_up()
    at = f"http://127.0.0.1:{listening.getsockname()[1]}"
    worker = fork_workers(int(workers), lambda: log("serving", at=at, pid=os.getpid()))
    if isinstance(worker, int):
        return worker
    collection = exact_collection(step=int(step), lateness=int(lateness))
    store = JointStore(url)
    collector = JointCollector([collection], store, url=url, clock=TrustedClock(store.clock()), keys=signing)

    def ready() -> None:
        worker.ready()
        log("worker ready", worker=worker.number, pid=os.getpid())

    return run(collector, Tokens([token]), [listening], routes=dashboard(None), on_ready=ready)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
