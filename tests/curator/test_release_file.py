"""The state file: nothing is spent twice, whatever is interrupted, copied, cut short or opened twice."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.curator.files import ReleaseFile, open_release, state_from_bytes, state_to_bytes
from hubbub.curator.stream import ToPSStream
from hubbub.curator.tops import ToPS
from hubbub.ledger.file import LedgerUnavailable, StateInUse
from hubbub.protocols.topl.server import ToPL
from hubbub.random.source import Random
from hubbub.rehearse.release import LocalReleaseFile
from tests.protocols.test_stream_coverage import fewest
from tests.shared.answers import holds

SETTINGS: dict[str, Any] = {"epsilon": 0.5, "bound": 100.0, "holdout": 64, "max_range": 256, "fan_out": 4}
TOPS = ToPS(**SETTINGS)
FINER = ToPS(**SETTINGS, pruned=1)  # blocks of 4
VALUES = np.random.default_rng(3).gamma(2, 5, 1000).clip(0, 100)


def opened(path: Path, tops: ToPS = TOPS, source: str = "fares", seed: int = 11) -> ReleaseFile:
    return ReleaseFile(path, tops, source=source, rng=Random(seed=seed))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fares.state"


def expected() -> np.ndarray:
    return TOPS.start(Random(seed=11)).push_many(VALUES)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


def test_a_pipe_goes_on_where_it_stopped_with_a_new_tree(path: Path) -> None:
    with opened(path) as release:
        first = release.push_many(VALUES[:300])
    with opened(path, seed=12) as release:
        assert release.stream.position == 300
        assert release.pending.first == 0
        assert same(release.pending.published, first)
        second = release.push_many(VALUES[300:])
    stream = TOPS.start(Random(seed=11))
    assert same(first, stream.push_many(VALUES[:300]))
    assert same(second, ToPSStream(TOPS, Random(seed=12), state=stream.state).push_many(VALUES[300:]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def copied(path: Path) -> Path:
    """Both files, as a backup has them."""
    for end in ("", ".count"):
        shutil.copy(f"{path}{end}", f"{path}-copy{end}")
    return Path(f"{path}-copy")


def noise_of_blocks(published: np.ndarray, truth: np.ndarray, theta: float) -> np.ndarray:
    """Of 100 blocks; its deviation is some 10 thetas: of two that are independent, 11 are within 1e-3 thetas of each
    other with a chance below 1e-20."""
    return (published - np.minimum(truth, theta)).reshape(-1, 4).sum(axis=1)


@pytest.mark.parametrize("interrupted", [False, True])
def test_copies_that_go_on_with_other_values_share_no_noise(path: Path, interrupted: bool) -> None:
    """Before, both had the key of the tree in use: what they published was off by the same noise."""
    cut = 64 + 160  # where a block ends
    with ReleaseFile(path, FINER) as release:
        release.replay(VALUES[:cut])
        if not interrupted:
            release.settle()
    copy = copied(path)
    noises, theta = [], 0.0
    for own, values in ((path, VALUES), (copy, np.concatenate([VALUES[:cut], VALUES[cut:] / 2]))):
        with ReleaseFile(own, FINER) as release:
            new = values[: cut + 400]
            published = release.replay(new)[-400:]
            theta = release.stream.theta or 0.0
            noises.append(noise_of_blocks(published, new[cut:], theta))
    assert (np.abs(noises[0] - noises[1]) > 1e-3 * theta).mean() > 0.9


def test_a_copy_of_a_running_release_shares_no_noise_with_it(path: Path) -> None:
    cut = 64 + 160  # where a block ends
    rest = VALUES[cut : cut + 400]
    with ReleaseFile(path, FINER) as release:
        release.replay(VALUES[:cut])
        copy = copied(path)  # with the key of what is not settled
        with pytest.raises(InvalidValue, match="finished first"):
            release.push_many(rest)
        release.settle()
        theta = release.stream.theta or 0.0
        running = noise_of_blocks(release.push_many(rest), rest, theta)
    with ReleaseFile(copy, FINER) as release:
        release.replay(VALUES[:cut])
        release.settle()
        other = noise_of_blocks(release.push_many(rest / 2), rest / 2, theta)
    assert (np.abs(running - other) > 1e-3 * theta).mean() > 0.9


@pytest.mark.parametrize(
    "moment",
    [
        "before it is released",
        pytest.param("before the state is written", marks=pytest.mark.slow),
        pytest.param("before the counter is raised", marks=pytest.mark.slow),
    ],
)
def test_a_crash_between_the_write_and_the_release(path: Path, moment: str) -> None:
    """A process that ends without warning in each of these moments; the next publishes the same, or what nobody saw."""
    script = f"""
