"""A collection's alarms: what is written next to them is read even where there are none."""

from __future__ import annotations

import pytest

from hubbub.alarms.plan import AlarmPlan
from hubbub.core.errors import InvalidValue


@pytest.mark.parametrize("rate", ["nonsense", "0 in 30d", "1 in 30 days", "", 3, None, "1 in 0d"])
def test_a_rate_of_false_alarms_that_is_none_is_refused_without_alarms_too(rate: object) -> None:
    own = {"dark": {"question": "popular", "weights": {"dark": 1}, "above": 0.5, "false_alarms": "1 in 30d"}}
    for alarms in ({}, own):
        with pytest.raises(InvalidValue, match=r"alarms\.false_alarms: got"):
            AlarmPlan.from_spec({"false_alarms": rate, **alarms})
    assert AlarmPlan.from_spec({"false_alarms": "2 in 1d"}).false_alarms == "2 in 1d"
