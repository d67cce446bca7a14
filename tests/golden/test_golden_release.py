"""A release's state of every format so far goes on, or is refused with a reason."""

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
from hubbub.ledger.file import LedgerUnavailable
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


@pytest.mark.parametrize(("name", "inside", "trees"), [("release-1", 0, 1), ("release-1-open", 2, 3)])
def test_a_release_of_format_1_goes_on_and_the_noise_that_it_had_is_not_used(
    name: str, inside: int, trees: int, tmp_path: Path
) -> None:
    """In a new search, and within a block. It held the key of what it would have published next: `rest`."""
    path, told = copied(name, tmp_path)
    for _ in range(2):  # migrated, and as it is then
        with ReleaseFile(path, ToPS(**told["settings"]), source="golden") as release:
            assert release.pending.published == floats(told["pending"])
            assert release.stream.position == 90
    with ReleaseFile(path, ToPS(**told["settings"]), source="golden", rng=Random(seed=2)) as release:
        state = release.stream.state
        assert (state.inside, len(state.segments)) == (inside, trees)
        rest = release.push_many(VALUES[90:])
    published = rest[~np.isnan(rest)]
    assert published.size >= 40
    assert not np.isin(published[4:], np.array(told["rest"], dtype=float)).any()  # the first block is predicted alike


def test_an_interrupted_release_of_format_1_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path, told = copied("release-1-interrupted", tmp_path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="interrupted, and the hubbub that began it has to finish it"):
            ReleaseFile(path, ToPS(**told["settings"]), source="golden")
    assert path.read_bytes() == before


def test_a_release_of_format_2_is_answered_again(tmp_path: Path) -> None:
    path, told = copied("release-2", tmp_path)
    with ReleaseFile(path, ToPS(**told["settings"]), source="golden", every=told["every"]) as release:
        assert release.pending.published == floats(told["pending"])
        assert release.replay(np.array(VALUES))[:60] == floats(told["again"])


@pytest.mark.parametrize("golden", ["local-1", "local-2"])
def test_a_local_release_goes_on(golden: str, tmp_path: Path) -> None:
    """Of format 1 it is not known what clipping hides."""
    path, told = copied(golden, tmp_path)
    with LocalReleaseFile(path, ToPL(**told["settings"]), source="golden") as release:
        assert [list(step) for step in release.steps] == told["steps"]
        assert release.server.theta == told["theta"]
        assert len(release.server.clipping) == (0 if golden == "local-1" else 2)
        steps = release.report(np.array(VALUES[150:]), Random(seed=2))
    assert [step.step for step in steps] == [2]


def test_running_sums_are_answered_again(tmp_path: Path) -> None:
    path, told = copied("sums-1", tmp_path)
    with SumsFile(path, FactorisedCounter(**told["settings"]), 20.0, source="golden") as sums:
        assert sums.pending.published == floats(told["pending"])
        assert sums.replay(np.array(VALUES))[:60] == floats(told["again"])
