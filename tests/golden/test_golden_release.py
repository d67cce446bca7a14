"""A release's state of every format so far is resumed as it would have been then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from make_release import VALUES

from hubbub.curator.release_file import ReleaseFile
from hubbub.curator.tops import ToPS

FOLDERS = sorted(Path(__file__).parent.glob("release-*"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_stored_release_goes_on(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    told = json.loads((folder / "expected.json").read_text())
    with ReleaseFile(tmp_path / "copy" / "state", ToPS(**told["settings"]), source="golden") as release:
        assert release.pending.published == pytest.approx(np.array(told["pending"], dtype=float), nan_ok=True)
        rest = release.push_many(VALUES[90:])
    assert rest == pytest.approx(np.array(told["rest"], dtype=float), nan_ok=True)
