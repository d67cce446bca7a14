"""Poisoning of streams: forged devices answer in every step, while honest ones take turns or divide their budget."""

from collections.abc import Iterator

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting
from hubbub.attacks.poisoning import PROMISE, asked, poison
from hubbub.core.domain import Ordinal

_W = 5


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for method in ("LBU", "LPU", "LSP"):
        question = {"kind": "stream", "epsilon": setting.epsilon, "method": method, "w": _W}
        yield from poison(f"{method}, w = {_W}", asked(question, Ordinal(7), steps=_W), setting)


ATTACK = Attack(
    title="Forged devices answer every step of a window stream, in which honest devices take turns or spend little.",
    promise=f"{PROMISE} Where devices take turns, the forged part of the reports is larger, and counted.",
    quantity="how far the answer is raised",
    run=_run,
)
