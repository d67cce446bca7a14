"""Poisoning of the search for the most common texts: forged devices push a word that nobody has."""

from collections.abc import Iterator

from hubbub.attacks.forging import lying
from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, of_guesses
from hubbub.attacks.poisoning import KeptValues
from hubbub.core.domain import Strings
from hubbub.questions import Question
from hubbub.simulate.asked_question import NAME, AskedQuestion
from hubbub.simulate.conversation import run_question

_WORDS = ("ab", "cd", "ef", "gh", "ij", "kl", "mn", "op")
_PUSHED = "zz"
_K = 4


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    domain, epsilon = Strings(longest=2), 4 * setting.epsilon
    question = Question.make(kind="top", field="word", epsilon=epsilon, k=_K, start="2026-12-01T00:00Z")
    collection = AskedQuestion(question, {"word": domain}).collection
    for part in (0.0, setting.forged, 2 * setting.forged, 5 * setting.forged):
        count = round(setting.people * part / (1 - part))
        hits = 0
        for run in range(setting.runs):
            rng = setting.rng(f"{part:g}", run)
            rank = rng.below(1 << len(_WORDS), setting.people)
            codes = [domain.code(word) for word in _WORDS]
            values = [codes[min((int(number) + 1).bit_length() - 1, len(codes) - 1)] for number in rank][::-1]
            wire = lying([domain.code(_PUSHED)], count, rng.child("forged")) if count else None
            *_, last = run_question(collection, NAME, KeptValues(values), rng.child("devices"), wire=wire)
            hits += _PUSHED in (last.estimate.labels or ())
        note = "no bound is stated: forged reports also influence which prefixes are searched" if count else ""
        case = f"a word of nobody among the top {_K}, {part:g} forged"
        yield of_guesses(case, hits, setting.runs, None if count else 0.05, note)


ATTACK = Attack(
    title="Forged devices push a word that nobody has into the list of the most common ones.",
    promise="None: `hubbub check` says that it is not bounded. The forged part of a group is larger than that of all "
    "devices, as honest devices are in one group each.",
    quantity="runs in which the word is listed",
    run=_run,
)
