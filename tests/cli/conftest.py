"""For the tests of the commands."""

from pathlib import Path

import pytest

from tests.cli.commands import Hubbub


@pytest.fixture
def hubbub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hubbub:
    """The command, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Hubbub(tmp_path)
