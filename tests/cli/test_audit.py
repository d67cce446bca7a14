"""`hubbub audit` and `hubbub amplify`: what they print, and that a violation is found."""

import json

import pytest

import hubbub as hb
from hubbub.mechanisms import randomizers
from tests.cli.commands import Hubbub

ALL = ("audit", "--all", "--epsilon", 1, "--domain", 3)


def test_json(hubbub: Hubbub) -> None:
    (row,) = hubbub.answer("audit", "olh", "--epsilon", 2, "--domain", 64)
    assert set(row) >= {"effective_epsilon", "how"}
    assert (row["mechanism"], row["epsilon"], row["domain"], row["exact"], row["ok"]) == ("OLH", 2.0, 64, True, True)
    assert row["spec_id"] == hb.OLH(epsilon=2.0, domain=64).spec_id


def test_all(hubbub: Hubbub) -> None:
    rows = hubbub.answer(*ALL, "--montecarlo", 2000)
    assert {row["mechanism"] for row in rows if row["montecarlo"] is not None} == set(randomizers())
    assert all(row["ok"] for row in rows)


@pytest.mark.slow  # the table of two is below, with their specs
def test_all_in_a_table(hubbub: Hubbub) -> None:
    shown = hubbub(*ALL).stdout
    assert all(name in shown for name in randomizers())
    assert "VIOLATED" not in shown


@pytest.mark.parametrize("name", ["adaptive", "Rappor"])
def test_names_without_a_domain(hubbub: Hubbub, name: str) -> None:
    (row,) = hubbub.answer("audit", name)
    assert row["ok"]


def test_parameters_are_given(hubbub: Hubbub) -> None:
    given = ("audit", "ExSub", "--dimension", 6, "--sparsity", 2)
    (row,) = hubbub.answer(*given)
    assert (row["spec"]["dimension"], row["spec"]["sparsity"], row["ok"]) == (6, 2, True)
    assert '"dimension":6' in hubbub.shown(*given).replace(" ", "")
    assert "a mechanism's name" in hubbub.refused("audit", "--all", "--dimension", 6)


def test_public_numbers_are_said_to_be_unprotected(hubbub: Hubbub) -> None:
    measured, drawn = (hubbub.shown("audit", name) for name in ("Measured", "OLH"))
    assert "(measures and seed), which may depend on the answer and is sent as it is: nothing protects it" in measured
    assert "(seed), which is drawn without looking at the answer" in drawn


def test_the_statement(hubbub: Hubbub) -> None:
    shown = hubbub.shown("audit", "GRR", "--montecarlo", 5000)
    assert "holds" in shown
    assert " ".join(hb.audit(hb.GRR(epsilon=1.0, domain=16)).statement().splitlines()[0].split()) in shown
    assert "5,000 reports drawn" in shown


def test_a_spec(hubbub: Hubbub) -> None:
    specs = [hb.GRR(epsilon=1.0, domain=4).spec(), hb.OUE(epsilon=2.0, domain=["a", "b", "c"]).spec()]
    hubbub.write("specs.json", json.dumps(specs))
    rows = hubbub.answer("audit", "--spec", "specs.json")
    assert [(row["mechanism"], row["epsilon"], row["ok"]) for row in rows] == [("GRR", 1.0, True), ("OUE", 2.0, True)]
    shown = hubbub("audit", "--spec", "specs.json").stdout
    assert all(name in shown for name in ("GRR", "OUE"))
    assert "VIOLATED" not in shown


@pytest.mark.parametrize(
    "honest", [hb.GRR(epsilon=4.0, domain=4), hb.OLH(epsilon=4.0, domain=9), hb.BasicRappor(epsilon=4.0, domain=4)]
)
def test_a_spec_that_spends_more_than_it_says(hubbub: Hubbub, honest: hb.Mechanism) -> None:
    hubbub.write("lie.json", json.dumps({**honest.spec(), "epsilon": 1.0}))
    (row,) = hubbub.answer("audit", "--spec", "lie.json", code=1)
    assert (row["epsilon"], row["ok"]) == (1.0, False)
    assert row["effective_epsilon"] == honest.effective_epsilon
    result = hubbub("audit", "--spec", "lie.json")
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a JSON file"),
        ("[" * 100_000, "a JSON file"),
        ("[]", "a JSON object"),
        ("[3]", "a JSON object"),
        ("{}", "mechanism: got None"),
        ('{"mechanism": "GRR", "epsilon": 1.0}', "exactly the fields"),
        ('{"mechanism": "GRR", "epsilon": -1.0, "domain": 4, "other": 1}', "epsilon: got -1.0"),
        ('{"mechanism": "GRR", "epsilon": "x", "domain": 4, "other": 1}', "epsilon: got 'x'"),
    ],
)
def test_a_spec_that_is_none(hubbub: Hubbub, text: str, message: str) -> None:
    assert message in hubbub.refused("audit", "--spec", hubbub.write("spec.json", text))


