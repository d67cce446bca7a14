"""`--store`: a password is not for the command line, which every user of the machine can read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "emoji.toml"
NOBODY = "127.0.0.1:1/nothing?connect_timeout=2"


def serve(folder: Path, *options: str, **env: str) -> str:
    hubbub = [sys.executable, "-c", "from hubbub.cli import main; main()"]
    command = [*hubbub, "serve", str(EXAMPLE), "--port", "0", "--keys", str(folder / "keys"), *options]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    return done.stderr


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
