"""One spelling of a spec, in any language."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical, integer, spec_id

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "spec.json").read_text(encoding="utf-8"))
"""The browser's client is tested with the same.

"numbers" by their 64 bits are those of RFC 8785, appendix B. "values" are texts of JSON whose numbers any language
reads alike; keys are sorted by UTF-16 units: an emoji (a surrogate pair, d83d) before a letter at fb33. "integers" that
a browser's numbers cannot hold travel as decimal strings.
"""


@pytest.mark.parametrize("vector", VECTORS["numbers"], ids=lambda vector: vector["ieee754"])
def test_numbers(vector: dict[str, str]):
    (number,) = struct.unpack(">d", bytes.fromhex(vector["ieee754"]))
    assert canonical(number) == vector["canonical"]


@pytest.mark.parametrize("vector", VECTORS["values"], ids=lambda vector: ascii(vector["json"]))
def test_values(vector: dict[str, str]):
    assert canonical(json.loads(vector["json"])) == vector["canonical"]
    assert canonical(json.loads(vector["canonical"])) == vector["canonical"]
    assert spec_id(json.loads(vector["json"])) == vector["spec_id"]


@pytest.mark.parametrize("vector", VECTORS["integers"], ids=lambda vector: vector["integer"])
def test_integers(vector: dict[str, str]):
    number = int(vector["integer"])
    assert canonical(number) == vector["canonical"]
    assert integer("x", json.loads(canonical(number))) == number


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53) + 1, (1 << 53) - 1)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_the_spelling_means_the_value_and_is_its_own(value: Any):
    text = canonical(value)
    back = json.loads(text)
    assert back == value
    assert canonical(back) == text
    assert text == canonical(json.loads(json.dumps(value)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_bit_for_bit(number: float):
    assert float(canonical(number)) == number


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object(), {1: 2}, {"a": {1, 2}}, b"a", "\ud800", {"\udfff": 1}]
)
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(InvalidValue, match="spec"):
        canonical(value)


@pytest.mark.parametrize("value", ["", "-1", "1.0", "\u0661", "1" * 41, 1.0, True, None, [1], "0x10", " 1"])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(InvalidValue, match="other"):
        integer("other", value)


def test_ids_differ_where_specs_do():
    assert spec_id({"a": 1}) == spec_id({"a": 1.0}) != spec_id({"a": "1"})
    assert len(spec_id({})) == 32
