"""Poisoning of means: forged devices send the report that stands for the largest number."""

from collections.abc import Iterator

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting
from hubbub.attacks.poisoning import PROMISE, asked, poison
from hubbub.core.domain import Numeric


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for name in ("Hybrid", "StochasticRounding", "Piecewise"):
        question = {"kind": "mean", "epsilon": setting.epsilon, "mechanism": name}
        yield from poison(name, asked(question, Numeric(0, 10, cells=4)), setting)


ATTACK = Attack(
    title="Forged devices send the largest number that a report can stand for.",
    promise=PROMISE,
    quantity="how far the mean is raised",
    run=_run,
)
