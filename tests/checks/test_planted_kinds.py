"""Every check of kinds catches a bug that was planted for it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from hubbub import Categorical, Sets
from hubbub.authoring.toml import EXAMPLE
from hubbub.checks import KIND_CHECKS, CheckFailed, kind_tests, run_kind_checks
from hubbub.cli.app import app
from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.core.estimate import Estimate
from hubbub.protocols.driver import Protocol, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.views.basic import View
from hubbub.questions import QUESTIONS, Example, Shape
from hubbub.questions.histogram import HistogramQuestion
from hubbub.questions.spending import Cost
from hubbub.questions.value_shares import Shares
from hubbub.random.source import Random
from hubbub.simulate.asked_question import AskedQuestion
from hubbub.simulate.kind_suite import run_kind_check

FIELDS = {"theme": Categorical(["light", "dark"])}


@dataclass(frozen=True, kw_only=True)
class Planted(HistogramQuestion):
    """A histogram, with a bug in each class below."""

    kind: ClassVar[str] = "planted"

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="theme", epsilon=1.0), FIELDS


class ForgetsItsEpsilon(Planted):
    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "epsilon": 2.0}


class PromisesNothing(Planted):
    def sentence(self) -> str:
        return ""


class LabelsOneTooFew(Planted):
    def labels(self) -> tuple[str, ...]:
        return "light", "dark"


class LabelsTwoAlike(Planted):
    def labels(self) -> tuple[str, ...]:
        return "light", "light", "(none)"


class FindsAnotherKey(Planted):
    def findings(self) -> Iterator[Finding]:
        yield Finding("note", "thema", "there is no such key")


class AsksForMore(Planted):
    """Its terms are those of half of epsilon, and its asks spend all of it."""

    def terms(self) -> Terms:
        return replace(HistogramQuestion(field=self.field, epsilon=self.epsilon / 2).bound(self.setting).terms())


class CostsLess(Planted):
    def cost(self) -> Cost:
        return Cost(super().cost().each // 2, 1)

    def terms(self) -> Terms:
        return replace(super().terms(), limit=super().cost().each)


class CostsOnceInTwoSteps(Planted):
    """It says that two steps cost epsilon together, and asks for all of it in each."""

    def cost(self) -> Cost:
        return Cost(super().cost().each, 2)


class PaysAlone(Planted):
    def terms(self) -> Terms:
        return replace(super().terms(), account="mine")


@dataclass(frozen=True)
class RaisesOfDark(View):
    """A view that has no result for one value."""

    def __call__(self, values: Any) -> Any:
        if 1 in list(values):
            raise ValueError("dark")
        return values


@dataclass(frozen=True)
class DrawsForDark(View):
    """A view that draws random bytes for one value."""

    def look(self, values: Any, rng: Random) -> Any:
        if 1 in list(values):
            rng.bytes(1)
        return values


class SeenBy(Planted):
    view: ClassVar[View]

    def statistic(self) -> Shares:
        return replace(super().statistic(), view=self.view)  # type: ignore[return-value, type-var]


class SilentOnDark(SeenBy):
    view = RaisesOfDark()


class SlowOnDark(SeenBy):
    view = DrawsForDark()


class ShapedForFour(Planted):
    def shape(self) -> Shape:
        return Shape(form="shares", size=4)

    def labels(self) -> None:
        return None


class MeasuredInSeconds(Planted):
    def shape(self) -> Shape:
        return replace(super().shape(), unit="seconds")


class TellsSharesForMeans(Planted):
    """It says that its steps are unbiased, and releases what is not."""

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return _changed(super().protocol(memory, first=first), lambda estimate: replace(estimate, bias="heuristic"))


class TellsConsistently(Planted):
    """It changes what is told of a release."""

    def consistent(self, name: str, estimate: Estimate) -> tuple[str, Estimate] | None:
        told = super().consistent(name, estimate)
        return None if told is None else (told[0], self.planted(told[1]))

    @staticmethod
    def planted(estimate: Estimate) -> Estimate:
        raise NotImplementedError


class LosesAShare(TellsConsistently):
    @staticmethod
    def planted(estimate: Estimate) -> Estimate:
        return Estimate(estimate.value[1:], estimate.variance[1:], estimate.n)


class ScalesShares(TellsConsistently):
    @staticmethod
    def planted(estimate: Estimate) -> Estimate:
        return replace(estimate, value=1.01 * estimate.value)


class BelowZero(TellsConsistently):
    @staticmethod
    def planted(estimate: Estimate) -> Estimate:
        shift = np.zeros(len(estimate))
        shift[:2] = 1.0, -1.0
        return replace(estimate, value=estimate.value + shift)


class AnotherOrder(TellsConsistently):
    @staticmethod
    def planted(estimate: Estimate) -> Estimate:
        by_size = np.sort(estimate.value)[::-1][np.argsort(np.argsort(estimate.value, kind="stable"))]
        return replace(estimate, value=by_size)


class IntervalsMissTheShare(TellsConsistently):
    @staticmethod
    def planted(estimate: Estimate) -> Estimate:
        return replace(estimate, centre=None, variance=estimate.variance / 4)


class AddsUpItems(Planted):
    """People hold several items each, and it says that the shares of items add up to 1."""

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="items", epsilon=4.0), {"items": Sets(Categorical(["a", "b", "c", "d"]), most=3)}

    def sums_to_one(self) -> bool:
        return True


class TellsDevices(Planted):
    """Devices are asked otherwise if shares are told another way."""

    def terms(self) -> Terms:
        return replace(super().terms(), rounds=1 if self.consistency == "none" else 2)


CALLS = count()


class CountsItsStarts(Planted):
    """It releases another number whenever it is started."""

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        shift = float(next(CALLS))
        return _changed(
            super().protocol(memory, first=first),
            lambda estimate: replace(estimate, value=estimate.value + shift),
        )


class RemembersNothing(Planted):
    """It begins at step 1 again after a restart."""

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return super().protocol(None, first=first)


def _changed(protocol: Protocol, change: Any) -> Protocol:
    reply: Any = None
    while True:
        message = protocol.send(reply)
        if isinstance(message, Release):
            message = replace(message, estimates={name: change(part) for name, part in message.estimates.items()})
        reply = yield message


class ForecastsVariances(Planted):
    def forecast(self, n: int) -> float:
        return (super().forecast(n) or np.nan) ** 2


class ForecastsHalf(Planted):
    def forecast(self, n: int) -> float:
        return 0.5 * (super().forecast(n) or np.nan)


class CanBeChanged(Planted):
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


PLANTED = [
    (ForgetsItsEpsilon, "check_keys"),
    (CanBeChanged, "check_keys"),
    (PromisesNothing, "check_words"),
    (LabelsOneTooFew, "check_labels"),
    (LabelsTwoAlike, "check_labels"),
    (FindsAnotherKey, "check_findings"),
    (AsksForMore, "check_terms"),
    (CostsLess, "check_costs"),
    (CostsOnceInTwoSteps, "check_costs"),
    (PaysAlone, "check_costs"),
    (SilentOnDark, "check_every_value"),
    (SlowOnDark, "check_same_for_all"),
    (ShapedForFour, "check_releases"),
    (MeasuredInSeconds, "check_releases"),
    (TellsSharesForMeans, "check_releases"),
    (LosesAShare, "check_consistency"),
    (ScalesShares, "check_consistency"),
    (BelowZero, "check_consistency"),
    (AnotherOrder, "check_consistency"),
    (IntervalsMissTheShare, "check_consistency"),
    (AddsUpItems, "check_consistency"),
    (TellsDevices, "check_consistency"),
    (CountsItsStarts, "check_restart"),
    (RemembersNothing, "check_restart"),
    (ForecastsVariances, "check_forecast"),
    (ForecastsHalf, "check_forecast"),
]
BY_NAME = {check.__name__: check for check in KIND_CHECKS}


@pytest.mark.parametrize(("kind", "name"), PLANTED, ids=[f"{kind.__name__}-{name}" for kind, name in PLANTED])
def test_the_planted_bug_is_caught(kind: type[Planted], name: str) -> None:
    """The forecasts are so far off that their check misses them with a smaller probability than 1e-6."""
    ((question, fields),) = kind.examples()
    with pytest.raises(CheckFailed, match=name):
        run_kind_check(BY_NAME[name], AskedQuestion(question, fields))


def test_every_check_catches_something() -> None:
    assert {name for _, name in PLANTED} == set(BY_NAME)


def test_the_right_kind_passes_and_is_not_registered_afterwards() -> None:
    ((question, fields),) = Planted.examples()
    assert run_kind_checks(question, fields, rng_seed=2) == tuple(BY_NAME)
    assert "planted" not in QUESTIONS


def test_a_kind_opts_out_by_name_and_must_have_examples() -> None:
    @dataclass(frozen=True, kw_only=True)
    class OptsOut(ForecastsHalf):
        skip_checks: ClassVar[dict[str, str]] = {"check_forecast": "it is half"}

    ((question, fields),) = OptsOut.examples()
    assert run_kind_checks(question, fields) == tuple(BY_NAME)[:-1]
    OptsOut.skip_checks = {"check_forcast": "a typing error"}
    with pytest.raises(CheckFailed, match="check_forcast"):
        run_kind_checks(question, fields)
    with pytest.raises(CheckFailed, match="yields nothing"):
        kind_tests(type("NoExamples", (Planted,), {"examples": classmethod(lambda cls: iter(()))}))


def test_hubbub_check_refuses_a_kind_of_another_package_that_breaks_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "themes.toml"
    file.write_text(EXAMPLE.replace('kind = "histogram"', 'kind = "planted"'))
    for kind, code in ((Planted, 0), (SlowOnDark, 1)):
        monkeypatch.setitem(QUESTIONS, "planted", kind)
        done = CliRunner().invoke(app, ["check", str(file), "--json"])
        assert done.exit_code == code, done.output
        errors = [finding for finding in json.loads(done.stdout)["findings"] if finding["level"] == "error"]
        assert [finding["where"] for finding in errors] == ["questions.popular"] * code
        assert all("check_same_for_all" in finding["text"] for finding in errors)
        monkeypatch.delitem(QUESTIONS, "planted")
