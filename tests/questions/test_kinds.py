"""Kinds of questions: what they all keep to, and kinds of other packages."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest

from hubbub.core import plugins as registry
from hubbub.core.domain import Categorical
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginRefused, Registry
from hubbub.ledger.promise import Budget
from hubbub.questions import QUESTIONS, Question, Setting, read_collection
from hubbub.questions.histogram import HistogramQuestion
from tests.collection.conftest import make
from tests.questions.distinct import DistinctQuestion


@pytest.mark.parametrize("kind", QUESTIONS)
def test_keys_of_another_kind_are_refused_by_name(kind: str) -> None:
    keys: dict[str, Any] = {"field": "theme", "epsilon": 1.0, "method": "LPU", "w": 3, "permanent": 2.0}
    keys |= {"r": 3, "steps": 4, "changes": 2, "candidates": ["a"], "keep_reports": True, "sparsity": 1, "of": "size"}
    keys |= {"start": "2026-12-01T00:00Z", "columns": ["theme", "age"], "fields": ["theme", "age"]}
    known = set(QUESTIONS[kind].__dataclass_fields__)
    for key in keys.keys() - known:
        chosen = {name: value for name, value in keys.items() if name in known or name == key}
        with pytest.raises(InvalidValue, match=f"questions of kind {kind} have no such key") as refused:
            Question.make(kind, **chosen)
        assert refused.value.field == key


@dataclass(frozen=True, kw_only=True)
class PairQuestion(HistogramQuestion):
    """A histogram of a field that also reads another, which must be a field of the collection."""

    kind: ClassVar[str] = "pair"
    second: str

    def reads(self) -> tuple[str, ...]:
        return self.field, self.second


def test_a_question_may_read_several_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, "pair", PairQuestion)
    pair = Question.make("pair", field="theme", second="level", epsilon=1.0)
    whole = make(questions={"both": pair})
    assert whole.terms["both"].fields == ("theme", "level")
    assert list(whole.questions["both"].setting.domains) == ["theme", "level"]
    assert read_collection(whole.spec()) == whole
    with pytest.raises(InvalidValue, match=r"questions\.both\.field: got 'gone'"):
        make(questions={"both": Question.make("pair", field="theme", second="gone", epsilon=1.0)})


# -- other packages ------------------------------------------------------------------------------------------------


def registered(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> Registry[Question]:
    """The kinds, as they would be with these entry points."""
    found = [EntryPoint(name, value, "hubbub.questions") for name, value in points]
    monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in found if point.group == group])
    fresh = Registry[Question](QUESTIONS._group, QUESTIONS._base, QUESTIONS._homes, named_by=QUESTIONS._named_by)
    monkeypatch.setattr("hubbub.questions.base.QUESTIONS", fresh)
    return fresh


def test_a_kind_of_another_package_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = registered(monkeypatch, ("distinct", f"{DistinctQuestion.__module__}:DistinctQuestion"))
    assert list(kinds)[-1] == "distinct"
    question = Question.make("distinct", field="theme", epsilon=1.0)
    setting = Setting("q", {"theme": Categorical(["a", "b"])}, 3600)
    assert question.bound(setting).shape().unit == "values in use"
    collection = make(questions={"q": question}, budget=Budget.of(event=1.0))
    assert read_collection(collection.spec()).questions["q"].summary == "distinct, 7 steps"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("histogram", f"{DistinctQuestion.__module__}:DistinctQuestion", "histogram is one of hubbub's own"),
        ("distinct", "no_such_module:Distinct", "ModuleNotFoundError"),
        ("distinct", "json:loads", "not a Question called distinct"),
        ("other", f"{DistinctQuestion.__module__}:DistinctQuestion", "not a Question called other"),
    ],
)
def test_a_bad_plugin_is_refused_with_its_name(monkeypatch, name, value, message) -> None:
    registered(monkeypatch, (name, value))
    with pytest.raises(PluginRefused, match=r"hubbub\.questions entry point") as refused:
        Question.make("distinct" if name == "histogram" else name, field="theme", epsilon=1.0)
    assert message in str(refused.value)
    assert Question.make("mean", field="age", epsilon=1.0).kind == "mean"  # ours need no other package
