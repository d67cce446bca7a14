"""Alarms go on when the stream is surely above, off when it is surely below, and do not flicker."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.ask import MAIN, Release
from hubbub.protocols.monitor import Monitor


def release(step: int, share: float, error: float = 0.01) -> Release:
    estimate = Estimate(np.array([1 - share, share]), np.full(2, error**2), 100)
    return Release(step=step, estimates={MAIN: estimate}, published=True, spent=0.0, n=100.0)


def test_hysteresis() -> None:
    monitor = Monitor([0, 1], above=0.5, below=0.4, level=0.5)
    shares = [0.3, 0.51, 0.49, 0.41, 0.39, 0.45, 0.52]
    assert [monitor.watch(release(i, share)).on for i, share in enumerate(shares)] == [
        False, True, True, True, False, False, True,
    ]  # fmt: skip


def test_changes_are_said_once() -> None:
    monitor = Monitor([0, 1], above=0.5, level=0.5)
    assert [monitor.watch(release(i, share)).changed for i, share in enumerate([0.6, 0.6, 0.4, 0.4])] == [
        True, False, True, False,
    ]  # fmt: skip


def test_noise_alone_seldom_raises_an_alarm() -> None:
    noise = np.array([int(x) for x in hb.Random(seed=1).below(2001, 4000)]) / 1000 - 1  # uniform, sd 0.577
    sure = Monitor([0, 1], above=0.5, level=0.999)
    bold = Monitor([0, 1], above=0.5, level=0.5)
    shares = 0.5 + 0.01 / 0.577 * noise
    on = [sum(monitor.watch(release(i, share)).changed for i, share in enumerate(shares)) for monitor in (sure, bold)]
    assert on[0] == 0  # 3.09 standard errors are out of reach of this noise
    assert on[1] > 500  # acting on the estimate alone flickers


@pytest.mark.parametrize(
    ("field", "settings"), [("below", {"below": 0.6}), ("level", {"level": 0.2}), ("level", {"level": 1.0})]
)
def test_bad_settings(field: str, settings: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=field):
        Monitor([0, 1], above=0.5, **settings)  # type: ignore[arg-type]
