"""Devices that answer one question each: who is asked, what it costs, and what the samples add to the errors."""

import json
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.authoring import check
from hubbub.authoring.forecast import forecast, people_or_epsilon, poisoning
from hubbub.authoring.promise import promise
from hubbub.authoring.toml import read_collection
from hubbub.client.answer import part_for
from hubbub.client.documents import PublishedAsk
from hubbub.collection.document import SignedCollection
from hubbub.collection.terms import Group
from hubbub.core.domain import Categorical, Domain, KeyValue, Numeric, Ordinal, Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.core.domain.vector import Vector
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Array
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask, group_on_circle, place_on_circle
from hubbub.protocols.driver import Release
from hubbub.protocols.topl.stream import _estimates, _Group, _Recent
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.questions.spending import total_of, worst_of
from hubbub.questions.statistic import StatisticQuestion
from hubbub.random.source import Random
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import Stream
from tests.shared.in_process import InProcess
from tests.shared.small_collections import collection_text

THEME, AGE = Categorical(["light", "dark"]), Numeric(0.0, 100.0, cells=10)
POPULAR = Question.make("histogram", field="theme", epsilon=6.0)
AGES = Question.make("mean", field="age", epsilon=6.0)


def divided(questions: Mapping[str, Question], fields: Mapping[str, Domain], **keys: Any) -> Collection:
    """A collection whose devices answer one of these questions each."""
    keys = {"divide": True, "budget": Budget.of(event=8.0), **keys}
    return Collection(name="small", title="Small", fields=fields, questions=questions, step_seconds=3600, **keys)


TWO = divided({"ages": AGES, "popular": POPULAR}, {"theme": THEME, "age": AGE})


class Held(Stream):
    """Devices that hold the same at every step."""

    steps = None

    def __init__(self, values: Sequence[Any] | Array) -> None:
        self.held, self.n = values, len(values)

    def values(self, step: int, start: int, stop: int) -> Any:
        return self.held[start:stop]

    def truth(self, step: int) -> Any:
        raise NotImplementedError


def test_each_question_has_a_group_of_its_own_which_is_signed() -> None:
    groups = {name: terms.group for name, terms in TWO.terms.items()}
    assert groups == {"ages": Group(0, 2), "popular": Group(1, 2)}
    signed = SignedCollection.from_spec(TWO.spec())
    assert signed.divide
    assert {name: terms.group for name, terms in signed.terms.items()} == groups
    undivided = replace(TWO, divide=False)
    assert "divide" not in undivided.spec()
    assert all(terms.group.of == 1 for terms in undivided.terms.values())
    with pytest.raises(InvalidValue, match="collection: "):
        SignedCollection.from_spec({**TWO.spec(), "divide": False})


def test_a_device_pays_for_one_question_and_uploads_have_room_for_one() -> None:
    undivided = replace(TWO, divide=False)
    one, all_of_them = (total_of(collection, 1) for collection in (TWO, undivided))
    assert one == max(question.cost().each for question in TWO.questions.values())
    assert all_of_them == sum(question.cost().each for question in TWO.questions.values())
    assert worst_of(TWO, 3) == 3 * one
    assert not [str(finding) for finding in check(TWO) if finding.level == "error"]
    assert any(finding.where == "privacy.event" for finding in check(undivided) if finding.level == "error")
    wide = Question.make("histogram", field="level", epsilon=6.0, mechanism="OUE")
    many = {f"q{at}": wide for at in range(9)}
    crowded = divided(many, {"level": Ordinal(4000)})
    assert crowded.frame_bytes < replace(crowded, divide=False).frame_bytes


def test_the_group_is_independent_of_the_place_and_spread_evenly() -> None:
    keys = [number.to_bytes(16, "little") for number in range(6000)]
    groups = np.array([group_on_circle(key, "small", 3) for key in keys])
    early = np.array([place_on_circle(key, "small") < 1 << 31 for key in keys])
    table = np.array([[(groups[early == half] == group).sum() for group in range(3)] for half in (False, True)])
    assert abs(table - 1000).max() < 5 * math.sqrt(1000)  # each within five deviations: one in a million