import os, numpy as np
from pathlib import Path
from typing import Any
from hubbub.random.source import Random
from hubbub.curator.files import ReleaseFile
from hubbub.curator.tops import ToPS
tops = ToPS(**{SETTINGS})
values = np.random.default_rng(3).gamma(2, 5, 1000).clip(0, 100)
release = ReleaseFile(Path({str(path)!r}), tops, source="fares", rng=Random(seed=11))
release.push_many(values[:300])
def die(*_): os._exit(7)
if {moment!r} == "before the state is written": release._change = die
if {moment!r} == "before the counter is raised": release._mark = die
release.push_many(values[300:500])
die()
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 7
    with opened(path, seed=12) as release:
        position = release.stream.position
        assert position == (300 if moment == "before the state is written" else 500)
        start = position - release.pending.published.size
        assert same(release.pending.published, expected()[start:position])
        release.push_many(VALUES[position:])
        assert release.stream.position == VALUES.size


def test_a_file_is_answered_again_with_the_same_numbers_until_it_is_settled(path: Path) -> None:
    """Interrupted twice, and longer each time: the key of each part is on disk before it is used."""
    releases = []
    for seed, size in ((11, 500), (12, 500), (13, 700), (14, 700)):
        with opened(path, seed=seed) as release:  # it stops before it can say that all was written
            releases.append(release.replay(VALUES[:size]))
    first, again, more, more_again = releases
    assert same(first, again)
    assert same(first, more[:500])
    assert same(more, more_again)
    with opened(path, seed=15) as release:
        assert same(release.replay(VALUES[:700]), more)
        release.settle()
    assert unsettled(path) == []
    with opened(path, seed=16) as release:
        rest = release.replay(VALUES)
        release.settle()
    assert rest.size == 300


def test_what_was_interrupted_is_not_settled_unseen(path: Path) -> None:
    """Its key would be gone, and the same values would be answered again with other noise."""
    with opened(path) as release:
        first = release.replay(VALUES[:500])
    with opened(path, seed=12) as release:
        with pytest.raises(InvalidValue, match="replayed first"):
            release.settle()
        assert same(release.replay(VALUES[:500]), first)


