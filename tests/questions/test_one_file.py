"""A new kind of question is one file: check, plan, promise, signing, devices, collector, restart, API and pages."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.authoring import check, forecast, load_collection, open_collection, promise
from hubbub.cli.app import app as command
from hubbub.collection import seal
from hubbub.collection.safety import open_collection as open_on_device
from hubbub.core.errors import InvalidValue
from hubbub.questions import QUESTIONS
from tests.questions.distinct import DistinctQuestion
from tests.shared.in_process import KEYS
from tests.shared.small_collections import collection_text
from tests.shared.whole_way import answered

TEXT = collection_text(
    privacy={"event": 6.0, "minimum_batch": 20},
    fields={"theme": {"kind": "categorical", "names": ["light", "dark", "sepia", "contrast", "paper"]}},
    questions={"in-use": {"kind": "distinct", "field": "theme", "epsilon": 6.0, "steps": 3}},
)
STEPS = range(7, 11)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, "distinct", DistinctQuestion)


def test_without_it_the_kind_is_refused_and_devices_do_not_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    document = seal(load_collection(TEXT).spec(), KEYS.private)
    monkeypatch.delitem(QUESTIONS, "distinct")
    with pytest.raises(InvalidValue, match="kind: got 'distinct'"):
        load_collection(TEXT)
    with pytest.raises(InvalidValue, match="kind: got 'distinct'"):
        open_collection(document, KEYS.public)
    device = open_on_device(document, KEYS.public)
    assert device.terms["in-use"].fields == ("theme",)
    assert device.encode("theme", "sepia") == 2


def test_it_is_checked_planned_and_promised(tmp_path: Path) -> None:
    collection = load_collection(TEXT)
    (row,) = forecast(collection)
    assert (row.kind, row.unit, row.errors[1000]) == ("distinct, 3 steps", "values in use", None)
    assert "questions.in-use.steps" in {finding.where for finding in check(collection)}
    assert "in-use. Of theme: how many different values are in use? One report every hour." in promise(collection)
    path = tmp_path / "survey.toml"
    path.write_text(TEXT)
    for name in ("check", "plan"):
        done = CliRunner().invoke(command, [name, str(path), "--json"])
        assert done.exit_code == 0, done.output
        result = json.loads(done.stdout)
        assert "not bounded here: a number of values is no mean" in result["poisoning"]["in-use"]["text"]
    wrong = TEXT.replace("steps = 3", "steps = 0"), TEXT.replace("steps = 3", "stebs = 3")
    for text, key in zip(wrong, ("steps", "stebs"), strict=True):
        with pytest.raises(InvalidValue) as refused:
            load_collection(text)
        assert refused.value.field == f"questions.in-use.{key}"


def test_it_is_answered_released_and_shown() -> None:
    """24 devices have three of five values, which are counted; their randomness is seeded.

    At epsilon 6 a report names a certain wrong value once in 400 times, and two such among 72 reports would count as a
    fourth value: for other seeds a chance of 3% a release.
    """
    values = ("light", "dark", "sepia")
    with answered(load_collection(TEXT), "in-use", "theme", lambda n: values[n % 3], STEPS) as (releases, get):
        assert [release["n"] for release in releases] == [24, 48, 72, 72]
        assert [release["value"] for release in releases][-2:] == [[3.0]] * 2
        answer = get("/v1/collections/survey/questions/in-use/releases").json()
        latest = answer["releases"][-1]
        assert (latest["labels"], latest["value"], latest["kind"]) == (["values in use"], [3.0], "quantity")
        assert (answer["shape"]["form"], answer["shape"]["high"]) == ("mean", 5.0)
        page = get("/results/survey/in-use").text
        assert "On average <strong>3" in page
        assert "on a range from 0 to 5" in page
        assert "how many different values" in get("/privacy/survey").text
        assert "distinct, 3 steps" in get("/collections/survey").text
