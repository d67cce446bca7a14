"""Real shufflers: processes that speak TLS, and what happens when one of them fails."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from shuffle_folder import certificate, prepare

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.shuffle.program import ShuffleConfig

START = [sys.executable, "-c", "from hubbub.cli import main; main()", "shuffler", "--config"]


@pytest.fixture
def start():
    """Starts programs, and leaves none of them behind."""
    started = []

    def begin(configs, only=None):
        processes = {
            number: subprocess.Popen([*START, str(config)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for number, config in enumerate(configs)
            if only is None or number in only
        }
        started.extend(processes.values())
        return processes

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def finish(processes):
    return {number: (process.communicate(timeout=100), process.returncode) for number, process in processes.items()}


@pytest.mark.parametrize(
    ("shufflers", "reports", "bits"),
    [
        (3, 300, 2048),
        pytest.param(3, 2000, 3072, marks=pytest.mark.slow),
        pytest.param(7, 50, 3072, marks=pytest.mark.slow),
    ],
)
def test_reports_come_out_of_real_processes(start, tmp_path: Path, shufflers: int, reports: int, bits: int) -> None:
    sent = Random(seed=3).uint64(reports)
    configs = prepare(tmp_path, sent, shufflers=shufflers, fakes=20, bits=bits, seconds=90)
    ended = finish(start(configs))
    assert {code for _, code in ended.values()} == {0}, ended
    came = np.fromfile(tmp_path / "reports.bin", dtype="<u8")
    assert len(came) == reports + 20
    assert set(sent.tolist()) <= set(came.tolist())
    assert came[:reports].tolist() != sent.tolist()
    assert (tmp_path / "reports.bin").stat().st_mode & 0o77 == 0


def test_a_shuffler_that_is_killed_ends_the_run_for_all(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(20), seconds=5)
    processes = start(configs, only={0, 2, 3})  # the second is missing: nothing can begin
    time.sleep(1.5)
    processes[0].kill()
    ended = finish({number: process for number, process in processes.items() if number})
    for number, ((_, error), code) in ended.items():
        assert code == 2, (number, error)
        assert "party" in error or "parties" in error
    assert not (tmp_path / "reports.bin").exists()
    assert {code for _, code in finish(start(configs)).values()} == {0}  # and the same shares can be run again


def test_shufflers_that_disagree_stop(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(20), fakes=5, seconds=20)
    configs[1].write_text(configs[1].read_text().replace("fakes = 5", "fakes = 6"))
    ended = finish(start(configs))
    assert {code for _, code in ended.values()} == {2}
    assert any(re.search("it has b'20 [56] 1'", error) for (_, error), _ in ended.values()), ended
    assert "it stopped" in ended[3][0][1]  # told by the others, the server does not wait for those who have left
    assert not (tmp_path / "reports.bin").exists()


def test_fewer_than_the_minimum_and_wrong_keys(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(20), least=21, seconds=4)
    ended = finish(start(configs, only={0}))
    assert ended[0][1] == 2
    assert "at least 21" in ended[0][0][1]
    (tmp_path / "public.json").write_text("{}")
    assert "a file with modulus" in finish(start(configs, only={1}))[1][0][1]


def test_a_stranger_is_not_let_in(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(5), seconds=5)
    certificate(tmp_path, "stranger")
    text = configs[1].read_text().replace('private_key = "party-1.key"', 'private_key = "stranger.key"')
    configs[1].write_text(text.replace('certificate = "party-1.pem"', 'certificate = "stranger.pem"'))
    ended = finish(start(configs))
    assert {code for _, code in ended.values()} == {2}
    assert not (tmp_path / "reports.bin").exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("me = 0", "me = 9"), "me"),
        (("fakes = 0", "fakes = -1"), "fakes"),
        (("least = 1", 'least = "many"'), "least"),
        (("seconds = 30", "colour = 3"), "config"),
        (('shares = "0.shares"', 'reports = "x"'), "shares"),
        (("port = ", "ports = "), "parties"),
    ],
)
def test_configurations_are_checked(tmp_path: Path, change: tuple[str, str], field: str) -> None:
    configs = prepare(tmp_path, np.uint64([1]))
    configs[0].write_text(configs[0].read_text().replace(*change))
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        ShuffleConfig.load(configs[0])