def test_a_client_answers_the_question_of_its_group_alone() -> None:
    rounds = [
        [PublishedAsk(name, Ask(mechanism=question.mechanism_for(), step=0), 1)]
        for name, question in TWO.questions.items()
        if isinstance(question, StatisticQuestion)
    ]
    for number in range(40):
        key = number.to_bytes(16, "little")
        asked = [part for parts in rounds if (part := part_for(TWO, parts, key)) is not None]
        assert [part.question for part in asked] == [sorted(TWO.questions)[group_on_circle(key, "small", 2)]]


def test_every_device_answers_exactly_one_of_the_questions() -> None:
    n, rng = 4000, Random(seed=1)
    answered = 0
    for name, values in (("ages", np.full(n, 50.0)), ("popular", np.zeros(n, dtype=np.int64))):
        (release,) = run_question(TWO, name, Held(values), rng, steps=1)
        assert abs(release.estimate.n - n / 2) < 5 * math.sqrt(n / 4)
        assert release.n == 2 * release.estimate.n
        answered += release.estimate.n
    assert answered == n


LIKED = KeyValue(("alien", "brazil"), low=-1.0, high=3.0, most=2)
EXTRA = replace(POPULAR, title="Another?")
KINDS: dict[str, tuple[dict[str, Any], dict[str, Domain]]] = {
    "histogram": ({"kind": "histogram", "field": "theme"}, {"theme": THEME}),
    "SOLH": ({"kind": "histogram", "field": "theme", "mechanism": "SOLH", "buckets": 64}, {"theme": THEME}),
    "by": ({"kind": "histogram", "field": "theme", "by": ["level"]}, {"theme": THEME, "level": Ordinal(2)}),
    "mean": ({"kind": "mean", "field": "age"}, {"age": AGE}),
    "memo": ({"kind": "memo", "field": "theme", "permanent": 8.0}, {"theme": THEME}),
    "range found": ({"kind": "mean", "field": "age", "range": "auto"}, {"age": AGE}),
    "range found in a stream": (
        {"kind": "stream", "field": "age", "range": "auto", "method": "LBU", "w": 1},
        {"age": AGE},
    ),
    "changes": ({"kind": "changes", "field": "theme", "steps": 4, "changes": 8}, {"theme": THEME}),
    "vector": (
        {"kind": "vector", "field": "step", "rounds": 1, "sparsity": 1, "start": "2026-12-01T00:00Z"},
        {"step": Vector(3)},
    ),
    "LPU": ({"kind": "stream", "field": "theme", "method": "LPU", "w": 2}, {"theme": THEME}),
    "LBU": ({"kind": "stream", "field": "theme", "method": "LBU", "w": 1}, {"theme": THEME}),
    "stream of a mean": ({"kind": "stream", "field": "age", "method": "LPU", "w": 2}, {"age": AGE}),
    "keyvalue": ({"kind": "keyvalue", "field": "liked", "of": "frequency"}, {"liked": LIKED}),
    "marginals": ({"kind": "marginals", "fields": ["theme", "level"]}, {"theme": THEME, "level": Ordinal(2)}),
    "distribution": ({"kind": "distribution", "field": "age"}, {"age": AGE}),
    "itemsets": (
        {"kind": "itemsets", "field": "held", "of": "items", "k": 2, "start": "2026-12-01T00:00Z"},
        {"held": Sets(Ordinal(3), most=2)},
    ),
    "top": ({"kind": "top", "field": "level", "k": 2, "start": "2026-12-01T00:00Z"}, {"level": Ordinal(3)}),
}


