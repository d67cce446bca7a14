"""Every attack runs against the real system, and what it measures is compatible with what is promised."""

import json
import math
from pathlib import Path

import pytest

from hubbub.attacks import NAMES, attack_named, averaging
from hubbub.attacks.outcome import AttackOutcome, AttackSetting, exactly, guess_bound, of_guesses, of_mean
from hubbub.core.errors import InvalidValue
from tests.cli.commands import Hubbub

SMALL = AttackSetting(people=500, runs=3, forged=0.05)
QUICK = ("averaging", "cohorts", "linkage", "membership", "oracles", "streams", "dropouts")


def tried(name: str, setting: AttackSetting) -> list[AttackOutcome]:
    outcomes = list(attack_named(name).run(setting))
    assert len({outcome.case for outcome in outcomes}) == len(outcomes)
    for outcome in outcomes:
        assert outcome.low <= outcome.measured <= outcome.high
        assert outcome.bound is not None or outcome.note, f"{outcome.case}: why is there no bound?"
        assert outcome.within is not False, outcome
    return outcomes


@pytest.mark.parametrize("name", QUICK)
def test_what_is_measured_is_within_what_is_promised(name: str) -> None:
    outcomes = tried(name, SMALL)
    assert any(outcome.within for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_attack_in_full(name: str) -> None:
    tried(name, AttackSetting(people=4000, runs=20))


def test_attacks_do_what_they_can() -> None:
    """An attack that achieved nothing would be within every bound."""
    limited, unlimited, *memos = tried("averaging", SMALL)
    assert unlimited.measured > limited.measured > 1 / 8 + 0.05
    assert all(memo.low > 1 / 8 for memo in memos)
    moved = [outcome for outcome in tried("oracles", SMALL) if outcome.case.endswith("raised by")]
    assert all(outcome.bound is not None and outcome.measured > 0.9 * outcome.bound for outcome in moved)
    (collector, *_) = tried("membership", SMALL)
    assert collector.low > 0.54


def test_a_bound_that_is_broken_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the limit of the ledger is thought to be a tenth of what it is."""
    monkeypatch.setattr(averaging, "guess_bound", lambda epsilon, size: guess_bound(epsilon / 10, size))
    outcomes = list(attack_named("averaging").run(SMALL))
    assert [outcome.within for outcome in outcomes[:2]] == [False, None]


def test_intervals_are_exact_where_they_can_be() -> None:
    # Clopper and Pearson at 99.9%: of 0 in 100, 1 - .0005^(1/100); of 100 in 100, the other end.
    none, every = of_guesses("a", 0, 100, None), of_guesses("a", 100, 100, None)
    assert (none.low, every.high) == (0.0, 1.0)
    assert none.high == pytest.approx(1 - 0.0005**0.01, abs=2e-5)
    assert every.low == pytest.approx(0.0005**0.01, abs=2e-5)
    some = of_guesses("a", 30, 100, 0.1)
    assert some.low < 0.3 < some.high
    assert some.within is False
    assert of_mean("a", [1.0, 3.0], 2.5).within
    assert exactly("a", 2.0, 1.9).within is False
    assert exactly("a", 2.0, None).within is None


def test_bounds_of_guesses_are_those_of_the_odds() -> None:
    assert guess_bound(0.0, 8) == 1 / 8
    assert guess_bound(1.0, 2) == pytest.approx(math.e / (1 + math.e))


def test_the_list_names_all(hubbub: Hubbub) -> None:
    listed = hubbub.answer("attack", "list")["attacks"]
    assert [each["name"] for each in listed] == list(NAMES)
    assert all(each["promise"].endswith(".") for each in listed)
    text = hubbub.shown("attack", "list")
    assert all(name in text for name in NAMES)


def test_a_collection_is_attacked_and_drawn(hubbub: Hubbub) -> None:
    examples = Path(__file__).parents[2] / "examples"
    options = ("--people", 300, "--runs", 2, "--forged", 0.05)
    answer = hubbub.answer("attack", "oracles", "-c", examples / "telemetry.toml", *options, "--plot", "moved.png")
    cases = {case["case"]: case for case in answer["cases"]}
    assert cases["platforms"]["note"] == "its devices remember"
    assert cases["stability: raised by"]["within"] is True
    assert (hubbub.folder / "moved.png").stat().st_size > 10_000
    text = hubbub.shown("attack", "cohorts")
    assert "no promise" in text
    refused = hubbub.refused("attack", "means", "-c", examples / "telemetry.toml")
    assert "only oracles attacks the questions of a collection" in refused
    assert "did you mean oracles" in hubbub.refused("attack", "oracle")


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"people": 99}, {"forged": 0.0}, {"forged": 0.6}, {"runs": 1}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        AttackSetting(**wrong)  # type: ignore[arg-type]


def test_outcomes_are_json() -> None:
    text = json.dumps(of_mean("a", [1.0, 2.0], 3.0, unit="people").to_dict())
    assert json.loads(text)["unit"] == "people"