def unsettled(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT until, key FROM unsettled").fetchall()


@pytest.mark.parametrize("settled", [False, True])
def test_other_values_never_meet_the_same_noise(path: Path, settled: bool) -> None:
    with opened(path) as release:
        first = release.replay(VALUES[:500])
        if settled:
            release.settle()
    changed = VALUES.copy()
    changed[400] += 1
    for other, why in (
        (changed, "other values among the first 500"),
        (changed[:500], "other values among the first 500"),
        (VALUES[:499], "only 499 values"),
        (VALUES[:10], "only 10 values"),
    ):
        with opened(path) as release, pytest.raises(InvalidValue, match=f"{why}.*the 500 values that were released"):
            release.replay(other)
    with opened(path) as release:
        again = release.replay(VALUES)
    if not settled:
        assert same(again[:500], first)
    assert again.size == (500 if settled else 1000)


def test_pipes_and_files_are_not_mixed(path: Path, tmp_path: Path) -> None:
    with opened(path) as release:
        release.push_many(VALUES[:100])
        with pytest.raises(InvalidValue, match="a pipe"):
            release.replay(VALUES)
    with opened(tmp_path / "other") as release:
        release.replay(VALUES[:100])
    with opened(tmp_path / "other") as release, pytest.raises(InvalidValue, match="finished first"):
        release.push_many(VALUES[:100])


@pytest.mark.parametrize(("field", "value"), [("epsilon", 0.6), ("bound", 120.0), ("holdout", 65)])
def test_changed_settings_are_refused(path: Path, field: str, value: float) -> None:
    opened(path).close()
    changed = ToPS(**{**SETTINGS, field: value})
    with pytest.raises(InvalidValue, match=rf"{field}.*a change is a new release, with a new file"):
        opened(path, changed)


def test_a_foreign_state_is_refused(path: Path, tmp_path: Path) -> None:
    opened(path).close()
    with pytest.raises(InvalidValue, match="source: got 'tips'"):
        opened(path, source="tips")
    text = tmp_path / "text"
    text.write_text("not a state at all, but long enough to be looked at" * 30)
    with pytest.raises(LedgerUnavailable, match="not a database"):
        opened(text)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()
    with pytest.raises(LedgerUnavailable, match="not a release's state file"):
        opened(other)


def test_an_older_copy_is_refused(path: Path, tmp_path: Path) -> None:
    with opened(path) as release:
        release.push_many(VALUES[:100])
    shutil.copy(path, tmp_path / "copy")
    with opened(path) as release:
        release.push_many(VALUES[100:200])
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(InvalidValue, match="this one is older"):
        opened(path)
    with pytest.raises(InvalidValue, match=r"copy\.count next to it"):
        opened(tmp_path / "copy")


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5])
def test_a_state_that_is_cut_short_is_refused(path: Path, part: float) -> None:
    with opened(path) as release:
        release.push_many(VALUES)
    os.truncate(path, int(part * path.stat().st_size))
    with pytest.raises(HubbubError):
        opened(path)


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_a_state_with_a_changed_bit_is_refused(place: int) -> None:
    state = bytearray(state_to_bytes(TOPS.start(Random(seed=11)).state))
    assert same(state_from_bytes(TOPS, bytes(state)).memory, TOPS.start(Random(seed=11)).state.memory)
    state[place] ^= 1
    with pytest.raises(DecodeError, match="cut short or damaged"):
        state_from_bytes(TOPS, bytes(state))


def test_a_state_of_another_format_is_refused(path: Path) -> None:
    opened(path).close()
    with sqlite3.connect(path) as database:
        ((terms,),) = database.execute("SELECT terms FROM terms").fetchall()
        database.execute("UPDATE terms SET terms = ?", [terms.replace('"release_format":1', '"release_format":0')])
    database.close()
    with pytest.raises(LedgerUnavailable, match="format 1 or newer") as caught:
        opened(path)
    assert isinstance(caught.value.__cause__, LedgerUnavailable | UnknownFormat)