def misses(case: str, runs: int, n: int = 1500) -> tuple[int, float]:
    """How often the interval of one number misses what is true of all devices, and its mean standard error."""
    keys, fields = KINDS[case]
    question = Question.make(**keys, epsilon=6.0)
    collection = divided({"asked": question, "other": replace(POPULAR, epsilon=8.0)}, {**fields, "theme": THEME})
    ones = np.arange(n) % 3 == 0
    values: Any = np.where(ones, 1, 0)
    truth = 1 / 3
    if keys["kind"] in ("mean", "stream", "distribution") and keys["field"] == "age":
        values, truth = np.where(ones, 100.0, 0.0), 100 / 3
    if keys["kind"] == "keyvalue":
        values = np.empty(n, dtype=object)
        values[:] = [[(1, 3.0)] if has_it else [] for has_it in ones]
    if keys["kind"] == "vector":
        values = np.stack([np.zeros(n), ones, np.zeros(n)], axis=1)
    if keys["kind"] == "marginals" or "by" in keys:
        values = np.ones(n, dtype=[("theme", np.int64), ("level", np.int64)])
        values["theme"] = ones
    missed, error = 0, 0.0
    for run in range(runs):
        order = np.argsort(Random(seed=f"{case} order").child(run).uint32(n))
        held = values[order]
        if keys["kind"] == "itemsets":
            held = ItemSets(np.arange(n + 1), held, domain=3)
        (release,) = run_question(collection, "asked", Held(held), Random(seed=f"{case} {run}"), steps=1)
        estimate, place = number_of(release, keys)
        low, high = estimate.interval()
        missed += not low[place] <= truth <= high[place]
        error += float(estimate.stderr[place]) / runs
    return missed, error


def number_of(release: Release, keys: Mapping[str, Any]) -> tuple[Estimate, int]:
    """The estimate and the place in it of the number that is a third, or the mean."""
    estimate = release.own or release.estimate
    if keys["kind"] == "distribution":
        return release.estimates["Mean"], 0
    if keys["kind"] in ("top", "itemsets"):
        assert estimate.labels is not None
        return estimate, estimate.labels.index("1")
    if keys["kind"] == "marginals":
        assert estimate.labels is not None
        return estimate, next(at for at, label in enumerate(estimate.labels) if "dark" in label and "1" in label)
    if "by" in keys:
        assert estimate.labels is not None
        return estimate, next(at for at, label in enumerate(estimate.labels) if label == "1: dark")
    return estimate, min(1, len(estimate) - 1)


def most_misses(runs: int) -> int:
    """More misses than this happen once in 10,000 times if intervals of 95% hold in 93%."""
    return int(binom.isf(1e-4, runs, 0.07))


@pytest.mark.parametrize("case", ["histogram", "mean"])
def test_intervals_hold_for_all_devices_and_not_only_for_the_group(case: str) -> None:
    assert misses(case, 60)[0] <= most_misses(60)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(KINDS))
def test_intervals_of_every_kind_hold_for_all_devices(case: str) -> None:
    assert misses(case, 400)[0] <= most_misses(400)


def test_without_the_variance_of_the_sample_they_would_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Estimate, "of_groups", lambda self, groups, people=None: self)
    assert misses("histogram", 60)[0] > most_misses(60)


@pytest.mark.parametrize("always", [True, False])
def test_running_sums_have_the_variance_of_the_drawing_of_the_group(always: bool) -> None:
    """The same values at every step are the worst case; with others, the errors of steps add up to less.

    Of 3,000 groups that are drawn, the variance of a sum is known to within a tenth: that it is missed by more, or that
    of independent values is not below half of the bound, has a chance below one in a million.
    """
    n, groups, steps, rng = 400, 3, 4, np.random.default_rng(1)
    values = rng.exponential(10.0, (1, n)).repeat(steps, axis=0) if always else rng.exponential(10.0, (steps, n))
    sums, means, drawn = [], [], []
    for _ in range(3000):
        own = values[:, rng.integers(0, groups, n) == 0]
        recent = _Recent(*map(deque, (np.full(steps, float(own.shape[1])), own.mean(axis=1), np.zeros(steps))))
        estimates = _estimates(
            Estimate(own[-1].mean(keepdims=True), [0.0], own.shape[1], kind="quantity"),
            recent,
            _Group(deque(own.var(axis=1).tolist())),
            groups,
        )
        sums.append(estimates["Sums"].value[1])
        means.append(estimates["Means"].value[1])
        drawn.append([estimates["Sums"].variance[1], estimates["Means"].variance[1]])
    assert np.mean(sums) == pytest.approx(values.sum(), rel=0.02)
    ratios = np.array([np.var(sums), np.var(means)]) / np.mean(drawn, axis=0)
    if always:
        assert ratios == pytest.approx([1.0, 1.0], abs=0.1)
    else:
        assert (ratios < [0.7, 0.5]).all()


