"""Numbers by group: check, plan, promise, devices, collector, API and pages; and that intervals hold."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.forecast import poisoning
from hubbub.core.domain import Categorical, Numeric, Ordinal
from hubbub.protocols.driver import converse
from hubbub.protocols.views.records import GridAxis
from hubbub.questions import Question, read_collection
from hubbub.questions.breakdown import BreakdownQuestion
from hubbub.statistics.ratios import Ratios
from tests.questions.settings import placed
from tests.shared.whole_way import answered

OS, CRASHED, START = Categorical(["13", "14", "15"]), Categorical(["no", "yes"]), Numeric(0.0, 10.0, cells=20)
TEXT = (Path(__file__).parents[2] / "examples" / "crashes.toml").read_text()
LOUD = TEXT.replace("epsilon = 1.0", "epsilon = 8.0").replace("event = 2.0", "event = 16.0")
LOUD = LOUD.replace("epsilon = 14.0", "epsilon = 112.0").replace("minimum_batch = 100", "minimum_batch = 20")
LOUD = LOUD[: LOUD.index("[questions.start]")]


def by_group(kind: str = "histogram", **keys: Any) -> BreakdownQuestion:
    question = Question.make(kind, **{"field": "crashed", "by": "os", "epsilon": 1.0, **keys})
    assert isinstance(question, BreakdownQuestion)
    return question


def test_it_is_checked_planned_and_promised() -> None:
    collection = load_collection(TEXT)
    assert read_collection(collection.spec()) == collection
    assert collection.terms["crashes"].fields == ("crashed", "os")
    assert not [finding for finding in check(collection) if finding.level == "error"]
    rows = {row.question: row for row in forecast(collection)}
    assert (rows["crashes"].kind, rows["start"].unit) == ("histogram, by os", "start")
    sentence = (
        "crashes. How often does the app crash, by system? One report every day. It covers os and crashed together"
    )
    assert sentence in promise(collection)
    bound = poisoning(collection.questions["crashes"], forged=0.01)
    assert "within a group that has the share s of all devices moves 1/s times as far" in bound.text()


@pytest.mark.parametrize(("epsilon", "together"), [(0.5, False), (6.0, True)])
def test_several_fields_are_asked_together_or_apart_whichever_errs_less(epsilon: float, together: bool) -> None:
    question = by_group(by=["os", "country"], epsilon=epsilon)
    question = placed(question, CRASHED, OS, Ordinal(3))
    parts = question.parts()
    assert len(parts) == question.terms().parts == (1 if together else 2)
    chosen, other = question.expected_errors()
    assert chosen < other
    (note,) = [finding.text for finding in question.findings()]
    assert ("all of them in one report" if together else "with one of them a device") in note
    covers = "os, country and crashed together" if together else "together with one of os and country"
    assert covers in question.sentence()


def released(question: Question, domains: Any, people: dict[str, Any], seed: int) -> dict[str, Any]:
    """What people say of one step, each by the view and the mechanism of the ask; parts are random parts of them."""
    rng, size = Random(seed=seed), len(next(iter(people.values())))
    places = rng.uint32(size)

    def answer(ask: Any) -> Any:
        inside = ask.cohort.holds(places)
        seen = ask.view.look({name: column[inside] for name, column in people.items()}, rng)
        return ask.mechanism.accumulate(ask.mechanism.randomize(seen, rng))

    (release,) = converse(placed(question, *domains).protocol(), answer, steps=1)
    return dict(release.estimates)


def crowd(n: int) -> dict[str, Any]:
    """Groups of 55%, 38%, 5.5% and 1.5% (who have none), with other crash rates; a few say nothing of crashes."""
    rng = np.random.default_rng(7)
    sizes = [int(0.55 * n), int(0.38 * n), int(0.055 * n)]
    os = np.repeat([0, 1, 2, 3], [*sizes, n - sum(sizes)])
    rate = np.array([0.05, 0.2, 0.6, 0.4])[os]
    crashed = np.where(rng.random(n) < 0.1, 2, (rng.random(n) < rate).astype(int))
    start = np.clip(rng.gamma(3.0, 1.0, n) + os, 0, 10)
    start[rng.random(n) < 0.2] = np.nan
    return {"os": os, "crashed": crashed, "start": start, "country": rng.integers(0, 3, n)}


def truth_of(people: dict[str, Any], value: Any) -> Any:
    return np.array([np.nanmean(value[people["os"] == group]) for group in range(4)])


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [
        ("histogram", 3.0),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("mean", 3.0), ("histogram", 1.0), ("mean", 1.0))),
    ],
)
def test_intervals_of_groups_and_of_differences_hold(kind: str, epsilon: float) -> None:
    """Of 400 releases: ordinary groups in 93 to 97% of cases, the rare ones in no fewer than 93%.

    Each count of 400 has a standard error of 1.1 points; the limits are three of those beyond 93 and 97, so that a
    wrong alarm has a chance below 1% in all. An interval of half the width would hold in 67%, and of 0.8 in 88%.
    """
    people, times = crowd(4000), 400
    field = "crashed" if kind == "histogram" else "start"
    domains = (CRASHED if kind == "histogram" else START, OS)
    question = by_group(kind, field=field, epsilon=epsilon)
    truth = truth_of(people, people["crashed"] == 1 if kind == "histogram" else people["start"])
    covered, apart, planted = np.zeros(4), np.zeros(3), np.zeros(4)
    for seed in range(times):
        estimate = released(question, domains, people, seed)["estimate"]
        assert isinstance(estimate, Ratios)
        size = len(estimate) // 4
        low, high = (end.reshape(4, size)[:, size // 2] for end in estimate.interval())
        covered += (low <= truth) & (truth <= high)
        narrow = replace(estimate, moments=estimate.moments / 4)
        low, high = (end.reshape(4, size)[:, size // 2] for end in narrow.interval())
        planted += (low <= truth) & (truth <= high)
        for place, group in enumerate((1, 2, 3)):
            ends = estimate.difference(group * size + size // 2, size // 2)
            apart[place] += ends.low <= truth[group] - truth[0] <= ends.high
    covered, apart = covered / times, apart / times
    print(kind, epsilon, covered, apart)
    assert (planted[:2] / times < 0.93 - 0.034).all()  # errors of half the size would be noticed
    assert (covered >= 0.93 - 0.034).all()
    assert (covered[:2] <= 0.97 + 0.026).all()
    assert (apart >= 0.93 - 0.034).all()
    assert apart[0] <= 0.97 + 0.026


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_intervals_hold_where_a_device_tells_of_one_field_alone(epsilon: float) -> None:
    """Of 400 releases, as above; that half of the devices were asked is part of the error."""
    people, times = crowd(4000), 400
    question = by_group(by=["os", "country"], epsilon=epsilon)
    question = placed(question, CRASHED, OS, Ordinal(3))
    truth = {name: [np.mean(people["crashed"][people[name] == k] == 1) for k in range(2)] for name in ("os", "country")}
    covered, apart, parts = np.zeros(4), 0, len(question.parts())
    for seed in range(times):
        estimate = released(question, (CRASHED, OS, Ordinal(3)), people, seed)
        for place, (name, by) in enumerate((("estimate", "os"), ("by country", "country"))):
            low, high = (end[[1, 4]] for end in estimate[name].interval())
            covered[2 * place : 2 * place + 2] += (low <= truth[by]) & (truth[by] <= high)
        ends = estimate["by country"].difference(4, 1)
        apart += ends.low <= truth["country"][1] - truth["country"][0] <= ends.high
    print(epsilon, parts, covered / times, apart / times)
    assert (np.abs([*(covered / times), apart / times] - np.array(0.95)) <= 0.02 + 0.034).all()


def test_numbers_are_right_on_average_also_after_rounding() -> None:
    """The upper and lower sums of means are unbiased: over 200 releases their mean is within 4.5 standard errors."""
    people = crowd(2000)
    question = by_group("mean", field="start", epsilon=4.0)
    question = placed(question, START, OS)
    assert isinstance(question.parts()[0].value, GridAxis)
    estimates = [released(question, (START, OS), people, seed)["estimate"] for seed in range(200)]
    tops, belows = (np.array([getattr(estimate, name) for estimate in estimates]) for name in ("above", "below"))
    known = ~np.isnan(people["start"])
    for group in range(4):
        inside = (people["os"] == group) & known
        for found, wanted in ((tops, people["start"][inside].sum() / 2000), (belows, inside.mean())):
            error = found[:, group].std() / np.sqrt(200)
            assert abs(found[:, group].mean() - wanted) < 4.5 * error
    stated = np.sqrt(np.array([estimate.moments[0] for estimate in estimates]).mean(axis=0))
    assert (np.abs(tops.std(axis=0) / stated - 1) < 0.25).all()  # the bound of rounding is part of what is stated


def test_parts_tell_of_their_own_field() -> None:
    question = by_group(by=["os", "country"], epsilon=2.0)
    people = crowd(20_000)
    estimate = released(question, (CRASHED, OS, Ordinal(3)), people, 1)
    assert list(estimate) == ["estimate", "groups of os", "by country", "groups of country"]
    low, high = estimate["by country"].interval()
    for group in range(3):
        rate = float(np.mean(people["crashed"][people["country"] == group] == 1))
        assert low[group * 3 + 1] - 0.05 < rate < high[group * 3 + 1] + 0.05
    assert estimate["groups of os"].value.round(1).tolist()[:2] == [0.6, 0.4]


def test_it_is_answered_released_and_shown() -> None:
    """24 devices, half of them on 13: a third of these crashed, and all of those on 14; six record no system.

    At epsilon 8 a report names a wrong cell once in hundreds of times; the devices' randomness is seeded.
    """

    def values(number: int) -> tuple[str | None, ...]:
        os = None if number % 4 == 3 else "13" if number % 2 == 0 else "14"
        return "yes" if os != "13" or number % 3 == 0 else "no", os

    collection, fields = load_collection(LOUD), ("crashed", "os")
    with answered(collection, "crashes", fields, values, range(7, 9)) as (releases, get):
        latest = releases[-1]
        assert latest["bias"] == "ratio"
        estimate = get("/v1/collections/crashes/questions/crashes/releases/latest").json()
        named = dict(zip(estimate["labels"], estimate["value"], strict=True))
        assert named["13: yes"] == pytest.approx(1 / 3, abs=0.15)
        assert named["14: yes"] == pytest.approx(1.0, abs=0.15)
        assert estimate["estimates"]["groups of os"]["value"][:2] == pytest.approx([0.5, 0.25], abs=0.15)
        path = "/v1/collections/crashes/questions/crashes/difference"
        apart = get(f"{path}?of=14&minus=13").json()
        assert (apart["by"], apart["labels"]) == ("os", ["no", "yes", "(none)"])
        assert apart["low"][1] < 2 / 3 < apart["high"][1]
        assert apart["value"][1] == pytest.approx(2 / 3, abs=0.2)
        assert get(f"{path}?of=14&minus=12").status_code == 400
        assert get(f"{path}?of=14&minus=14").status_code == 400
        assert get(f"{path}?of=14&minus=13&step=-5").status_code == 404
        page = get("/results/crashes/crashes?by=os&of=1&minus=0").text
        assert "14 minus 13" in page
        assert "How large the groups are" in page
        assert "histogram, by os" in get("/collections/crashes").text
