"""`hubbub check`, and `hubbub plan` of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.toml import EXAMPLE

EXAMPLES = Path(__file__).parents[2] / "examples"
UNSAFE = EXAMPLE.replace("epsilon = 1.0", "epsilon = 9.0").replace("event = 1.0", "event = 9.0")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str, name: str = "themes.toml") -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_a_good_collection(answer: Callable[..., Any]) -> None:
    path = EXAMPLES / "telemetry.toml"
    result = answer("check", path)
    collection = load_collection(path)
    assert result["ok"] is True
    assert result["collection_id"] == collection.collection_id
    assert result["promise"] == promise(collection)
    assert [tuple(finding.values()) for finding in result["findings"]] == [
        tuple(finding) for finding in check(collection)
    ]


def test_forged_devices(answer: Callable[..., Any], hubbub: Callable[..., Result], file: Callable[[str], Path]) -> None:
    many = EXAMPLE.replace('"light", "dark"', ", ".join(f'"v{k}"' for k in range(128)))
    named = file(many.replace("epsilon = 1.0", 'epsilon = 1.0\nmechanism = "GRR"'))
    for command in ("check", "plan"):
        result = answer(command, named)["poisoning"]["popular"]
        assert result["up"] == pytest.approx(0.755, abs=0.001)  # 128 names, and nothing recorded
        assert result["forged"] == result["part"] == 0.01
        assert answer(command, named, "--forged", 0.001)["poisoning"]["popular"]["up"] == pytest.approx(
            result["up"] / 10
        )
    shown = " ".join(hubbub("check", named).stdout.split())
    assert "popular: If 1% of the devices are forged, they can raise any share by up to 75.5 percentage points" in shown
    assert "one forged report counts for 75 people with GRR" in shown
    planned = hubbub("plan", named).stdout
    assert "How far any answer can be moved if 1% of the devices are forged" in " ".join(planned.split())
    assert "75.5%" in planned
    assert max(map(len, planned.splitlines())) <= 80


def test_a_forged_part_must_be_one(refused: Callable[..., str], file: Callable[[str], Path]) -> None:
    for command in ("check", "plan"):
        assert "forged: got 2.0" in refused(command, file(EXAMPLE), "--forged", 2)


def test_an_unsafe_collection_exits_with_1(answer: Callable[..., Any], file: Callable[[str], Path]) -> None:
    result = answer("check", file(UNSAFE), code=1)
    assert result["ok"] is False
    assert [finding["where"] for finding in result["findings"] if finding["level"] == "error"] == [
        "questions.popular.epsilon"
    ]
    reason = f"{UNSAFE}\n[override]\nepsilon_above_8 = 'a survey of public data'\n"
    assert answer("check", file(reason))["ok"] is True


def test_what_is_printed(hubbub: Callable[..., Result], file: Callable[[str], Path]) -> None:
    good = hubbub("check", file(EXAMPLE))
    assert good.exit_code == 0
    for result in ("What is sent.", "All together.", "note", "privacy.user", "themes 1: good to serve"):
        assert result in good.stdout
    assert max(map(len, good.stdout.splitlines())) <= 80
    bad = hubbub("check", file(UNSAFE))
    assert bad.exit_code == 1
    assert "What is sent." not in bad.stdout  # nothing is promised
    assert "questions.popular.epsilon" in bad.stdout
    assert "themes 1: refused" in bad.stdout


def test_against_an_older_version(hubbub: Callable[..., Result], file: Callable[..., Path]) -> None:
    old = file(EXAMPLE, "old.toml")
    same = hubbub("check", file(EXAMPLE), "--against", old)
    assert same.exit_code == 0
    assert "nothing changed" in same.stdout
    slower = EXAMPLE.replace('"1h"', '"2h"')
    stuck = hubbub("check", file(slower), "--against", old)
    assert stuck.exit_code == 1
    assert "make it 2" in " ".join(stuck.stdout.split())
    moved = hubbub("check", file(slower.replace("version = 1", "version = 2")), "--against", old)
    assert moved.exit_code == 0
    assert "from 1 hour to 2 hours" in " ".join(moved.stdout.split())


@pytest.mark.parametrize("command", ["check", "plan"])
def test_a_broken_file(refused: Callable[..., str], file: Callable[[str], Path], command: str) -> None:
    assert "questions.popular.epsilon: got -1.0" in refused(
        command, file(EXAMPLE.replace("epsilon = 1.0", "epsilon = -1.0"))
    )
    assert "not TOML" in refused(command, file("name = "))
    assert "no.toml" in refused(command, "no.toml")


def test_check_needs_a_file(refused: Callable[..., str]) -> None:
    assert "file" in refused("check")


def test_plan_of_a_file(answer: Callable[..., Any], hubbub: Callable[..., Result]) -> None:
    path = EXAMPLES / "telemetry.toml"
    collection = load_collection(path)
    result = answer("plan", path)
    assert result["frame_bytes"] == collection.frame_bytes
    assert result["epsilon_for_life"] == 400.0
    assert result["questions"] == [row.to_dict() for row in forecast(collection)]
    assert {tuple(row["errors"]) for row in result["questions"]} == {("1000", "10000", "100000", "1000000")}
    shown = hubbub("plan", path)
    assert shown.exit_code == 0
    for row in result["questions"]:
        assert row["question"] in shown.stdout
    assert "epsilon 400, its limit for life" in " ".join(shown.stdout.split())
    assert max(map(len, shown.stdout.splitlines())) <= 80


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


def test_alarms_are_shown_with_what_they_promise(
    answer: Callable[..., Any], hubbub: Callable[..., Result], file: Callable[[str], Path]
) -> None:
    path = file(EXAMPLE + ALARMS)
    checked, planned = answer("check", path)["alarms"], answer("plan", path)["alarms"]
    assert checked["guarantee"].startswith("at most one false alarm in 30 days on average of all 4 watched together")
    assert [row["alarm"] for row in planned] == ["dark", "moved"]
    assert planned == checked["each"]
    assert planned[0]["steps"] == {"1": 12, "4": 1}
    assert planned[0]["errors"]["10000"] == pytest.approx(answer("plan", path)["questions"][0]["errors"]["10000"])
    assert "at most one false alarm in 120 days" in " ".join(hubbub("check", path).stdout.split())
    assert "half of the time within the given steps" in " ".join(hubbub("plan", path).stdout.split())


def test_an_alarm_that_cannot_be_is_refused_and_one_that_is_never_raised_is_warned_of(
    answer: Callable[..., Any], hubbub: Callable[..., Result], file: Callable[[str], Path]
) -> None:
    refused = hubbub("check", file(EXAMPLE + ALARMS.replace("dark = 1", "drak = 1")))
    assert refused.exit_code
    assert "alarms.dark.weights.drak" in refused.output
    warned = answer("check", file(EXAMPLE + ALARMS.replace("above = 0.5", "above = 1.5")))
    assert ("warning", "alarms.dark.above") in [(finding["level"], finding["where"]) for finding in warned["findings"]]


def test_several_files_are_checked_one_after_the_other(
    answer: Callable[..., Any], hubbub: Callable[..., Result], file: Callable[..., Path]
) -> None:
    good, other = file(EXAMPLE), file(EXAMPLE.replace('"themes"', '"others"'), "others.toml")
    both = hubbub("check", good, other)
    assert both.exit_code == 0
    assert both.stdout.index("themes 1: good to serve") < both.stdout.index("others 1: good to serve")
    assert [checked["name"] for checked in answer("check", good, other)] == ["themes", "others"]
    unsafe = hubbub("check", file(UNSAFE, "unsafe.toml"), other)
    assert unsafe.exit_code == 1
    assert "others 1: good to serve" in unsafe.stdout


def test_of_several_files_the_broken_one_is_named(refused: Callable[..., str], file: Callable[..., Path]) -> None:
    broken = file(EXAMPLE.replace("epsilon = 1.0", "epsilon = -1.0"), "broken.toml")
    assert "broken.toml: questions.popular.epsilon: got -1.0" in refused("check", file(EXAMPLE), broken)
    assert "--against" in refused("check", file(EXAMPLE), broken, "--against", broken)


def test_every_example_can_be_checked(answer: Callable[..., Any]) -> None:
    checked = answer("check", *sorted(EXAMPLES.glob("*.toml")))
    assert all(collection["ok"] for collection in checked)


def test_the_plan_of_a_file_spends_no_more_in_a_year_than_for_life(hubbub: Callable[..., Result]) -> None:
    telemetry = " ".join(hubbub("plan", EXAMPLES / "telemetry.toml").stdout.split())
    assert "A device spends up to epsilon 400, its limit for life, within a year." in telemetry
    assert "in which the values of platforms do not change" in telemetry
    emoji = " ".join(hubbub("plan", EXAMPLES / "emoji.toml").stdout.split())
    assert "a year, and has no limit for life." in emoji
    assert "do not change" not in emoji  # it has no memos
