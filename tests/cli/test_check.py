"""`hubbub check`, and `hubbub plan` of a file."""

from pathlib import Path

import pytest

from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.toml import EXAMPLE
from tests.cli.commands import Hubbub

EXAMPLES = Path(__file__).parents[2] / "examples"
UNSAFE = EXAMPLE.replace("epsilon = 1.0", "epsilon = 9.0").replace("event = 1.0", "event = 9.0")


def test_a_good_collection(hubbub: Hubbub) -> None:
    path = EXAMPLES / "telemetry.toml"
    result = hubbub.answer("check", path)
    collection = load_collection(path)
    assert result["ok"] is True
    assert result["collection_id"] == collection.collection_id
    assert result["promise"] == promise(collection)
    findings = [tuple(finding) for finding in check(collection)]
    assert [tuple(finding.values()) for finding in result["findings"]] == findings


def test_forged_devices(hubbub: Hubbub) -> None:
    many = EXAMPLE.replace('"light", "dark"', ", ".join(f'"v{k}"' for k in range(128)))
    named = hubbub.write("themes.toml", many.replace("epsilon = 1.0", 'epsilon = 1.0\nmechanism = "GRR"'))
    for command in ("check", "plan"):
        result = hubbub.answer(command, named)["poisoning"]["popular"]
        assert result["up"] == pytest.approx(0.755, abs=0.001)  # 128 names, and nothing recorded
        assert result["forged"] == result["part"] == 0.01
        tenth = hubbub.answer(command, named, "--forged", 0.001)["poisoning"]["popular"]
        assert tenth["up"] == pytest.approx(result["up"] / 10)
        assert "forged: got 2.0" in hubbub.refused(command, named, "--forged", 2)
    shown = hubbub.shown("check", named)
    assert "popular: If 1% of the devices are forged, they can raise any share by up to 75.5 percentage points" in shown
    assert "one forged report counts for 75 people with GRR" in shown
    planned = hubbub.shown("plan", named)
    assert "How far any answer can be moved if 1% of the devices are forged" in planned
    assert "75.5%" in planned


def test_an_unsafe_collection_exits_with_1(hubbub: Hubbub) -> None:
    result = hubbub.answer("check", hubbub.write("themes.toml", UNSAFE), code=1)
    assert result["ok"] is False
    errors = [finding["where"] for finding in result["findings"] if finding["level"] == "error"]
    assert errors == ["questions.popular.epsilon"]
    reason = f"{UNSAFE}\n[override]\nepsilon_above_8 = 'a survey of public data'\n"
    assert hubbub.answer("check", hubbub.write("themes.toml", reason))["ok"] is True


def test_what_is_printed(hubbub: Hubbub) -> None:
    good = hubbub.shown("check", hubbub.write("themes.toml", EXAMPLE))
    for part in ("What is sent.", "All together.", "warning", "privacy.user", "themes 1: good to serve"):
        assert part in good
    bad = hubbub("check", hubbub.write("themes.toml", UNSAFE))
    assert bad.exit_code == 1
    assert "What is sent." not in bad.stdout  # nothing is promised
    assert "questions.popular.epsilon" in bad.stdout
    assert "themes 1: refused" in bad.stdout


def test_against_an_older_version(hubbub: Hubbub) -> None:
    old = hubbub.write("old.toml", EXAMPLE)
    assert "nothing changed" in hubbub.shown("check", hubbub.write("themes.toml", EXAMPLE), "--against", old)
    slower = EXAMPLE.replace('"1h"', '"2h"')
    stuck = hubbub("check", hubbub.write("themes.toml", slower), "--against", old)
    assert stuck.exit_code == 1
    assert "make it 2" in " ".join(stuck.stdout.split())
    moved = hubbub.write("themes.toml", slower.replace("version = 1", "version = 2"))
    assert "from 1 hour to 2 hours" in hubbub.shown("check", moved, "--against", old)


@pytest.mark.parametrize("command", ["check", "plan"])
def test_a_broken_file(hubbub: Hubbub, command: str) -> None:
    negative = hubbub.write("themes.toml", EXAMPLE.replace("epsilon = 1.0", "epsilon = -1.0"))
    assert "questions.popular.epsilon: got -1.0" in hubbub.refused(command, negative)
    assert "not TOML" in hubbub.refused(command, hubbub.write("themes.toml", "name = "))
    assert "no.toml" in hubbub.refused(command, "no.toml")


