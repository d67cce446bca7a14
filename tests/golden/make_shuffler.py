"""Makes a golden file of a shuffler's store, in the format of the code that it is run with.

    python -m tests.golden.make_shuffler FOLDER

One batch still gathers, one is made and was not taken yet, one was dropped.
"""

import json
import sqlite3
import sys
from pathlib import Path

from hubbub.collection.names import AnswerName
from hubbub.shuffler.store import ShufflerStore


def make(folder: Path) -> None:
    """The store, and what must be read from it."""
    folder.mkdir(parents=True)
    store = ShufflerStore(folder / "shuffler.db")
    for step, state in ((7, "gathering"), (6, "made"), (5, "dropped")):
        name = f"survey:1:popular:0:{step}:1:0"
        with store.transaction():
            store.begin(name, 1, AnswerName("popular", 0, step, 1, 0), (step + 1) * 3600.0)
            for number in range(3):
                store.add(name, bytes([number]) * 16, bytes([step, number]) * 50)
            store.count("accepted", 3)
        if state == "made":
            store.close_batch(name)
            store.keep_outgoing(name, b"what goes on", "3 came, 0 unreadable, 0 repeated, 5 fakes")
        elif state == "dropped":
            store.end(name, "dropped", "too few")
    expected = {
        "batches": [
            [row.name, row.state, row.note, (store.outgoing(row.name) or b"").hex()] for row in store.batches()
        ],
        "onions": [onion.hex() for _, onion in store.reports("survey:1:popular:0:7:1:0")],
        "counts": store.counts(),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    store.close()
    database = sqlite3.connect(folder / "shuffler.db")
    for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 1024", "VACUUM"):
        database.execute(statement)
    database.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
