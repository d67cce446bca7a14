"""The state file of running sums: the rules of a release's, and noise that is drawn when a value comes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.curator.factorised import FactorisedCounter, FactorisedStream
from hubbub.curator.files import ReleaseFile, SumsFile
from hubbub.curator.tops import ToPS
from hubbub.ledger.file import LedgerUnavailable, StateInUse
from hubbub.random.source import Random

COUNTER = FactorisedCounter(rho=0.5, length=600)
VALUES = np.random.default_rng(3).gamma(2, 5, 600)
THETA = 12.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sums.state"


def opened(path: Path, seed: int = 11) -> SumsFile:
    return SumsFile(path, COUNTER, THETA, source="fares", rng=Random(seed=seed))


def weighted_noise(sums: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The noise of each value, from all sums from the first on: the second root is undone."""
    off = sums - np.minimum(values, THETA).cumsum()
    root = COUNTER.sums_of(np.eye(1, COUNTER.length)[0])
    matrix = np.array([[root[i - j] if i >= j else 0.0 for j in range(off.size)] for i in range(off.size)])
    return np.linalg.solve(matrix, off)


def test_sums_go_on_with_the_same_variance() -> None:
    """300 streams, stopped twice: the variance at the end is the formula's within 41%, five standard errors."""
    counter = FactorisedCounter(rho=0.5, length=64)
    values = np.tile([0.0, 5.0, 9.0, 20.0], 16)
    errors = []
    for run in range(300):
        stream = counter.start(10.0, Random(seed=run))
        for number, part in enumerate(np.split(values, [7, 40])):
            stream = FactorisedStream(counter, 10.0, Random(seed=f"{run}, {number}"), state=stream.state)
            last = stream.push_many(part)[-1]
        errors.append(last - np.minimum(values, 10.0).sum())
    assert np.var(errors) == pytest.approx(100 * counter.variance()[-1], rel=0.41)


@pytest.mark.parametrize("interrupted", [False, True])
def test_copies_share_the_noise_of_what_was_published_and_no_other(path: Path, interrupted: bool) -> None:
    with SumsFile(path, COUNTER, THETA) as sums:
        first = sums.replay(VALUES[:100])
        if not interrupted:
            sums.settle()
    noises = []
    for end in ("", ".count"):
        shutil.copy(f"{path}{end}", f"{path}-copy{end}")
    for own, rest in ((path, VALUES[100:]), (Path(f"{path}-copy"), VALUES[100:] / 2)):
        values = np.concatenate([VALUES[:100], rest])
        with SumsFile(own, COUNTER, THETA) as sums:
            published = sums.replay(values)[-rest.size :]
        noises.append(weighted_noise(np.concatenate([first, published]), values))
    shared = np.abs(noises[0] - noises[1]) < 0.01 * THETA  # a noise's deviation is 2 thetas; rounding is 1e-5
    assert shared[:100].all()
    assert shared[100:].mean() < 0.1  # 2% by chance: more than 50 of 500 happens less than once in 1e20


def test_a_pipe_goes_on_and_a_crash_shows_what_was_about_to_be_told(path: Path) -> None:
    script = f"""
import os
import numpy as np
from hubbub.random.source import Random
from hubbub.curator.factorised import FactorisedCounter
from hubbub.curator.files import SumsFile
values = np.random.default_rng(3).gamma(2, 5, 600)
sums = SumsFile({str(path)!r}, FactorisedCounter(rho=0.5, length=600), {THETA}, source="fares", rng=Random(seed=11))
sums.push_many(values[:100])
sums._mark = lambda: os._exit(7)
sums.push_many(values[100:300])
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 7
    with opened(path, seed=12) as sums:
        assert sums.stream.position == 300
        assert sums.pending.first == 100
        published = sums.pending.published
        sums.push_many(VALUES[300:])
        with pytest.raises(InvalidValue, match="at most 0 more"):
            sums.push_many([1.0])
    whole = COUNTER.start(THETA, Random(seed=Random(seed=11).bytes(32))).push_many(VALUES)
    assert published.tolist() == whole[100:300].tolist()


def test_a_file_is_answered_again_until_it_is_settled_and_other_values_are_refused(path: Path) -> None:
    with opened(path) as sums:
        first = sums.replay(VALUES[:300])
    with opened(path, seed=12) as sums:
        assert sums.replay(VALUES[:400])[:300].tolist() == first.tolist()
        sums.settle()
    changed = VALUES.copy()
    changed[10] += 1
    with opened(path) as sums, pytest.raises(InvalidValue, match="other values among the first 400"):
        sums.replay(changed)


def test_two_processes_other_settings_truncated_and_foreign_files_are_refused(path: Path, tmp_path: Path) -> None:
    with opened(path) as sums:
        with pytest.raises(StateInUse, match="another process"):
            opened(path)
        sums.push_many(VALUES[:100])
    for counter, theta, source, field in (
        (FactorisedCounter(rho=0.4, length=600), THETA, "fares", "rho"),
        (FactorisedCounter(rho=0.5, length=500), THETA, "fares", "length"),
        (COUNTER, 13.0, "fares", "theta"),
        (COUNTER, THETA, "tips", "source"),
    ):
        with pytest.raises(InvalidValue, match=f"{field}: got"):
            SumsFile(path, counter, theta, source=source)
    tops = ToPS(epsilon=0.5, bound=100.0)
    with pytest.raises(LedgerUnavailable, match=r"not the state of a curator's release.*but .* running sums"):
        ReleaseFile(path, tops)
    ReleaseFile(tmp_path / "release", tops).close()
    with pytest.raises(LedgerUnavailable, match=r"not the state of a curator's running sums, but .* release"):
        opened(tmp_path / "release")
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(HubbubError):
        opened(path)


@pytest.mark.parametrize("theta", [0.0, -1.0, np.nan, np.inf])
def test_a_bad_theta_leaves_no_file(path: Path, theta: float) -> None:
    with pytest.raises(InvalidValue, match="theta"):
        SumsFile(path, COUNTER, theta)
    assert not path.exists()


def test_bad_values_leave_the_file_as_it_was(path: Path) -> None:
    with opened(path) as sums:
        for bad in ([1.0, np.nan], [-1.0], ["much"]):
            with pytest.raises(InvalidValue):
                sums.push_many(bad)
        assert sums.stream.position == 0
