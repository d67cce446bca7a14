"""A year of daily reports: fresh ones give the value away, memoised ones never more than the permanent answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub_papers import reproduce
from hubbub_papers.averaging import averaging_attack

RAPPOR = hb.BasicRappor(epsilon=3.0, domain=8)
LOLOHA = hb.Loloha(epsilon=3.0, domain=8, report_epsilon=1.0, buckets=2)
PEOPLE = 64


@pytest.mark.parametrize("mechanism", [RAPPOR, LOLOHA], ids=["BasicRappor", "Loloha"])
def test_over_a_year_of_daily_reports(mechanism: Any) -> None:
    attack = averaging_attack(mechanism, people=PEOPLE, days=(1, 30, 365), rng=hb.Random(seed=1))
    # Fresh randomisation recovers the value: of 64 people, all; a miss has a chance far below 1e-6.
    assert attack.fresh[-1] == 1.0
    assert attack.leaked_fresh[-1] > 10 * mechanism.permanent_epsilon
    # Memoised: whatever was seen, no likelihood ratio passes what the layers allow. This holds for certain.
    assert (attack.leaked_memoised <= mechanism.permanent_epsilon + 1e-9).all()
    assert attack.leaked_memoised[0] <= mechanism.effective_epsilon + 1e-9
    # The values found are those that the permanent answer gives away, within four standard errors (6e-5), and come
    # near it by the end of the year.
    error = np.sqrt(0.25 / PEOPLE)
    assert (attack.memoised <= attack.permanent + 4 * error).all()
    assert attack.memoised[-1] == pytest.approx(attack.permanent, abs=4 * error)
    assert attack.permanent < 0.8
    assert attack.memoised[-1] > attack.memoised[0]


def test_a_memory_that_is_redrawn_every_day_is_noticed() -> None:
    """The planted bug of other libraries: the permanent answer is drawn anew on each call."""

    class Forgetful(hb.BasicRappor):
        def step(self, states: Any, step: int, values: Any, rng: hb.Random, paid: Any) -> Any:
            next_states, _, speaks = super().step(states, step, values, rng, paid)
            everyone = np.ones(len(states), dtype=bool)
            return next_states, super().step(self.enroll(len(states), rng), step, values, rng, everyone)[1], speaks

    forgetful = averaging_attack(Forgetful(epsilon=3.0, domain=8), people=24, days=(365,), rng=hb.Random(seed=1))
    assert forgetful.memoised[-1] > forgetful.permanent + 0.2


@pytest.mark.parametrize("days", [(), (0, 1), (3, 2), (1, 1)])
def test_days_only_grow(days: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="days"):
        averaging_attack(RAPPOR, people=4, days=days, rng=hb.Random(seed=1))


@pytest.mark.papers
def test_both_curves_are_drawn(tmp_path: Path) -> None:
    result = reproduce("averaging-attack", scale=0.1)
    claims = [cell for cell in result.cells if cell.column == "claim"]
    assert [cell.note.split(";")[0].split(" (")[0] for cell in claims] == ["holds"] * len(claims) == ["holds"] * 8
    table, image = result.save(tmp_path)
    assert image.stat().st_size > 20_000
    assert table.stat().st_size > 1000
