"""A kind of question of another package whose methods raise: it is named, nothing else breaks, nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hubbub.authoring import load_collection, promise
from hubbub.cli.app import app as command
from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.plugins import PluginFailed, PluginRefused
from hubbub.questions import QUESTIONS, Question
from hubbub.random.source import Random
from tests.questions.distinct import DistinctQuestion
from tests.questions.test_one_file import TEXT
from tests.shared.in_process import KEYS, InProcess
from tests.shared.whole_way import site

POPULAR = '[questions.popular]\nkind = "histogram"\nfield = "theme"\nepsilon = 1.0\n'
TWO = f"{TEXT.replace('event = 6.0', 'event = 8.0')}\n{POPULAR}"
READING = ("make", "from_spec", "reading", "spec")  # without them there is no collection to serve
METHODS = sorted(
    name
    for name, member in vars(Question).items()
    if not name.startswith("_") and (callable(member) or isinstance(member, property)) and name not in READING
)
SHORT = ("check", "forecast", "keeps", "labels", "protocol", "sentence", "terms")
EACH = [pytest.param(name, marks=() if name in SHORT else pytest.mark.slow) for name in (*METHODS, "reading", "spec")]
NAMED = r"tests\.questions\.test_broken_kind\.broken\.<locals>\.Broken\.{} raised RuntimeError: boom"
PAGES = (
    *("/", "/results/survey", "/results/survey/in-use", "/results/survey/popular", "/ingest/survey", "/privacy/survey"),
    *("/collections/survey", "/v1/collections", "/v1/collections/survey/alarms", "/v1/collections/survey/counts"),
    "/v1/collections/survey/questions/in-use/releases",
    "/v1/collections/survey/questions/popular/releases",
)


def broken(method: str) -> type[Question]:
    """The kind `distinct`, one of whose methods raises."""

    def boom(*given: Any, **options: Any) -> Any:
        raise RuntimeError("boom")

    inherited = getattr(DistinctQuestion, method)
    wrapped = property(boom) if isinstance(inherited, property) else boom

    class Broken(DistinctQuestion):
        """A kind with a bug."""

        locals()[method] = wrapped

    return Broken


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, "distinct", DistinctQuestion)


def break_kind(method: str) -> None:
    del QUESTIONS["distinct"]
    QUESTIONS["distinct"] = broken(method)


@pytest.mark.parametrize("method", EACH)
def test_commands_refuse_it_by_name(tmp_path: Path, method: str) -> None:
    break_kind(method)
    path = tmp_path / "survey.toml"
    path.write_text(TWO)
    for name in ("check", "plan"):
        done = CliRunner().invoke(command, [name, str(path)])
        if done.exit_code:
            assert done.exit_code == 2, done.output
            assert f"Broken.{method} raised RuntimeError: boom" in done.stderr
            assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("method", EACH[:-2])
def test_no_page_fails_and_other_questions_go_on(tmp_path: Path, method: str) -> None:
    """The collection was read by a kind that worked; its method raises from then on."""
    collection = load_collection(TWO)
    object.__setattr__(collection.questions["in-use"], "__class__", broken(method))
    clock = ManualClock(collection.opens(7) + 1)
    server = InProcess(collection, clock, tmp_path / "hubbub.db")
    server.collector.tick()
    options: dict[str, Any] = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "survey"}
    with Client(tmp_path / "device", server, KEYS.public, rng=Random(seed=1), **options) as client:
        client.record("theme", "dark")
        assert client.tick() >= 1
        client.upload()
    clock.set(collection.opens(8) + collection.lateness_seconds + 1)
    server.collector.tick()
    get = site(server.collector)
    for page in PAGES:
        response = get(page)
        assert response.status_code != 500, page
        if response.status_code >= 400:
            assert f"Broken.{method} raised RuntimeError: boom" in response.text, page
    stopped = {question: why for (_, question), why in server.collector.failed.items()}
    assert set(stopped) <= {"in-use"}
    assert ("in-use is stopped" in get("/results/survey/popular").text) == bool(stopped)
    (release,) = server.collector.releases("survey", "popular", first=0, last=99, most=99)
    assert json.loads(release.payload)["n"] == 1
    server.store.close()


def test_the_error_names_the_class_and_the_method() -> None:
    break_kind("sentence")
    with pytest.raises(PluginFailed, match=NAMED.format("sentence")):
        promise(load_collection(TEXT))


def test_a_kind_without_its_methods_is_refused_when_it_is_registered() -> None:
    class Half(Question):
        """It says nothing but its name."""

        kind = "half"

    with pytest.raises(PluginRefused, match=r"Half.*: it lacks assumes, check, cost, .*terms"):
        QUESTIONS["half"] = Half  # type: ignore[type-abstract]


def test_a_name_is_registered_once() -> None:
    QUESTIONS["distinct"] = DistinctQuestion  # the same class again
    with pytest.raises(PluginRefused, match=r"distinct: the name is taken by .*DistinctQuestion"):
        QUESTIONS["distinct"] = broken("labels")
    with pytest.raises(PluginRefused, match="the name is taken"):
        QUESTIONS["mean"] = DistinctQuestion
