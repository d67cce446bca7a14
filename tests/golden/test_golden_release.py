"""The state of a release goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.curator.factorised import FactorisedCounter
from hubbub.curator.files import ReleaseFile, SumsFile
from hubbub.curator.tops import ToPS
from hubbub.protocols.topl.server import ToPL
from hubbub.random.source import Random
from hubbub.rehearse.release import LocalReleaseFile
from tests.golden.make_release import VALUES

HERE = Path(__file__).parent


def copied(name: str, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    shutil.copytree(HERE / name, tmp_path / "copy")
    return tmp_path / "copy" / "state", json.loads((HERE / name / "expected.json").read_text())


def floats(told: list[float | None]) -> Any:
    return pytest.approx(np.array(told, dtype=float), nan_ok=True)


def test_a_release_is_answered_again(tmp_path: Path) -> None:
    path, told = copied("release-1", tmp_path)
    with ReleaseFile(path, ToPS(**told["settings"]), source="golden", every=told["every"]) as release:
        assert release.pending.published == floats(told["pending"])
        assert release.replay(np.array(VALUES))[:60] == floats(told["again"])


def test_a_local_release_goes_on(tmp_path: Path) -> None:
    path, told = copied("local-1", tmp_path)
    with LocalReleaseFile(path, ToPL(**told["settings"]), source="golden") as release:
        assert [list(step) for step in release.steps] == told["steps"]
        assert release.server.theta == told["theta"]
        assert len(release.server.clipping) == 2
        steps = release.report(np.array(VALUES[150:]), Random(seed=2))
    assert [step.step for step in steps] == [2]


def test_running_sums_are_answered_again(tmp_path: Path) -> None:
    path, told = copied("sums-1", tmp_path)
    with SumsFile(path, FactorisedCounter(**told["settings"]), 20.0, source="golden") as sums:
        assert sums.pending.published == floats(told["pending"])
        assert sums.replay(np.array(VALUES))[:60] == floats(told["again"])