def test_plan_of_a_file(hubbub: Hubbub) -> None:
    path = EXAMPLES / "telemetry.toml"
    collection = load_collection(path)
    result = hubbub.answer("plan", path)
    assert result["frame_bytes"] == collection.frame_bytes
    assert result["epsilon_for_life"] == 400.0
    assert result["questions"] == [row.to_dict() for row in forecast(collection)]
    assert {tuple(row["errors"]) for row in result["questions"]} == {("1000", "10000", "100000", "1000000")}
    shown = hubbub.shown("plan", path)
    assert all(row["question"] in shown for row in result["questions"])
    assert "A device spends up to epsilon 400, its limit for life, within a year." in shown
    assert "in which the values of platforms do not change" in shown
    emoji = hubbub.shown("plan", EXAMPLES / "emoji.toml")
    assert "a year, and has no limit for life." in emoji
    assert "do not change" not in emoji  # it has no memos


ALARMS = """
[alarms.dark]
question = "popular"
weights = { dark = 1 }
above = 0.5

[alarms.moved]
question = "popular"
each = true
change = "either"
baseline = 24
"""


def test_alarms_are_shown_with_what_they_promise(hubbub: Hubbub) -> None:
    path = hubbub.write("themes.toml", EXAMPLE + ALARMS)
    checked, planned = hubbub.answer("check", path)["alarms"], hubbub.answer("plan", path)["alarms"]
    assert checked["guarantee"].startswith("at most one false alarm in 30 days on average of all 4 watched together")
    assert [row["alarm"] for row in planned] == ["dark", "moved"]
    assert planned == checked["each"]
    assert planned[0]["steps"] == {"1": 12, "4": 1}
    (question,) = hubbub.answer("plan", path)["questions"]
    assert planned[0]["errors"]["10000"] == pytest.approx(question["errors"]["10000"])
    assert "at most one false alarm in 120 days" in hubbub.shown("check", path)
    assert "half of the time within the given steps" in hubbub.shown("plan", path)


def test_an_alarm_that_cannot_be_is_refused_and_one_that_is_never_raised_is_warned_of(hubbub: Hubbub) -> None:
    misspelt = hubbub.write("themes.toml", EXAMPLE + ALARMS.replace("dark = 1", "drak = 1"))
    assert "alarms.dark.weights.drak" in hubbub.refused("check", misspelt)
    warned = hubbub.answer("check", hubbub.write("themes.toml", EXAMPLE + ALARMS.replace("above = 0.5", "above = 1.5")))
    assert ("warning", "alarms.dark.above") in [(finding["level"], finding["where"]) for finding in warned["findings"]]


def test_several_files_are_checked_one_after_the_other(hubbub: Hubbub) -> None:
    good, other = (
        hubbub.write("themes.toml", EXAMPLE),
        hubbub.write("others.toml", EXAMPLE.replace('"themes"', '"others"')),
    )
    both = hubbub.shown("check", good, other)
    assert both.index("themes 1: good to serve") < both.index("others 1: good to serve")
    assert [checked["name"] for checked in hubbub.answer("check", good, other)] == ["themes", "others"]
    unsafe = hubbub("check", hubbub.write("unsafe.toml", UNSAFE), other)
    assert unsafe.exit_code == 1
    assert "others 1: good to serve" in unsafe.stdout


def test_of_several_files_the_broken_one_is_named(hubbub: Hubbub) -> None:
    broken = hubbub.write("broken.toml", EXAMPLE.replace("epsilon = 1.0", "epsilon = -1.0"))
    assert "broken.toml: questions.popular.epsilon: got -1.0" in hubbub.refused(
        "check", hubbub.write("themes.toml", EXAMPLE), broken
    )
    assert "--against" in hubbub.refused("check", hubbub.write("themes.toml", EXAMPLE), broken, "--against", broken)


def test_every_example_can_be_checked(hubbub: Hubbub) -> None:
    checked = hubbub.answer("check", *sorted(EXAMPLES.glob("*.toml")))
    assert all(collection["ok"] for collection in checked)
