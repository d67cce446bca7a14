"""Poisoning of distributions: forged devices report the highest cell of the square wave."""

from collections.abc import Iterator

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting
from hubbub.attacks.poisoning import PROMISE, asked, poison
from hubbub.core.domain import Numeric


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    question = {"kind": "distribution", "epsilon": setting.epsilon}
    yield from poison("mean of a distribution", asked(question, Numeric(0, 100, cells=20)), setting)


ATTACK = Attack(
    title="Forged devices send the report that raises the mean of a distribution most.",
    promise=PROMISE,
    quantity="how far the mean is raised",
    run=_run,
)