SETTING = ("amplify", "--mechanism", "olh", "--epsilon", 2, "--n", 100_000, "--delta", 1e-6)


def test_json_says_the_guarantee_and_nothing_else(hubbub: Hubbub) -> None:
    result = hubbub.answer(*SETTING)
    assert set(result) == {"epsilon", "delta", "method", "valid", "one_batch", "spec"}
    assert result["spec"]["domain"] == {"kind": "ordinal", "size": 1024}
    assert (result["delta"], result["method"], result["valid"]) == (1e-6, "blanket", True)
    assert 0.0247 < result["epsilon"] < 0.0249


def test_in_words(hubbub: Hubbub) -> None:
    text = hubbub.shown(*SETTING)
    for part in ("blanket", "stronger clones", "FMT21", "BBGN19", "plus a delta of 1e-06", "local epsilon of 2"):
        assert part in text
    alone = hubbub.shown("amplify", "-m", "grr", "-e", 30, "-n", 5)
    assert "by more than a factor of e^30. Before" in alone  # and no delta, where nothing was gained


def test_the_spec_with_its_parameters_is_printed(hubbub: Hubbub) -> None:
    given = ("amplify", "-m", "exsub", "-e", 2, "-n", 100_000, "--dimension", 128, "--sparsity=8")
    spec = hubbub.answer(*given)["spec"]
    assert (spec["mechanism"], spec["dimension"], spec["sparsity"]) == ("ExSub", 128, 8)
    assert '"dimension":128' in hubbub.shown(*given).replace(" ", "")
    assert hubbub.answer("amplify", "-m", "psfo", "-e", 2, "-n", 100, "-d", 16)["spec"]["domain"]["kind"] == "sets"


def test_a_stream_of_changes(hubbub: Hubbub) -> None:
    stream = ("amplify", "-m", "changestream", "-e", 2, "-n", 5000, "--dimension", 2, "--steps", 4, "--changes", 3)
    result = hubbub.answer(*stream, "--one", "true")
    assert (result["spec"]["mechanism"], result["spec"]["one"], result["method"]) == ("ChangeStream", True, "blanket")
    assert 0.4 < result["epsilon"] < 0.5
    assert "each on a level by chance" in " ".join(hubbub.shown(*stream).split())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("ohl -n 100 -e 2", "did you mean OLH?"),
        ("olh -n 100 -e nan", "epsilon: got nan"),
        ("olh -n 0 -e 2", "n: got 0; allowed: an integer from 1"),
        ("olh -n 100 -e 2 --delta 1", "delta: got 1.0"),
        ("olh -n 100 -e 2 --domain 1", "domain: got 1"),
        ("oue -n 100 -e 2 --fakes 3", "fakes are drawn uniformly"),
        ("measured -n 100 -e 2", "public part"),
        ("psfo -n 100 -e 2", "domain: got nothing"),
        ("changestream -n 100 -e 2 --dimension 2", "steps: got nothing"),
        ("exsub -n 100 -e 2", "dimension: got nothing"),
        ("exsub -n 100 -e 2 --dimension 128", "sparsity: got nothing"),
        ("exsub -n 100 -e 2 --dimension", "--name VALUE"),
        ("exsub -n 100 -e 2 --dimension --sparsity", "--name VALUE"),
        ("exsub -n 100 -e 2 dimension=8", "--name VALUE"),
        ("exsub -n 100 -e 2 --dimensoin=8", "did you mean dimension?"),
        ("exsub -n 100 -e 2 --dimension=8 --dimension 9", "each once"),
        ("exsub -n 100 -e 2 --dimension=eight --sparsity 2", "dimension: got 'eight'"),
        ("exsub -n 100 -e 2 --domain 9", "has no list of values"),
    ],
)
def test_refusals_name_field_value_and_what_is_allowed(hubbub: Hubbub, options: str, reason: str) -> None:
    assert reason in hubbub.refused("amplify", "-m", *options.split())


@pytest.mark.parametrize("name", ["BasicRappor", "Loloha"])
def test_memoised_reports_say_one_batch_only(hubbub: Hubbub, name: str) -> None:
    options = ("amplify", "-m", name, "-e", 2, "-n", 1000, "-d", 8)
    assert hubbub.answer(*options)["one_batch"] is True
    assert "one batch only" in hubbub.shown(*options)
    assert "one batch only" not in hubbub.shown(*SETTING)
