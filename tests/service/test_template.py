"""The fast reader of single reports accepts what the slow one accepts, and nothing else."""

from __future__ import annotations

import numpy as np

from hubbub import Random, Reports
from hubbub.core.errors import HubbubError
from hubbub.mechanisms.base import Mechanism
from hubbub.service.ingest.frames import ReportOpener
from hubbub.wire.upload import Entry
from tests.service.every_mechanism import all_mechanisms


def slow(mechanism: Mechanism, data: bytes) -> Reports | None:
    try:
        reports = Entry("popular", 0, 7, 1, 0, bytes(16), data).reports(mechanism)
        mechanism.check(reports)
    except HubbubError:
        return None
    return reports


@all_mechanisms
def test_what_clients_send_is_read_as_they_meant_it(mechanism: Mechanism):
    reports = mechanism.randomize((mechanism.example_values(4) * 10)[:20], Random(seed=1))
    read, good = ReportOpener(mechanism).open_each([reports[row : row + 1].to_bare() for row in range(20)])
    assert good.all()
    assert read == reports


def test_nothing_at_all_is_read():
    from hubbub import OLH

    read, good = ReportOpener(OLH(epsilon=1.0, domain=8)).open_each([])
    assert (len(read), len(good)) == (0, 0)


@all_mechanisms
def test_spoilt_reports_are_refused_by_both_readers(mechanism: Mechanism):
    rng = np.random.Generator(np.random.PCG64(7))
    clean = mechanism.randomize(mechanism.example_values(2), Random(seed=2))[:1].to_bare()
    tried = []
    for _ in range(400):
        data = bytearray(clean)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        if rng.integers(4) == 0:
            data = data[: rng.integers(len(data))]
        elif rng.integers(4) == 0:
            data += rng.bytes(rng.integers(1, 9))
        tried.append(bytes(data))
    read, good = ReportOpener(mechanism).open_each(tried)
    expected = [slow(mechanism, data) for data in tried]
    for report, accepted in zip(expected, good, strict=True):
        assert (report is not None) or not accepted  # it accepts nothing that the slow reader refuses
    accepted_reports = [report for report, accepted in zip(expected, good, strict=True) if accepted]
    assert all(read[row : row + 1] == report for row, report in enumerate(accepted_reports))
    for report, data, accepted in zip(expected, tried, good, strict=True):
        if report is not None and report.to_bare() == data:
            assert accepted  # nor does it refuse what is spelt as clients spell it
    for report in accepted_reports:
        mechanism.accumulate(report)  # and all of it can be counted


@all_mechanisms
def test_one_bad_report_does_not_cost_its_neighbours(mechanism: Mechanism):
    reports = mechanism.randomize((mechanism.example_values(3) * 3)[:3], Random(seed=3))
    good = [reports[row : row + 1].to_bare() for row in range(3)]
    other = bytearray(good[1])
    other[-1] ^= 255
    read, readable = ReportOpener(mechanism).open_each([good[0], bytes(other), b"", good[2]])
    allowed = slow(mechanism, bytes(other)) is not None
    assert readable.tolist() == [True, allowed, False, True]
    assert read[:1] == reports[:1]
