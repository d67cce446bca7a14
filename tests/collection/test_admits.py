"""Which asks terms admit: vectors that the browser client runs too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.collection.admits import admits, admits_parts, matches
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain, Ordinal
from hubbub.protocols.ask import Arc, Ask
from hubbub.random.source import Random
from tests.vectors import make_admits

VECTORS = Path(__file__).parents[1] / "vectors"

KNOWN = json.loads((VECTORS / "admits.json").read_text())


@pytest.mark.parametrize("case", KNOWN["admits"], ids=lambda case: case["name"])
def test_an_ask_is_admitted_or_refused_for_a_reason(case: dict[str, Any]) -> None:
    terms, ask = Terms.from_spec(case["terms"], "popular"), Ask.from_spec(case["ask"])
    place = {name: case[name] for name in ("run", "round", "part")}
    theirs = {"elsewhere": make_admits.Elsewhere()}
    fields = {name: theirs.get(spec["kind"]) or Domain.from_spec(spec) for name, spec in case["fields"].items()}
    assert admits(terms, ask, **place, minimum_arc=case["minimum_arc"], fields=fields) == case["says"]


@pytest.mark.parametrize("case", KNOWN["admits_parts"], ids=lambda case: case["name"])
def test_parts_are_admitted_together_or_not_at_all(case: dict[str, Any]) -> None:
    terms = Terms.from_spec(case["terms"], "popular")
    asks = [Ask(mechanism=make_admits.GRR, step=0, cohort=Arc(**arc)) for arc in case["arcs"]]
    assert admits_parts(terms, asks, minimum_arc=case["minimum_arc"]) == case["says"]


@pytest.mark.parametrize("case", KNOWN["matches"], ids=lambda case: json.dumps([case["pattern"], case["given"]]))
def test_a_pattern_stands_for_what_it_says(case: dict[str, Any]) -> None:
    assert matches(case["pattern"], case["given"]) is case["says"]


def test_what_fits_is_read_by_the_mechanism_and_what_does_not_is_refused() -> None:
    """Whatever is admitted, every value has an answer: no value reveals itself by an error."""
    values: dict[str, Any] = {"kind": [0, 3, 99], "sets": [(), (0, 1, 2, 3), (7,)], "record": [{}, {"theme": 1}]}
    admitted = 0
    for view, row in zip(make_admits.VIEWS, KNOWN["families"]["says"], strict=True):
        for mechanism, says in zip(make_admits.FITTED, row, strict=True):
            if says is not None:
                assert says == "mechanism"
                continue
            admitted += 1
            shape = "sets" if "subset" in view.spec()["kind"] else "record" if "joint" in str(view.spec()) else "kind"
            rng = Random(seed=1)
            assert len(mechanism.randomize(view.look(values[shape], rng), rng)) == len(values[shape])
    assert admitted > 40


def test_what_a_mechanism_of_another_package_reads_is_its_domain_or_unknown() -> None:
    class Theirs(hb.GRR):
        """Its spec has names of ours that mean something else."""

        def spec(self) -> dict[str, Any]:
            return {**super().spec(), "domain": "ours", "dimension": 1}

    def says(mechanism: Any) -> str | None:
        terms = replace(make_admits.PLAIN, mechanisms=(mechanism.spec_id,))
        return admits(terms, Ask(mechanism=mechanism, step=7), fields={"theme": Ordinal(3)})

    assert says(Theirs(epsilon=1.0, domain=4)) is None
    small = Theirs(epsilon=1.0, domain=3)
    assert says(small) == "mechanism"
    object.__setattr__(small, "domain", "unknown")
    assert says(small) is None


def test_the_vectors_are_those_that_are_made() -> None:
    assert make_admits.vectors() == KNOWN


def test_every_reason_has_a_vector() -> None:
    words = {case["says"] for case in (*KNOWN["admits"], *KNOWN["admits_parts"])}
    assert words == {None, "run", "round", "part", "arc", "view", "mechanism", "state", "size", "limit", "parts"}


@pytest.mark.parametrize("case", KNOWN["terms"], ids=lambda case: json.dumps(case["terms"]["views"][0]["n"]))
def test_a_view_with_bounds_that_are_none_is_refused(case: dict[str, Any]) -> None:
    assert make_admits.readable(case["terms"]) is case["says"]
