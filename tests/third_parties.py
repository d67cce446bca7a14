"""Third parties that touch the file of a SQLite database while someone else has it open: processes of their own."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_BACKUP = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))"
_READ = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
database.close()
"""
_WRITE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
database.execute("BEGIN IMMEDIATE")
database.execute("CREATE TABLE another (number INTEGER)")
database.execute("ROLLBACK")
database.close()
"""
_CHECKPOINT = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
database.close()
"""
_BUSY = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    sys.exit(3)
"""


def locked(path: Path) -> bool:
    """Whether another process finds it locked."""
    return subprocess.run([sys.executable, "-c", _BUSY, str(path)], check=False, timeout=60).returncode == 3


def _python(code: str) -> Callable[[Path, Path], None]:
    def touch(path: Path, folder: Path) -> None:
        copy = folder / "copy.db"
        copy.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-c", code, str(path), str(copy)], check=True, timeout=120)

    return touch


def _copy(path: Path, folder: Path) -> None:
    """A copy tool, such as `cp`: it reads the bytes, and knows of no locks."""
    for part in path.parent.glob(f"{path.name}*"):
        if part.is_file():
            subprocess.run(["cp", str(part), str(folder / f"cp-{part.name}")], check=False, timeout=120)


def _shell(path: Path, folder: Path) -> None:
    """The shell of SQLite, where it is installed."""
    if shutil.which("sqlite3"):
        command = ["sqlite3", "-cmd", ".timeout 30000", str(path), "SELECT COUNT(*) FROM sqlite_master"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    else:
        TOUCHES["read"](path, folder)


TOUCHES: dict[str, Callable[[Path, Path], None]] = {
    "backup": _python(_BACKUP),
    "read": _python(_READ),
    "write": _python(_WRITE),
    "checkpoint": _python(_CHECKPOINT),
    "copy": _copy,
    "shell": _shell,
}
"""Each is called with the database and a folder where it may write."""
