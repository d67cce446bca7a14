import json
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.domain import DOMAINS as KINDS
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings, as_domain
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.hashing import fingerprint
from hubbub.core.spec import canonical

DOMAINS = [
    Ordinal(5),
    Ordinal(1 << 32),
    Categorical(["a", "b", "\U0001f389"]),
    Numeric(-1.5, 2.5, cells=8),
    Numeric(0, 10, cells=2),
    Numeric(0, 1e17, cells=2),
    Strings(longest=12),
    Sets(Ordinal(9), most=3),
    Sets(Categorical(["x", "y"]), most=2),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_specs_round_trip(domain: Domain):
    spec = json.loads(json.dumps(domain.spec()))
    assert Domain.from_spec(spec) == domain
    assert hash(Domain.from_spec(spec)) == hash(domain)
    assert as_domain("domain", spec) == domain
    again = Domain.from_spec(json.loads(canonical(domain.spec())))
    assert canonical(again.spec()) == canonical(domain.spec())


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_a_domain_is_frozen(domain: Domain):
    with pytest.raises(AttributeError):
        domain.size = 7


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["size", "names", "low", "high", "cells", "longest", "items", "most"]


@settings(max_examples=60)
@given(st.sampled_from([*KINDS, "nothing"]) | json_values, st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_hostile_specs_are_refused_and_nothing_else_happens(kind: Any, fields: dict[str, Any]):
    try:
        domain = Domain.from_spec({"kind": kind, **fields})
    except HubbubError:
        return
    assert isinstance(domain, Domain)


@pytest.mark.parametrize("kind", ["ordinal", "categorical", "numeric", "strings", "sets"])
def test_fields_must_be_all_there_and_no_more(kind: str):
    spec = next(domain.spec() for domain in DOMAINS if domain.spec()["kind"] == kind)
    with pytest.raises(InvalidValue, match="exactly the fields"):
        Domain.from_spec({**spec, "surplus": 1})
    for name in spec:
        with pytest.raises(InvalidValue):
            Domain.from_spec({key: value for key, value in spec.items() if key != name})


@pytest.mark.parametrize(
    ("value", "domain"),
    [(5, Ordinal(5)), (np.int32(5), Ordinal(5)), (["a", "b"], Categorical(["a", "b"])), (Ordinal(3), Ordinal(3))],
)
def test_shorthand(value: Any, domain: Domain):
    assert as_domain("domain", value) == domain


@pytest.mark.parametrize(
    "value", [None, 1, 0, -3, True, 2.0, "ab", b"ab", [], ["a"], ["a", "a"], ["a", 1], object(), (1 << 32) + 1]
)
def test_what_is_no_domain_is_refused(value: Any):
    with pytest.raises(InvalidValue, match="domain"):
        as_domain("domain", value)


# -- codes ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 8)))
def test_ordinal_codes_are_the_values(values: list[int]):
    assert Ordinal(9).encode(values).tolist() == values
    assert Ordinal(9).encode(np.array(values, dtype=np.uint8)).tolist() == values


OUTSIDE: list[tuple[Domain, list[Any]]] = [
    (Ordinal(9), [[-1], [9], [0, 9], [0.0], ["1"], [None], [True], [[1, 2]], [[1], [2, 3]], [1 << 70], None, {1}]),
    (Ordinal(9), [np.array([1 << 63], dtype=np.uint64)]),
    (Categorical(["red", "green"]), [["Red"], ["red", ""], [0], [None], [["red"]], 5, None, "r"]),
    (Numeric(-1.5, 2.5, cells=8), [[math.nan], [math.inf], [-1.51], [2.51], ["1"], [None], [[0.0]], [1j], [[0.1], []]]),
    (Strings(longest=12), [["x" * 13], ["\u20ac" * 5], [5], [None], [b"a"], None, 7, b"bytes", {"a": 1}, ["\ud800"]]),
    (Sets(Ordinal(9), most=3), [5, None, [5], [None], [{9}], [{-1}], [[1, 1]], [{1, 2, 3, 4}], ["12"], [{0.5}]]),
]


@pytest.mark.parametrize(("domain", "values"), [(each, values) for each, some in OUTSIDE for values in some], ids=ascii)
def test_what_is_not_in_a_domain_is_refused(domain: Domain, values: Any):
    with pytest.raises(InvalidValue, match="red" if isinstance(domain, Categorical) else "values"):
        domain.encode(values)


def test_one_value_is_a_batch_of_one():
    single: list[tuple[Domain, Any, int]] = [
        (Ordinal(9), 4, 4),
        (Categorical(["a", "b"]), "b", 1),
        (Numeric(0, 1, cells=2), 0.7, 1),
        (Strings(longest=5), "hello", fingerprint("hello")),
    ]
    for domain, value, code in single:
        assert domain.encode(value).tolist() == [code]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_no_values_are_an_empty_batch(domain: Domain):
    assert len(domain.encode([])) == 0


def test_categorical_codes():
    colours = Categorical(["red", "green", "blue"])
    assert colours.encode(np.array(["blue", "red"])).tolist() == [2, 0]
    assert colours.encode(("green",)).tolist() == [1]
    assert colours.labels == ("red", "green", "blue")


@given(st.floats(-1.5, 2.5))
def test_numeric_cells_hold_their_values(number: float):
    domain = Numeric(-1.5, 2.5, cells=8)
    (cell,) = domain.encode([number])
    assert domain.edges[cell] <= number <= domain.edges[cell + 1]
    assert len(domain.labels) == 8


RANGES = [(0, 0, 2), (1, 0, 2), (0, math.inf, 2), (math.nan, 1, 2), (0, 1, 1), (0, 1, 2.0)]


@pytest.mark.parametrize(("low", "high", "cells"), [*RANGES, (-1.7e308, 1.7e308, 4), (0, 10**400, 4)])
def test_ranges_that_are_none_are_refused(low: Any, high: Any, cells: Any):
    with pytest.raises(InvalidValue):
        Numeric(low, high, cells=cells)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3)))
