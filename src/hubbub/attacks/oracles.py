"""Poisoning of shares: the maximal gain attack on frequency oracles, plain and padded to look genuine."""

from collections.abc import Iterator

from hubbub.attacks.forging import Style
from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting
from hubbub.attacks.poisoning import PROMISE, asked, poison, targets_of
from hubbub.core.domain import Ordinal

_SIZE = 31
_ORACLES = ("GRR", "OUE", "SUE", "OLH", "Hadamard", "SubsetSelection")
_STYLES: tuple[Style, ...] = ("plain", "padded")


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    if setting.collection is not None:
        for target, reason in targets_of(setting.collection):
            if reason is not None:
                yield AttackOutcome(target.name, float("nan"), float("nan"), float("nan"), None, note=reason)
            else:
                yield from poison(target.name, target, setting)
        return
    for name in _ORACLES:
        question = {"kind": "histogram", "epsilon": setting.epsilon, "mechanism": name}
        for style in _STYLES if name in ("OUE", "SUE", "OLH") else _STYLES[:1]:
            yield from poison(f"{name}, {style}", asked(question, Ordinal(_SIZE)), setting, style=style)


ATTACK = Attack(
    title="Forged devices send the reports that raise the share of one value most (Cao, Jia and Gong).",
    promise=PROMISE,
    quantity="how far the answer is raised",
    run=_run,
    collections=True,
)
