"""`--store`: no password on the command line, which every user can read; and files that are no stores."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.service.store.sqlite import SqliteStore
from hubbub.shuffler.store import ShufflerStore

EXAMPLE = Path(__file__).parents[2] / "examples" / "emoji.toml"
NOBODY = "127.0.0.1:1/nothing?connect_timeout=2"


def started(*command: str, **env: str) -> str:
    """The one line with which a program that does not start says why."""
    hubbub = [sys.executable, "-c", "from hubbub.cli import main; main()", *command]
    done = subprocess.run(hubbub, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr


def serve(folder: Path, *options: str, **env: str) -> str:
    return started("serve", str(EXAMPLE), "--port", "0", "--keys", str(folder / "keys"), *options, **env)


@pytest.mark.parametrize(
    "url", [f"postgresql://me:secret@{NOBODY}", f"postgresql://{NOBODY}&password=secret", "sqlite://me:secret@/x.db"]
)
def test_a_password_on_the_command_line_is_refused(refused: Callable[..., str], tmp_path: Path, url: str):
    message = refused("serve", EXAMPLE, "--port", "0", "--keys", tmp_path / "keys", "--store", url)
    assert "no password on the command line" in message
    assert "HUBBUB_STORE" in message
    assert "secret" not in message
    assert not (tmp_path / "keys").exists()


def test_from_the_environment_it_is_taken(tmp_path: Path):
    message = serve(tmp_path, HUBBUB_STORE=f"postgresql://me:secret@{NOBODY}")
    assert "connection failed" in message
    assert "secret" not in message


def test_without_a_password_it_may_be_on_the_command_line(tmp_path: Path):
    message = serve(tmp_path, "--store", f"postgresql://me@{NOBODY}", HUBBUB_STORE="mysql://unused")
    assert "connection failed" in message


def noise(path: Path) -> None:
    path.write_bytes(b"no database" * 999)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def damaged_root(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(4096) + content[8192:])


def version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE meta SET value = 'later' WHERE key = 'version'")
        database.commit()


@pytest.mark.parametrize("damage", [noise, folder, cut, damaged_root, version])
def test_a_store_that_cannot_be_read_is_one_line(
    refused: Callable[..., str], tmp_path: Path, damage: Callable[[Path], None]
):
    SqliteStore(tmp_path / "hubbub.db").close()
    ShufflerStore(tmp_path / "first.db").close()
    for name in ("hubbub.db", "first.db"):
        damage(tmp_path / name)
    store = ("--store", f"sqlite:///{tmp_path / 'hubbub.db'}")
    serve(tmp_path, *store)
    refused("backup", tmp_path / "backup", *store)
    assert not (tmp_path / "backup").exists()
    settings = {"collection": "c", "collector": "http://127.0.0.1:9", "public_key": "0" * 64, "key": "first.key"}
    lines = [f'{name} = "{value}"' for name, value in {**settings, "store": "first.db"}.items()]
    (tmp_path / "first.toml").write_text("\n".join([*lines, "port = 0"]))
    started("shuffler", "serve", "--config", str(tmp_path / "first.toml"))
