"""Values as strings of bits: normal forms, texts that are too long and impossible values, on device and server."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import FLH, GRR, OLH, Random
from hubbub.core.domain.texts import BitStrings, prefix_codes, text_words
from hubbub.core.errors import InvalidValue
from hubbub.privacy.audit import audit
from hubbub.protocols.heavy_hitters.prefixes import Integers, Texts
from hubbub.protocols.heavy_hitters.search import extended, string_words
from hubbub.protocols.views.basic import Prefix, View

LONGEST = 12
OPEN = OLH(epsilon=1.0, domain=BitStrings(64))


def test_twins_of_unicode_are_one_value():
    view = Prefix(bits=96, of=96)
    assert len(set(view(["caf\u00e9", "cafe\u0301"]).tolist())) == 1
    assert len(set(view(["caf\u00e9", "cafe"]).tolist())) == 2


@pytest.mark.parametrize("value", ["thirteen byte", "nul\0", "\ud800", b"\xc3", None, 3.5, ["a"]], ids=repr)
def test_what_cannot_be_written_is_one_symbol_that_no_text_is(value: object):
    view, none = Prefix(bits=96, of=96), Texts(LONGEST).absent()["(too long, or no text)"]
    assert view([value, "a"])[0] == prefix_codes(string_words([none], 96, 96), 96)[0]
    assert Texts(LONGEST).value(none) is None


@given(st.text(max_size=16), st.integers(1, 8 * LONGEST))
def test_the_search_hashes_what_the_device_hashes(text: str, bits: int):
    (code,) = Prefix(bits=bits, of=8 * LONGEST)([text])
    words = text_words([text], 8 * LONGEST)
    string = int.from_bytes(words.astype(">u8").tobytes(), "big") >> (64 * words.shape[1] - bits)
    known = bits // 2
    prefix, rest = string >> (bits - known), string & (1 << (bits - known)) - 1
    if bits - known <= 62:
        longer = extended(string_words([prefix], known, 8 * LONGEST), known, np.array([rest]), bits - known)
        assert prefix_codes(longer, bits)[0] == code
    assert prefix_codes(string_words([string], bits, 8 * LONGEST), bits)[0] == code


@given(st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text), st.integers(1, 8 * LONGEST))
def test_no_prefix_of_a_text_is_taken_for_impossible_and_the_text_comes_back(text: str, bits: int):
    texts, words = Texts(LONGEST), text_words([text], 8 * LONGEST)
    string = int.from_bytes(words.astype(">u8").tobytes(), "big") >> (64 * words.shape[1] - texts.bits)
    value = texts.value(string)
    assert texts.possible(words, bits).all() == (value is not None) or bits < 8
    if value is not None:
        assert text_words([value], texts.bits).tolist() == words.tolist()


def test_most_strings_are_no_texts():
    words = np.array([[int(word)] for word in np.random.default_rng(1).integers(0, 1 << 63, 1000)], dtype=np.uint64)
    assert Texts(8).possible(words << np.uint64(1), 64).mean() < 0.05


def test_integers_have_no_strings_beyond_their_size():
    few = Integers(4, size=9)
    assert few.possible(string_words(range(16), 4, 4), 4).tolist() == [True] * 9 + [False] * 7
    assert Prefix(bits=4, of=4)([20, -1, 9]).tolist() == [15, 15, 9]


def test_an_open_oracle_spends_exactly_what_it_says_and_finds_who_holds_what():
    assert audit(OPEN).epsilon <= 1.0
    codes = [7, 1 << 63, (1 << 64) - 1]
    values = np.repeat(np.array(codes, dtype=np.uint64), [6000, 3000, 1000])
    reports = OPEN.randomize(values, Random(seed=1))
    assert OPEN.accumulate(reports).counts.shape == (0,)
    estimate = OPEN.estimate(OPEN.support(reports, codes), codes)
    # Failure probability 3e-6 a value at five standard errors; the seed is fixed.
    assert (np.abs(estimate.value - [0.6, 0.3, 0.1]) < 5 * estimate.stderr).all()
    with pytest.raises(InvalidValue, match="candidates"):
        OPEN.estimate(OPEN.accumulate(reports))


def test_oracles_that_list_their_domain_take_no_open_one():
    for kind in (GRR, FLH):
        with pytest.raises(InvalidValue, match="domain"):
            kind(epsilon=1.0, domain=BitStrings(64))


@pytest.mark.parametrize("values", [[-1], [1.5], ["a"], [True], [1 << 64], [[1]]], ids=repr)
def test_codes_that_are_none_are_refused(values: Any):
    with pytest.raises(InvalidValue, match="values"):
        BitStrings(64).encode(values)
    with pytest.raises(InvalidValue, match="values"):
        BitStrings(8).encode([256])


def test_a_prefix_is_read_back_from_json_and_bounded():
    view = Prefix(bits=3, of=16)
    assert View.from_spec(view.spec()) == view
    with pytest.raises(InvalidValue, match="bits"):
        Prefix(bits=17, of=16)
