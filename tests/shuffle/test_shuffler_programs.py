"""Real shufflers: processes that speak TLS, and what happens when one of them fails."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.shuffle.channel import ShuffleAborted
from hubbub.shuffle.local_parties import write_certificate
from hubbub.shuffle.program import ShuffleConfig, release_reports
from tests.shuffle.shuffle_folder import prepare

START = [sys.executable, "-c", "from hubbub.cli import main; main()", "oblivious", "run"]


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
    return {number: (process.communicate(timeout=200), process.returncode) for number, process in processes.items()}


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


def test_a_dishonest_device_is_dropped_and_counted(start, tmp_path: Path) -> None:
    """Of 20 devices one sends zeros for its ciphertext, and one a number without a message."""
    sent = Random(seed=3).uint64(20)
    configs = prepare(tmp_path, sent, fakes=5, seconds=90)
    content = bytearray((tmp_path / "2.shares").read_bytes())
    for row, bad in ((4, 0), (9, 2)):
        content[1 + 256 * row : 1 + 256 * (row + 1)] = bad.to_bytes(256, "big")
    (tmp_path / "2.shares").write_bytes(content)
    ended = finish(start(configs))
    assert {code for _, code in ended.values()} == {0}, ended
    came = np.fromfile(tmp_path / "reports.bin", dtype="<u8").tolist()
    assert len(came) == 18 + 5
    assert set(np.delete(sent, [4, 9]).tolist()) <= set(came)
    (printed, _), _ = ended[3]
    assert "23 reports in" in printed
    assert "2 more were dropped" in printed


def killed_in_the_middle(start, configs, party):
    """All parties of a run, of which one is killed as soon as everyone is there."""
    processes = start(configs)
    for number in range(4):
        line = processes[number].stderr.readline()
        assert "are there" in line, line
    processes[party].kill()
    processes[party].communicate()
    return processes


@pytest.mark.parametrize("party", [pytest.param(party, marks=pytest.mark.slow) for party in (0, 1, 2, 3)])
def test_a_party_that_is_killed_ends_the_run_for_all(start, tmp_path: Path, party: int) -> None:
    sent = Random(seed=3).uint64(700)
    configs = prepare(tmp_path, sent, seconds=90)
    processes = killed_in_the_middle(start, configs, party)
    del processes[party]
    for number, ((_, error), code) in finish(processes).items():
        assert code == 2, (number, error)
        assert "gone" in error or "stopped" in error or "takes messages" in error
    assert not (tmp_path / "reports.bin").exists()
    again = finish(start(configs))  # and the same shares can be run again
    assert {code for _, code in again.values()} == {0}, again
    assert sorted(np.fromfile(tmp_path / "reports.bin", dtype="<u8").tolist()) == sorted(sent.tolist())


@pytest.mark.parametrize("party", [1, *(pytest.param(party, marks=pytest.mark.slow) for party in (0, 2, 3))])
def test_a_run_survives_the_restart_of_a_party(start, tmp_path: Path, party: int) -> None:
    sent = Random(seed=3).uint64(700)
    configs = prepare(tmp_path, sent, fakes=10, seconds=90, attempts=3)
    processes = killed_in_the_middle(start, configs, party)
    processes |= start(configs, only={party})
    ended = finish(processes)
    assert {code for _, code in ended.values()} == {0}, ended
    came = np.fromfile(tmp_path / "reports.bin", dtype="<u8").tolist()
    assert len(came) == 710
    assert set(sent.tolist()) <= set(came)
    refused = finish(start(configs, only={0}))[0]  # what was released is not mixed again
    assert refused[1] == 2
    assert "server has received" in refused[0][1]


def test_the_servers_own_reports_must_come_back(tmp_path: Path) -> None:
    reports = Random(seed=3).uint64(20)
    configs = prepare(tmp_path, reports[:1])
    configs[3].write_text('checks = "checks.bin"\n' + configs[3].read_text())
    config = ShuffleConfig.load(configs[3])
    np.append(reports[:3], np.uint64(12345)).astype("<u8").tofile(tmp_path / "checks.bin")
    with pytest.raises(ShuffleAborted, match="1 of the server's 4 own reports are missing"):
        release_reports(config, reports)
    assert not (tmp_path / "reports.bin").exists()
    reports[:3].astype("<u8").tofile(tmp_path / "checks.bin")
    release_reports(config, reports)
    release_reports(config, reports)  # the same again, after the server was stopped in between, is no other result
    with pytest.raises(ShuffleAborted, match="not there yet"):
        release_reports(config, reports[::-1])


def test_shufflers_that_disagree_stop(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(20), fakes=5, seconds=60)
    configs[1].write_text(configs[1].read_text().replace("fakes = 5", "fakes = 6"))
    ended = finish(start(configs))
    assert {code for _, code in ended.values()} == {2}
    assert any(re.search("it has 20 shares, [56] fakes", error) for (_, error), _ in ended.values()), ended
    assert "fakes" in ended[3][0][1] or "it stopped" in ended[3][0][1]  # the server waits for nobody who has left
    assert not (tmp_path / "reports.bin").exists()


def test_fewer_than_the_minimum_and_wrong_keys(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(20), least=21, seconds=4)
    ended = finish(start(configs, only={0}))
    assert ended[0][1] == 2
    assert "at least 21" in ended[0][0][1]
    (tmp_path / "public.json").write_text("{}")
    assert "a file with modulus" in finish(start(configs, only={1}))[1][0][1]


def test_a_stranger_is_not_let_in(start, tmp_path: Path) -> None:
    configs = prepare(tmp_path, Random(seed=3).uint64(5), seconds=3)
    write_certificate(tmp_path, "stranger")
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
        (("attempts = 1", "attempts = 0"), "attempts"),
        (("me = 0", 'me = 0\nchecks = "x"'), "shares"),
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
