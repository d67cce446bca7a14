"""Collectors in processes of their own."""

import json
import sys
from pathlib import Path

from hubbub import Sketch
from hubbub.collection import open_sealed
from hubbub.collection.names import AnswerName
from hubbub.service.store import open_store
from tests.served import ServedProcess, requested
from tests.service.exact_world import exact_collection
from tests.shared.killed_processes import run_script

HERE = Path(__file__).parent
HUBBUB = [sys.executable, "-c", "from hubbub.cli import main; main()"]
COLLECTION = exact_collection(step=86400, lateness=3600)
"""What `serve_exact.py` serves."""


def deaths(kind: str, stride: int, *urls: str) -> int:
    """How many collectors were killed by `collector_crash.py`; nothing was wrong with what they left behind."""
    result = run_script(HERE / "collector_crash.py", kind, stride, *urls)
    assert result["wrong"] == []
    return int(result["lives"])


def exact_process(store: str, folder: Path, *mode: str) -> ServedProcess:
    command = [sys.executable, str(HERE / "serve_exact.py"), store, str(folder / "hubbub-keys"), *mode]
    return ServedProcess(command, folder)


def ask_at(port: int) -> AnswerName:
    """The name of the only ask of `serve_exact.py`."""
    document = json.loads(requested(port, "/v1/collections/exact/asks")[1])
    (ask,) = open_sealed(document, bytes.fromhex(document["key"]))["asks"]
    return AnswerName(ask["question"], ask["run"], int(ask["ask"]["step"]), ask["round"], ask["part"])


def stored(url: str) -> Sketch:
    """What a store has of the only ask."""
    store = open_store(url)
    try:
        era = store.era(COLLECTION.collection_id, "all")
        assert era is not None
        (row,) = store.asks(era)
        assert store.counts()[COLLECTION.collection_id, "accepted"] == Sketch.from_bytes(row.sketch).n
        return Sketch.from_bytes(row.sketch)
    finally:
        store.close()


def peak_memory(pid: int | None = None) -> int:
    """The most memory that a process has held. Linux's getrusage would count its parent's from before the exec."""
    status = Path(f"/proc/{pid or 'self'}/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, of this process
