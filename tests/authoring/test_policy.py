"""Numbers of what is guaranteed, and policies: each clause is met and broken."""

import pytest

from hubbub.authoring.coalitions import coalitions_of
from hubbub.authoring.guarantees import guarantees_of, most_in
from hubbub.authoring.policy import EXAMPLE, Policy, breaches, breaches_together, load_policy
from hubbub.authoring.toml import read_collection
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.questions.collection import Collection
from tests.authoring.test_shuffle import TEXT as SHUFFLED
from tests.shared.small_collections import THEME, collection_text


def survey(name: str = "survey", **privacy: object) -> Collection:
    return read_collection(text(name, **privacy))


def text(name: str = "survey", **privacy: object) -> str:
    questions = {
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 1.0, "mechanism": "GRR"},
        "again": {"kind": "histogram", "field": "theme", "epsilon": 0.5, "mechanism": "OUE"},
    }
    return collection_text(
        name,
        fields={"theme": THEME},
        questions=questions,
        privacy={"minimum_batch": 100, **(privacy or {"event": 2.0})},
    )


def clauses(policy: str, collection: Collection) -> list[str]:
    return [finding.where.removeprefix("policy.") for finding in breaches(load_policy(policy), collection)]


def test_numbers_are_those_of_the_limits_and_costs():
    numbers = guarantees_of(survey(event=2.0))
    # GRR and OUE spend a little less than they declare: their chances are whole numbers of 2^-64 and 2^-16.
    assert [numbers.report, numbers.step, numbers.year] == pytest.approx([1.0, 1.5, 1.5 * 8760], rel=1e-4)
    assert numbers.life is None
    assert (numbers.window, numbers.delta, numbers.central_year, numbers.least_batch) == (None, 0.0, None, 100)
    assert numbers.questions["popular"].mechanisms == ["GRR"]
    assert numbers.questions["again"].year == pytest.approx(0.5 * 8760, rel=1e-4)
    limited = survey(event=2.0, user=50.0, window={"epsilon": 3.0, "steps": 24})
    numbers = guarantees_of(limited)
    assert (numbers.window, numbers.window_steps, numbers.year, numbers.life) == (3.0, 24, 50.0, 50.0)
    assert most_in(limited, 25) == 6 * UNITS_PER_EPSILON  # two windows
    assert most_in(survey(event=1.2), 10) == 12 * UNITS_PER_EPSILON  # the limit of a step, ten times


def test_a_year_of_shuffled_batches_has_its_number():
    collection = read_collection(SHUFFLED)
    numbers, alone = guarantees_of(collection), coalitions_of(collection, "popular")[0]
    assert alone.year is not None
    assert numbers.questions["popular"].central_batch == alone.epsilon
    assert numbers.questions["popular"].central_year == alone.year[0]
    assert numbers.delta == collection.shuffle.delta * len(collection.questions)  # type: ignore[union-attr]
    assert numbers.central_year is not None
    assert alone.epsilon < numbers.central_year <= numbers.year


def test_the_example_has_every_clause():
    policy = load_policy(EXAMPLE)
    assert all(getattr(policy, name) for name in Policy.__struct_fields__)
    assert policy.longest_days == 90


@pytest.mark.parametrize(
    ("clause", "met", "broken"),
    [
        ("most.report", "[most]\nreport = 1.0", "[most]\nreport = 0.99"),
        ("most.step", "[most]\nstep = 1.5", "[most]\nstep = 1.4"),
        ("most.window", "[most]\nwindow = 3.0", "[most]\nwindow = 2.9"),
        ("most.year", "[most]\nyear = 50", "[most]\nyear = 49"),
        ("most.life", "[most]\nlife = 50.0", "[most]\nlife = 49.9"),
        ("least.batch", "[least]\nbatch = 100", "[least]\nbatch = 101"),
        ("longest.retention", '[longest]\nretention = "90d"', '[longest]\nretention = "89d"'),
        ("allowed.trusts", '[allowed]\ntrusts = ["local"]', '[allowed]\ntrusts = ["shuffle"]'),
        ("allowed.kinds", '[allowed]\nkinds = ["histogram"]', '[allowed]\nkinds = ["mean"]'),
        ("allowed.mechanisms", '[allowed]\nmechanisms = ["GRR", "OUE"]', '[allowed]\nmechanisms = ["GRR"]'),
    ],
)
def test_each_clause_is_met_and_broken(clause: str, met: str, broken: str):
    collection = survey(event=2.0, user=50.0, window={"epsilon": 3.0, "steps": 24})
    assert clauses(met + "\n", collection) == []
    assert set(clauses(broken + "\n", collection)) == {clause}


def test_a_limit_that_is_missing_breaks_the_clause_about_it():
    assert clauses("[most]\nlife = 1e9\n", survey(event=2.0)) == ["most.life"]
    assert clauses("[most]\nwindow = 0.1\n", survey(event=2.0)) == []  # no window is declared: other clauses hold


def test_what_is_central_is_limited_where_reports_are_shuffled():
    collection = read_collection(SHUFFLED)
    year, delta = guarantees_of(collection).central_year, guarantees_of(collection).delta
    assert year is not None
    assert clauses(f"[central]\nyear = {year * 1.01}\ndelta = {delta}\n", collection) == []
    assert clauses(f"[central]\nyear = {year * 0.99}\ndelta = {delta / 2}\n", collection) == [
        "central.year",
        "central.delta",
    ]
    assert clauses("[central]\nyear = 0.0\ndelta = 0.0\n", survey(event=2.0)) == []


def test_a_person_is_in_all_collections():
    both = [survey("one", user=60.0), survey("two", user=60.0)]
    assert breaches_together(load_policy("[person]\nlife = 120.0\n"), both) == []
    (finding,) = breaches_together(load_policy("[person]\nlife = 119.0\n"), both)
    assert finding.where == "policy.person.life"
    assert "epsilon 120 (one 60, two 60), the policy allows 119" in finding.text
    (finding,) = breaches_together(load_policy("[person]\nlife = 119.0\n"), [both[0], survey("free", event=2.0)])
    assert "free has no limit of a life" in finding.text


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("[most]\nrepot = 1.0\n", r"policy.most.repot.*did you mean report"),
        ("[most]\nreport = -1.0\n", "policy.most.report"),
        ("[person]\nreport = 1.0\n", "policy.person.report"),
        ("[allowed]\nkinds = []\n", "policy.allowed.kinds"),
        ('[longest]\nretention = "soon"\n', "policy.longest.retention"),
        ("[mots]\nyear = 1.0\n", "policy.mots"),
        ("year = \n", "TOML"),
    ],
)
def test_a_policy_that_says_nothing_is_refused(given: str, place: str):
    with pytest.raises(InvalidValue, match=place):
        load_policy(given)
