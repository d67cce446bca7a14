"""Poisoning of key-value answers: forged devices claim a key, and the largest number for it."""

from collections.abc import Iterator

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting
from hubbub.attacks.poisoning import PROMISE, asked, poison
from hubbub.core.domain import KeyValue

_FILMS = KeyValue(tuple("abcdef"), low=1, high=5, most=2)


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for of in ("frequency", "mean"):
        for name in ("ExSub", "Collision"):
            question = {"kind": "keyvalue", "epsilon": setting.epsilon, "of": of, "mechanism": name}
            yield from poison(f"{of} of a key, {name}", asked(question, _FILMS), setting)


ATTACK = Attack(
    title="Forged devices claim to hold a key with the largest number.",
    promise=PROMISE,
    quantity="how far the answer is raised",
    run=_run,
)
