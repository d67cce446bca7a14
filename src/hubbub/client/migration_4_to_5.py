"""The migration of a client's folder from format 4 to 5: memos and streams of changes become rows of `states`.

Format 4 had tables of their own for them.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hubbub.client.store import STATES
from hubbub.core.errors import DecodeError
from hubbub.core.migrations import Run
from hubbub.mechanisms.stateful import States

TABLES_4 = (
    "CREATE TABLE enrolled (account TEXT PRIMARY KEY, public INTEGER NOT NULL, current INTEGER)",
    "CREATE TABLE memos (account TEXT NOT NULL, key INTEGER NOT NULL, memo BLOB NOT NULL, PRIMARY KEY (account, key))",
    "CREATE TABLE following (question TEXT PRIMARY KEY, stream TEXT NOT NULL, state BLOB NOT NULL, "
    "told INTEGER NOT NULL, enrolment BLOB)",
)


def from_4(run: Run) -> None:
    """Make one state of all memos of an account, and one of each stream of changes."""
    run(STATES)
    for account, public, current in run("SELECT account, public, current FROM enrolled"):
        memos = run("SELECT key, memo FROM memos WHERE account = ? ORDER BY rowid", account)
        if memos:  # without a memo nothing was reported, and the state can be drawn again
            run("INSERT INTO states VALUES (?, '', ?, 0, NULL)", account, _of_memos(account, public, current, memos))
    for question, stream, state, enrolled, enrolment in run("SELECT * FROM following"):
        horizon, spec_id, *grid = json.loads(stream)
        values = (json.dumps([str(horizon), spec_id, *grid]), _of_changes(spec_id, bytes(state)), enrolled, enrolment)
        run("INSERT INTO states VALUES (?, ?, ?, ?, ?)", f"question:{question}", *values)
    for table in ("enrolled", "memos", "following"):
        run(f"DROP TABLE {table}")


def _of_memos(account: str, public: int, current: int | None, memos: list[Any]) -> bytes:
    keys = [key for key, _ in memos]
    answers = [_unpacked(memo, ("memo",), tuple[str, str, int, int, bytes])[4] for _, memo in memos]
    columns: dict[str, NDArray[Any]] = {
        "public": np.array([public], dtype=np.int64),
        "current": np.array([0 if current is None else keys.index(current) + 1], dtype=np.int64),
        "keys": np.array([keys], dtype=np.int64) + 1,
        "answers": np.frombuffer(b"".join(answers), dtype=np.uint8).reshape(1, len(keys), -1),
    }
    return States(account.rpartition(":")[2], columns).to_bytes()


def _of_changes(spec_id: str, data: bytes) -> bytes:
    parts = tuple[str, int, int, bytes, bytes, bytes]
    _, node, width, current, used, online = _unpacked(data[1:], ("sao2 device",), parts)
    counters = _unpacked(online, ("online exsub",), tuple[str, str, bytes])[2]
    columns: dict[str, NDArray[Any]] = {
        "level": np.array([data[0]], dtype=np.uint8),
        "node": np.array([node], dtype=np.int32),
        "begun": np.ones(1, dtype=np.uint8),
        "held": np.frombuffer(current, dtype=np.int8).reshape(1, width),
        "used": np.frombuffer(used, dtype="<i4").astype(np.int32),
        "counters": np.frombuffer(counters, dtype="<i4").astype(np.int32).reshape(1, 5),
    }
    return States(spec_id, columns).to_bytes()


def _unpacked(data: bytes, kind: tuple[str], parts: Any) -> Any:
    unpacked = msgspec.msgpack.decode(data, type=parts)
    if unpacked[0] != kind[0]:
        raise DecodeError("state", data[:40], f"the bytes of a {kind[0]}")
    return unpacked