def test_strings_are_fingerprints(words: list[str]):
    assert Strings(longest=12).encode(words).tolist() == [fingerprint(word) for word in words]


def test_sets_are_padded_and_sorted():
    codes = Sets(Ordinal(9), most=3).encode([{8, 1}, [3], frozenset(), np.array([0, 2, 4])])
    assert codes.tolist() == [[1, 8, -1], [3, -1, -1], [-1, -1, -1], [0, 2, 4]]
    assert Sets(Categorical(["x", "y"]), most=2).encode([{"y"}]).tolist() == [[1, -1]]


@pytest.mark.parametrize(("items", "most"), [(Strings(5), 2), (Ordinal(4), 0), (Ordinal(4), 5), (4, 2)])
def test_sets_need_a_domain_with_a_size(items: Any, most: int):
    with pytest.raises(InvalidValue):
        Sets(items, most=most)


@dataclass(frozen=True)
class EvenNumbers(Domain):
    """The even numbers below 2 size: a kind of domain that is defined outside of `hubbub.core.domain`."""

    kind: ClassVar[str] = "even"
    size: int

    def encode(self, values: Any) -> Any:
        return np.array(values, dtype=np.int64) // 2

    def describe(self) -> str:
        return f"even numbers below {2 * self.size}"


def test_a_new_kind_of_domain_is_one_class_and_its_name():
    assert "even" not in KINDS
    KINDS["even"] = EvenNumbers
    try:
        domain = Domain.from_spec({"kind": "even", "size": 5})
        assert domain == EvenNumbers(5)
        assert Domain.from_spec(domain.spec()) == domain
        assert (domain.code(4), domain.missing()) == (2, 5)
        assert Sets(domain, most=2).spec()["items"] == {"kind": "even", "size": 5}
    finally:
        del KINDS["even"]
    with pytest.raises(InvalidValue, match="one of ordinal"):
        Domain.from_spec({"kind": "even", "size": 5})


def test_a_kind_is_loaded_when_its_name_is_first_used():
    script = """
import sys
from hubbub.core.domain import Domain
def loaded():
    return sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith("hubbub.core.domain."))
before = loaded()
Domain.from_spec({"kind": "numeric", "low": 0, "high": 1, "cells": 2})
print(before, loaded())
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "['base'] ['base', 'numeric']"