def test_two_processes_are_refused(path: Path) -> None:
    with opened(path) as release:
        with pytest.raises(StateInUse, match="another process"):
            opened(path)
        script = (
            "from hubbub.curator.files import ReleaseFile; from hubbub.curator.tops import ToPS;"
            f"ReleaseFile({str(path)!r}, ToPS(**{SETTINGS}), source='fares')"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
        assert "StateInUse" in done.stderr
        first = release.push_many(VALUES)
    assert same(first, expected())


def test_bad_values_leave_the_file_as_it_was(path: Path) -> None:
    with opened(path) as release:
        for bad in ([1.0, np.nan], [1.0, 101.0], [-1.0]):
            with pytest.raises(InvalidValue):
                release.push_many(bad)
            with pytest.raises(InvalidValue):
                release.replay(np.array(bad))
        assert same(release.push_many(VALUES), expected())


def test_steps_of_another_length_are_refused(path: Path) -> None:
    """Steps are numbered by their length: with another, a number would be told twice."""
    ReleaseFile(path, TOPS).close()  # a program that makes no steps
    ReleaseFile(path, TOPS, every=64).close()
    ReleaseFile(path, TOPS).close()
    with pytest.raises(InvalidValue, match="every: got 128; allowed: 64, as this release's state file has it"):
        ReleaseFile(path, TOPS, every=128)


def test_what_could_not_be_stored_is_not_published_and_the_stream_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as release:
        release.push_many(VALUES[:300])
        with monkeypatch.context() as full:
            full.setattr(release, "_store", failing)
            with pytest.raises(OSError, match="no space"):
                release.push_many(VALUES[300:400])
        assert release.stream.position == 300
        assert release.push_many(VALUES[300:]).size == 700


def failing(*_: object) -> None:
    raise OSError("no space")


def test_what_was_released_can_be_asked(path: Path) -> None:
    """Over values of a file, read in two runs; the release has what was published, and no more than that."""
    with opened(path) as release:
        first = release.replay(VALUES[:300])
        release.settle()
    with opened(path) as release:
        second = release.replay(VALUES)
        assert release.released.published.size == 300  # until it is settled
        release.settle()
        told = release.stream.range_sum(np.concatenate([first, second]), 100, 900)
    asked = open_release(path)
    assert (asked.source, asked.tops) == ("fares", TOPS)
    assert same(asked.published, np.concatenate([first, second]))
    total, mean = asked.sum(100, 900), asked.mean(100, 900)
    assert (total.value, total.variance) == (told.value, told.variance)
    assert mean.interval()[1][0] == pytest.approx(total.interval()[1][0] / 800)
    assert same(open_release(path).published, asked.published)  # asking changes nothing
    for range_ in ((10, 100), (900, 1001), (5, 5)):
        with pytest.raises(InvalidValue, match=r"^range: .* within 64:1000"):
            asked.sum(*range_)


def test_what_nobody_was_told_is_not_in_a_release(path: Path) -> None:
    """The state is on disk, the process goes on without an answer: the next answer stands in its place."""
    with opened(path) as release:
        release.push_many(VALUES[:300])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(release, "_mark", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                release.push_many(VALUES[300:500])
        told = release.push_many(VALUES[300:400])
        rest = release.push_many(VALUES[400:])
        assert same(release.published[300:], np.concatenate([told, rest]))


def test_intervals_of_ranges_over_several_runs_hold(tmp_path: Path) -> None:
    """30 streams, gone on with twice each; the failure probability is 1e-4. The noise of the runs is independent."""
    held = []
    for seed in range(30):
        path = tmp_path / str(seed)
        for cut in (0, 400, 700):
            with opened(path, FINER, seed=100 * seed + cut) as release:
                release.push_many(VALUES[cut : {0: 400, 400: 700, 700: 1000}[cut]])
        asked = open_release(path)
        clipped = np.minimum(VALUES, asked.segments[-1].theta)
        ranges = ((68, 1000), (300, 800), (420, 680))
        parts = [asked.sum(*part).variance[0] for part in ((300, 400), (400, 700), (700, 800))]
        assert asked.sum(300, 800).variance[0] == pytest.approx(sum(parts))
        held += [holds(asked.sum(*range_), clipped[slice(*range_)].sum())[0] for range_ in ranges]
    assert sum(held) >= fewest(len(held))


def test_only_a_curators_release_that_rests_is_asked(path: Path, tmp_path: Path) -> None:
    with opened(path), pytest.raises(StateInUse, match="another process"):
        open_release(path)
    local = tmp_path / "local"
    LocalReleaseFile(local, ToPL(epsilon=1.0, bound=9.0)).close()
    with pytest.raises(InvalidValue, match="without --local"):
        open_release(local)
    (tmp_path / "text").write_text("id,fare\n")
    with pytest.raises(LedgerUnavailable, match="not a state file"):
        open_release(tmp_path / "text")
