"""What the tests of the browser's client share: Node and its tools, the built client, a real browser."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js"
_browser = run_path(str(Path(__file__).with_name("chromium.py")))
NODE: str = _browser["NODE"]


@pytest.fixture(scope="session")
def node() -> list[str]:
    """The command that runs Node."""
    return [NODE]


@pytest.fixture(scope="session")
def tools() -> Path:
    """The client's folder, with esbuild and TypeScript as its lock file says."""
    lock, installed = CLIENT / "package-lock.json", CLIENT / "node_modules" / "lock.json"
    with (CLIENT / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # several test processes may begin at once
        if not installed.exists() or installed.read_bytes() != lock.read_bytes():
            subprocess.run([*_browser["NPM"], "ci", "--loglevel=error"], cwd=CLIENT, check=True)
            installed.write_bytes(lock.read_bytes())
    return CLIENT


@pytest.fixture(scope="session")
def built(tools: Path) -> Path:
    """The folder of the built client."""
    subprocess.run([NODE, "build.mjs"], cwd=tools, check=True)
    return tools / "dist"
