"""What a question cannot ask is refused by the name of its key."""

from typing import Any

import pytest

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.questions import Question
from tests.questions.settings import placed

FARE, START = Numeric(0.0, 80.0, cells=16), Numeric(0.0, 1.0, cells=4)
BIT, OS, NINE = Categorical(["a", "b"]), Categorical(["13", "14", "15"]), Sets(Ordinal(9), most=2)
FEATURES, BASKETS = Sets(Categorical(["bold", "table", "link", "undo"]), most=2), Sets(Ordinal(500), most=30)
WORD = Strings(longest=4)

Refusal = tuple[dict[str, Any], tuple[Domain, ...], str]
DISTRIBUTIONS: list[Refusal] = [
    ({}, (BIT,), "field"),
    ({"mechanism": "Hybrid"}, (FARE,), "mechanism"),
    ({"quantiles": [1.5]}, (FARE,), "quantiles"),
    ({"quantiles": []}, (FARE,), "quantiles"),
    ({}, (Numeric(0.0, 1.0, cells=2000),), "cells"),
]
RELEASES: list[Refusal] = [
    ({"r": 4}, (BIT,), "field"),
    ({"r": 4}, (Numeric(-1.0, 1.0, cells=4),), "field"),
    ({"r": 4, "mechanism": "Hybrid"}, (START,), "mechanism"),
    ({"r": 0}, (START,), "r"),
    ({"r": 4, "every": -1}, (START,), "every"),
]
HISTOGRAMS: list[Refusal] = [
    ({"of": "cells"}, (FEATURES,), "of"),
    ({"of": "size"}, (Ordinal(3),), "of"),
    ({"mechanism": "GRR"}, (FEATURES,), "mechanism"),
    ({"mechanism": "ExSub"}, (FEATURES,), "mechanism"),
    ({"mechanism": "PSFO"}, (Ordinal(3),), "mechanism"),
    ({"mechanism": "PrivSet"}, (Numeric(0, 9, cells=3),), "mechanism"),
    ({"candidates": ("bold",)}, (FEATURES,), "candidates"),
    ({"by": "value"}, (BIT,), "by"),
    ({"by": []}, (BIT,), "by"),
    ({"by": ["os", "os"]}, (BIT, OS, OS), "by"),
    ({"by": "os", "candidates": ["a"]}, (BIT, OS), "candidates"),
    ({"by": "os"}, (BIT, NINE), "by"),
    ({"by": "os"}, (NINE, OS), "field"),
    ({"by": "os"}, (BIT, Ordinal(5000)), "by"),
    ({"by": "os", "mechanism": "Hybrid"}, (BIT, OS), "mechanism"),
]
ITEMSETS: list[Refusal] = [
    ({"k": 1}, (BASKETS,), "k"),
    ({"k": 0, "of": "items"}, (BASKETS,), "k"),
    ({"k": 1 << 13}, (BASKETS,), "k"),
    ({"of": "pairs"}, (BASKETS,), "of"),
    ({"start": "tomorrow"}, (BASKETS,), "start"),
    ({"start": "2026-12-01T00:00"}, (BASKETS,), "start"),
    ({"start": "1969-12-01T00:00Z"}, (BASKETS,), "start"),
    ({"round": "0d"}, (BASKETS,), "round"),
    ({"round": "soon"}, (BASKETS,), "round"),
    ({"every": "never"}, (BASKETS,), "every"),
    ({"turns": 2}, (BASKETS,), "turns"),
    ({"turns": 0, "every": "30d"}, (BASKETS,), "turns"),
    ({"epsilon": -1.0}, (BASKETS,), "epsilon"),
    *(({}, (domain,), "field") for domain in (Ordinal(9), BIT, START, Sets(Ordinal(1 << 21), 9))),
]
WORDS: list[Refusal] = [
    ({"k": 0}, (WORD,), "k"),
    ({"longest": 9}, (WORD,), "longest"),
    ({"longest": 2}, (Ordinal(99),), "longest"),
    ({}, (BIT,), "domain"),
    ({"query_limit": 2}, (WORD,), "query_limit"),
    ({"branching": "words"}, (WORD,), "branching"),
    ({"threshold": 1.5}, (WORD,), "threshold"),
    ({"every": "1s"}, (WORD,), "every"),
    ({"turns": 0}, (WORD,), "turns"),
    ({"start": "tomorrow"}, (WORD,), "start"),
]
FOUND: list[Refusal] = [
    ({"range": "wide"}, (START,), "range"),
    ({"search": 0.0}, (START,), "search"),
    ({"search": 0.95}, (START,), "search"),
    ({"mechanism": "Hybrid"}, (START,), "mechanism"),
    ({}, (Numeric(-1.0, 1.0, cells=4),), "field"),
    ({}, (BIT,), "field"),
]
STUDY = {"epsilon": 2.0, "start": "2026-12-01T00:00Z"}
TABLE: list[tuple[str, dict[str, Any], list[Refusal]]] = [
    ("distribution", {}, DISTRIBUTIONS),
    ("release", {}, RELEASES),
    ("histogram", {}, HISTOGRAMS),
    ("itemsets", STUDY, ITEMSETS),
    ("top", {"k": 3, "round": "1h", "query_limit": 1 << 13, **STUDY}, WORDS),
    ("mean", {"range": "auto"}, FOUND),
    ("stream", {"range": "auto", "method": "LPU", "w": 4}, [*FOUND, ({"of": "cells"}, (START,), "of")]),
    ("mean", {"search": 0.5}, [({}, (START,), "search")]),  # of nothing
    ("mean", {"by": "os"}, [({}, (BIT, OS), "field")]),  # only numbers have a mean
]


@pytest.mark.parametrize(
    ("kind", "keys", "domains", "field"),
    [(kind, {**usual, **keys}, domains, field) for kind, usual, rows in TABLE for keys, domains, field in rows],
)
def test_what_cannot_be_asked_is_refused_by_name(kind, keys, domains, field) -> None:
    with pytest.raises(InvalidValue) as refused:  # noqa: PT012 - when it is made, or when its fields are known
        question = Question.make(kind, **{"field": "value", "epsilon": 1.0, **keys})
        placed(question, *domains).check()
    assert refused.value.field == field
