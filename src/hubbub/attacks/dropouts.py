"""Drop-outs that an adversary chooses: who blocks some devices, or loses the reports that do not suit."""

from collections.abc import Iterator

import numpy as np

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, of_mean
from hubbub.attacks.poisoning import asked, population
from hubbub.core.domain import Ordinal
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ask import Ask
from hubbub.simulate.fleet import Wire
from hubbub.statistics.influence import Influence


def losing(part: float) -> Wire:
    """What arrives where an adversary reads the reports, and loses those that speak against the first value."""

    def wire(ask: Ask, sent: Iterator[Reports]) -> Iterator[Reports]:
        oracle = ask.mechanism
        assert isinstance(oracle, FrequencyOracle)
        reports = Reports.concat(list(sent))
        chances = oracle.log_prob(reports, list(range(oracle.size)))
        speaks = chances[:, 0] - np.logaddexp.reduce(chances, axis=1)  # how sure each report makes of the first value
        yield reports[np.sort(np.argsort(speaks, kind="stable")[round(part * len(reports)) :])]

    return wire


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for name in ("GRR", "OUE", "OLH"):
        target = asked({"kind": "histogram", "epsilon": setting.epsilon, "mechanism": name}, Ordinal(15))
        influence = target.question.influence()
        assert isinstance(influence, Influence)
        seen, known = [], []
        for run in range(setting.runs):
            values: list[object] = population(target, setting.people, setting.rng(name, run, "values"))
            whole = target.released(values, setting.rng(name, run)).value[0]
            seen.append(float(target.released(values, setting.rng(name, run), losing(setting.forged)).value[0] - whole))
            blocked = round(setting.forged * len(values))
            others = [place for place, value in enumerate(values) if value != 0][:blocked]
            kept = np.delete(np.arange(len(values)), others)
            left = target.released([values[place] for place in kept], setting.rng(name, run, "left")).value[0]
            known.append(float(left - np.mean([value == 0 for value in values])))
        bound = influence.lost(setting.forged).up
        yield of_mean(f"{name}: {setting.forged:g} lost by what the reports say", seen, bound)
        note = "as many people leave; the truth is that of all"
        of_people = setting.forged / (1 - setting.forged)
        yield of_mean(f"{name}: {setting.forged:g} of the devices blocked by their value", known, of_people, note=note)


ATTACK = Attack(
    title="An adversary blocks devices whose value does not suit, or loses reports that speak against a value.",
    promise="A part p of the reports that is lost moves an answer by at most p/(1-p) times the distance to what a "
    "report can stand for (`Influence.lost`); devices blocked by their value alone, by p/(1-p).",
    quantity="how far the share is raised",
    run=_run,
)
