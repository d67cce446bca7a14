"""Every registered mechanism at extreme settings: it is built, audited and estimates, or the setting is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.privacy.audit import audit
from hubbub.privacy.enumeration import required_fields

EPSILONS = (5e-324, 1e-300, 1e-100, 1e-20, 1e-16, 1e-12, 1e-9, 20.0, 50.0, 300.0, 700.0, 709.9, 1000.0)
IMPOSSIBLE = (1000.1, 1e300, math.nan, math.inf, -math.inf, -1.0, 0.0, True, "1", None)
SIZES = (0, -1, 1, 2, 3, 1000, 2**16, 2**31, 2**32, 2**53, 2**64, 10**30, 2.5, 5e-324, 1e300, math.nan, math.inf)
LARGE = 1 << 12  # bytes of a report, numbers of a sketch


def _settings(kind: type[ReportFormat]) -> Iterator[dict[str, Any]]:
    example = next(kind.examples())
    fields = {name: getattr(example, name) for name in required_fields(kind)}
    for epsilon in (*EPSILONS, *IMPOSSIBLE):
        yield {**fields, "epsilon": epsilon}
    for name in fields:
        for size in SIZES:
            for epsilon in (1e-20, 1.0, 1000.0):
                yield {**fields, name: size, "epsilon": epsilon}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_an_extreme_setting_works_or_is_refused(name: str):
    refused = 0
    for setting in _settings(MECHANISMS[name]):
        try:
            mechanism = MECHANISMS[name](**setting)
        except InvalidValue:
            refused += 1
            continue
        assert type(setting["epsilon"]) is float, setting
        assert 0 < mechanism.effective_epsilon <= setting["epsilon"], setting
        assert mechanism.event().spent > 0, setting
        if isinstance(mechanism, Mechanism):
            assert audit(mechanism).ok, setting
            if mechanism.report_bytes <= LARGE and math.prod(mechanism.sketch_shape) <= LARGE:
                reports = mechanism.randomize(mechanism.example_values(3), Random(seed=1))
                sketch = mechanism.accumulate(reports)
                if mechanism.bias == "none":
                    assert np.isfinite(mechanism.estimate(sketch).value).all(), setting
    assert refused >= len(IMPOSSIBLE)


@pytest.mark.parametrize(("name", "epsilon"), [("THE", 1e-20), ("OLH", 1000.0), ("SHE", 5e-324), ("PSFO", 700.0)])
def test_an_epsilon_that_no_integers_can_spend_is_refused_by_name(name: str, epsilon: float):
    with pytest.raises(InvalidValue, match=r"^epsilon: got "):
        getattr(hb, name)(epsilon=epsilon, domain=16)
