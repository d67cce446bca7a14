"""A local release's file: a process that stops at any moment loses nothing that was told, and nobody reports twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.protocols.topl.server import ToPL, ToPLServer
from hubbub.random.source import Random
from hubbub.rehearse.release import LocalReleaseFile, report_values

SETTINGS = ToPL(epsilon=4.0, bound=100.0, holdout=300, max_range=4096, every=64)
VALUES = np.random.default_rng(3).gamma(2, 5, 600).clip(0, 100)


class Stopped(Exception):
    pass


def stop(*_: Any) -> None:
    raise Stopped


def test_stopped_before_and_after_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    with LocalReleaseFile(path, SETTINGS) as release:
        first = release.report(VALUES[:400], Random(seed=1))
    for part, reported in (("run", 400), ("mark", 500)):
        with LocalReleaseFile(path, SETTINGS) as release:
            monkeypatch.setattr(release._file, part, stop)
            with pytest.raises(Stopped):
                release.report(VALUES[400:500], Random(seed=2))
        with LocalReleaseFile(path, SETTINGS) as release:
            assert release.server.position == reported
            assert release.steps[: len(first)] == first
            assert len(release.steps) == (reported - 300) // 64
    with LocalReleaseFile(path, SETTINGS) as release:
        steps = release.report(VALUES[500:], Random(seed=3))
        assert [step.first for step in release.steps] == [300, 364, 428, 492]
        assert release.steps[-1:] == steps


def test_a_server_goes_on_from_its_state_as_if_it_had_not_stopped() -> None:
    """At every kind of moment: within the search, at its end, within a step."""
    uninterrupted = ToPLServer(SETTINGS)
    parts = np.array_split(VALUES, 3)
    expected = [step for cut in (0, 1, 2) for step in report_values(uninterrupted, parts[cut], Random(seed=cut))]
    steps, server = [], ToPLServer(SETTINGS)
    for cut, part in enumerate(parts):
        server = ToPLServer(SETTINGS, server.state)
        steps += report_values(server, part, Random(seed=cut))
    assert steps == expected
    assert len(steps) == 4
    assert server.state == uninterrupted.state


def test_more_reports_than_are_asked_for_are_refused() -> None:
    server = ToPLServer(SETTINGS)
    mechanism: Any = server.ask.mechanism
    sketch = mechanism.accumulate(mechanism.randomize(np.ones(301), Random(seed=1)))
    with pytest.raises(InvalidValue, match="301 reports"):
        server.add(sketch)
    assert server.position == 0