def test_what_takes_turns_or_remembers_is_of_all_devices() -> None:
    """Rounds of a study, levels of a stream of changes, and numbers whose range is found."""
    for case, share in (("vector", 1.0), ("changes", 1.0), ("range found", 0.8)):
        keys, fields = KINDS[case]
        question = Question.make(**keys, epsilon=6.0)
        collection = divided({"asked": question, "other": replace(POPULAR, epsilon=8.0)}, {**fields, "theme": THEME})
        values: Any = {"vector": np.zeros((3000, 3)), "changes": np.zeros(3000, dtype=np.int64)}.get(
            case, np.zeros(3000)
        )
        (release,) = run_question(collection, "asked", Held(values), Random(seed=case), steps=1)
        answered = release.estimate.n / share
        assert abs(answered - 1500) < 5 * math.sqrt(3000 / 4) + 5 * math.sqrt(1500 * 0.16) * (share < 1)
        assert abs(release.n - 3000) < 10 * math.sqrt(3000 / 4) + 10 * math.sqrt(1500 * 0.16) * (share < 1)


def test_the_forecast_is_the_error_of_all_devices() -> None:
    for case in ("histogram", "LPU", "LBU"):
        keys, fields = KINDS[case]
        question = Question.make(**keys, epsilon=6.0)
        collection = divided({"asked": question, "other": replace(POPULAR, epsilon=8.0)}, {**fields, "theme": THEME})
        expected = collection.questions["asked"].expected_error(1500)
        assert expected is not None
        assert misses(case, 3)[1] == pytest.approx(expected, rel=0.15)  # of uniform shares, and here they are 1/3
    rows = {row.question: row for row in forecast(TWO)}
    alone = replace(TWO, divide=False).questions["popular"]
    error, of_group = rows["popular"].errors[100_000], alone.forecast(50_000)
    assert error is not None
    assert of_group is not None
    assert error == pytest.approx(math.sqrt(of_group**2 + alone.sampled_spread() / 100_000))


def asked_twice(epsilon: float, **keys: Any) -> Collection:
    """Two questions about one field, which cost the same."""
    return replace(
        TWO, questions={"a": replace(POPULAR, epsilon=epsilon), "b": replace(EXTRA, epsilon=epsilon)}, **keys
    )


def test_plan_and_check_say_which_division_errs_less() -> None:
    # 3.4.2: with two questions at epsilon 1, dividing people doubles the variance, dividing epsilon quadruples it.
    (row, _), n = people_or_epsilon(asked_twice(1.0)), 100_000
    assert row.better(n) == pytest.approx(1 / math.sqrt(2), rel=0.05)
    (same, _) = people_or_epsilon(asked_twice(0.5, divide=False))
    assert same.people == row.people
    assert same.epsilon == row.epsilon
    # Where epsilon is large, what counts is that each answers for two.
    (sampled, _) = people_or_epsilon(asked_twice(6.0))
    assert (sampled.better(n) or 0) > 1
    assert finding(asked_twice(1.0)) == "note"
    assert finding(asked_twice(0.5, divide=False)) == "note"
    assert finding(asked_twice(6.0)) == "warning"
    assert finding(replace(TWO, questions={"popular": POPULAR})) == "warning"
    assert not people_or_epsilon(replace(TWO, questions={"popular": POPULAR}))


def finding(collection: Collection) -> str:
    """The level of what `check` says of the division."""
    return next(finding.level for finding in check(collection) if finding.where == "population.divide")


