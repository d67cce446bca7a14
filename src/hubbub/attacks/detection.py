"""Forged reports that try not to be seen: how often the alarm finds them, and how often it is wrong."""

from collections.abc import Iterator

import numpy as np

from hubbub.alarms.forged import suspicion
from hubbub.attacks.forging import Style, forge
from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, of_guesses
from hubbub.attacks.poisoning import Target, asked
from hubbub.core.domain import Ordinal
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.screen import with_screen

SIZE = 127
LEVEL = 1e-3
_STYLES: tuple[Style, ...] = ("plain", "padded")


def _raised(target: Target, setting: AttackSetting, case: str, targets: int, style: Style | None) -> int:
    """In how many windows the reports look forged; no style means that none of them are."""
    raised = 0
    for run in range(setting.runs):
        rng = setting.rng(case, run)
        oracle = target.question.mechanism_for()
        assert isinstance(oracle, FrequencyOracle)
        values = np.minimum(rng.below(SIZE, setting.people), rng.below(SIZE, setting.people))  # the first are common
        reports = oracle.randomize(values, rng)
        if style is not None:
            reports = Reports.concat([reports, forge(oracle, range(targets), setting.forgers, rng, style)])
        found = suspicion(oracle, with_screen(oracle, reports, oracle.accumulate(reports)))
        raised += found is not None and found.p_value < LEVEL
    return raised


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for name in ("OUE", "OLH", "GRR"):
        target = asked({"kind": "histogram", "epsilon": setting.epsilon, "mechanism": name}, Ordinal(SIZE))
        raised = _raised(target, setting, name, 0, None)
        yield of_guesses(f"{name}: windows of genuine reports that look forged", raised, setting.runs, LEVEL)
        for targets in (1, 10):
            for style in _STYLES if name != "GRR" else _STYLES[:1]:
                case = f"{name}, {targets} value{'s' * (targets > 1)}, {style}: attacked windows that do"
                raised = _raised(target, setting, case, targets, style)
                note = "single reports of GRR look genuine, whatever they say" if name == "GRR" else ""
                yield of_guesses(case, raised, setting.runs, None, note)


ATTACK = Attack(
    title="Forged devices raise one value, or ten, and try to look genuine; an alarm looks for them.",
    promise=f"A window of genuine reports looks forged with a chance of at most {LEVEL:g}, whatever the true shares. "
    "What is found is not promised: of reports that are forged well enough to look genuine, only the bounds on what "
    "they move hold.",
    quantity="windows that look forged",
    run=_run,
)
