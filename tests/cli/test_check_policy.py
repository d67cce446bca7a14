"""`hubbub check --policy`, `--strict`, and what two versions differ in."""

from pathlib import Path

import pytest

from tests.authoring.test_policy import text as policy_text
from tests.cli.commands import Hubbub

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_command_fails_with_the_clause(hubbub: Hubbub):
    file = hubbub.write("survey.toml", policy_text(event=2.0))
    policy = hubbub.write("policy.toml", "[most]\nyear = 100.0\n[person]\nyear = 20000.0\n")
    assert hubbub.answer("check", file)["ok"] is True
    answer = hubbub.answer("check", file, "--policy", policy, code=1)
    assert answer["ok"] is False
    assert answer["findings"][0]["where"] == "policy.most.year"
    assert answer["guarantees"]["year"] == pytest.approx(13140.0, rel=1e-4)
    assert "policy.most.year" in hubbub("check", file, "--policy", policy).stdout
    other = hubbub.write("other.toml", policy_text("other", event=2.0))
    answers = hubbub.answer("check", file, other, "--policy", policy, code=1)
    assert all("policy.person.year" in [finding["where"] for finding in each["findings"]] for each in answers)


def test_strict_refuses_warnings(hubbub: Hubbub):
    file = hubbub.write("survey.toml", policy_text(event=2.0))
    assert "warning" in [finding["level"] for finding in hubbub.answer("check", file)["findings"]]
    assert hubbub.answer("check", file, "--strict", code=1)["ok"] is False


def test_versions_are_compared_key_by_key(hubbub: Hubbub):
    old = hubbub.write("old.toml", policy_text(event=2.0))
    new = hubbub.write("new.toml", policy_text(event=1.9).replace("version = 1", "version = 2"))
    answer = hubbub.answer("check", new, "--against", old)
    changed = {row["key"]: (row["before"], row["after"]) for row in answer["changed"]}
    assert changed["version"] == (1, 2)
    assert changed["budget.event"] == (2 * 10**12, 19 * 10**11)
    assert answer["before"]["year"] == answer["guarantees"]["year"]


def test_the_example_policy_allows_the_example(hubbub: Hubbub):
    assert (
        hubbub.answer("check", EXAMPLES / "emoji.toml", "--policy", EXAMPLES / "policies" / "organisation.toml")["ok"]
        is True
    )