def test_what_two_questions_reveal_of_one_field_adds_up_only_where_both_are_answered() -> None:
    texts = {divide: [found.text for found in check(asked_twice(0.5, divide=divide))] for divide in (False, True)}
    assert [any("adds up" in text for text in texts[divide]) for divide in (False, True)] == [True, False]


def test_the_promise_says_that_one_question_is_answered() -> None:
    assert "It answers one of the 2 questions below, always the same" in promise(TWO)
    assert "It answers one of" not in promise(replace(TWO, divide=False))


def test_forged_devices_weigh_more_where_honest_ones_take_part_in_one_question() -> None:
    divided, undivided = (
        poisoning(collection.questions["popular"]) for collection in (TWO, replace(TWO, divide=False))
    )
    assert divided.part == pytest.approx(0.01 / (0.01 + 0.99 / 2))
    assert divided.up is not None
    assert undivided.up is not None
    assert divided.up > undivided.up


def test_a_kind_that_is_asked_of_all_devices_is_refused() -> None:
    table = Question.make("table", columns=("theme", "level"), epsilon=1.0)
    with pytest.raises(
        InvalidValue, match=r"kind table, as bought, are asked of all devices: SQL knows exactly how many"
    ):
        divided({"bought": table, "popular": POPULAR}, {"theme": THEME, "level": Ordinal(3)})


def test_a_minimum_arc_is_of_all_devices() -> None:
    stream = Question.make("stream", field="theme", epsilon=1.0, method="LPU", w=600)
    fields = {"theme": THEME, "age": AGE}
    collection = divided({"popular": stream, "ages": AGES}, fields)
    undivided = replace(collection, divide=False, budget=Budget.of(event=9.0))
    assert [finding.where for finding in check(collection) if "at a time" in finding.text] == ["questions.popular"]
    assert not [finding for finding in check(undivided) if "asks" in finding.text and finding.level == "error"]


def test_the_table_population_is_read_from_toml() -> None:
    questions = {name: {"kind": kind, "field": field, "epsilon": 1.0} for name, kind, field in TOML}
    fields = {"theme": {"kind": "categorical", "names": ["light", "dark"]}, "level": {"kind": "ordinal", "size": 3}}
    whole: dict[str, Any] = {"fields": fields, "questions": questions, "privacy": {"event": 1.0}}
    collection = read_collection(collection_text(**whole, population={"divide": True}))
    assert collection.divide
    assert total_of(collection, 1) <= units_of(1.0)
    for wrong in ({"divide": "yes"}, {"divided": True}):
        with pytest.raises(InvalidValue, match=r"population\.divide"):
            read_collection(collection_text(**whole, population=wrong))


TOML = (("popular", "histogram", "theme"), ("levels", "histogram", "level"))


def test_real_clients_answer_the_question_of_their_group_and_the_collector_releases_for_all(tmp_path: Path) -> None:
    questions = {"first": replace(POPULAR, epsilon=8.0), "second": replace(EXTRA, epsilon=8.0)}
    fewest = {"minimum_batch": 5, "overrides": {"minimum_batch_below_20": "a test"}}
    small = divided(questions, {"theme": THEME}, **fewest)
    server, n = InProcess(small, 7200.5, tmp_path / "store.db"), 40
    for number in range(n):
        with server.device(tmp_path / str(number)) as client:
            client.record("theme", "dark")
            assert client.tick() == 1
            client.upload()
            assert client.status().queued == 0
    server.at(3 * 3600 + 1.0)
    question = small.questions["first"]
    assert isinstance(question, StatisticQuestion)
    releases = [json.loads(server.rows(name)[0].payload) for name in questions]
    assert sum(release["n"] for release in releases) == n
    for release in releases:
        assert release["n"] > 5
        assert release["population"] == 2 * release["n"]
        alone = question.mechanism_for().noise(release["n"])
        share = release["value"][1]
        sampling = max(share, 0.0) * max(1 - share, 0.0) / release["n"] / 2
        assert release["variance"][1] == pytest.approx(alone.variance(share) + sampling)
