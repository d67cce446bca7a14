"""Sealed documents: only a trusted key and the canonical spelling are accepted."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.authoring import UnsafeCollection, open_collection
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.collection import Keys, open_sealed, seal
from hubbub.collection.sealing import sign, tag_of, verify
from hubbub.core.domain import Numeric
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.questions.collection import Collection
from tests.collection.conftest import make

KEYS, OTHER = Keys(b"k" * 32), Keys(b"o" * 32)
SPEC: dict[str, Any] = {"step": 3, "epsilon": 0.5, "names": ["é", "😂"], "large": 10**17, "none": None}
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(plain)
def test_what_is_sealed_is_opened(value: Any) -> None:
    document = json.loads(json.dumps(seal(value, KEYS.private)))
    assert open_sealed(document, KEYS.public) == value


def test_large_integers_are_text_and_large_floats_are_not() -> None:
    opened = open_sealed(seal({**SPEC, "float": 1e17}, KEYS.private), KEYS.public)
    assert (opened["large"], opened["float"]) == (str(10**17), 1e17)
    collection = make(fields={**make().fields, "seconds": Numeric(0.0, 1e18, cells=8)})
    assert open_collection(seal(collection.spec(), KEYS.private), KEYS.public) == collection


def test_a_known_signature() -> None:
    """RFC 8032, section 7.1, test 2."""
    private = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert Keys(private).public == public
    assert sign(b"\x72", private).hex() == signature
    assert verify(b"\x72", bytes.fromhex(signature), public)
    assert not verify(b"\x73", bytes.fromhex(signature), public)
    assert not verify(b"\x72", b"short", public)
    assert not verify(b"\x72", bytes.fromhex(signature), b"short")


def test_one_of_several_trusted_keys() -> None:
    document = seal(SPEC, OTHER.private)
    assert open_sealed(document, [KEYS.public, OTHER.public])["step"] == 3
    with pytest.raises(DecodeError, match="trusted"):
        open_sealed(document, [KEYS.public])
    with pytest.raises(DecodeError, match="trusted"):
        open_sealed(document, [])


def test_a_tag_is_of_the_key_and_of_what_was_signed_alone() -> None:
    document = seal(SPEC, KEYS.private)
    assert tag_of({**document, "signature": "00" * 64}) == tag_of(document)
    assert len({tag_of(document), tag_of(seal(SPEC, OTHER.private)), tag_of(seal({"step": 4}, KEYS.private))}) == 3


GOOD = seal(SPEC, KEYS.private)


def signed(payload: str) -> dict[str, str]:
    """Signed by the right key: only the spelling is wrong."""
    return {**GOOD, "payload": payload, "signature": sign(payload.encode(), KEYS.private).hex()}


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "sealed",
        {},
        {**GOOD, "more": 1},
        {key: value for key, value in GOOD.items() if key != "key"},
        {**GOOD, "payload": GOOD["payload"] + " "},
        {**GOOD, "payload": GOOD["payload"].replace("3", "4")},
        {**GOOD, "payload": 3},
        {**GOOD, "payload": "\ud800"},
        {**GOOD, "key": OTHER.public.hex()},
        {**GOOD, "key": GOOD["key"].upper()},
        {**GOOD, "key": GOOD["key"][2:]},
        {**GOOD, "key": None},
        {**GOOD, "signature": "00" * 64},
        {**GOOD, "signature": GOOD["signature"][2:]},
        {**GOOD, "signature": seal({"step": 4}, KEYS.private)["signature"]},
        {**seal(SPEC, OTHER.private), "key": GOOD["key"]},
        signed('{"step": 3}'),
        signed('{"step":3.0}'),
        signed('{"step":3,"step":3}'),
        signed('{"b":1,"a":2}'),
        signed("{"),
        signed("NaN"),
        signed(""),
        signed("[" * 100_000),
        signed("9" * 5000),
        signed("9" * 400),
    ],
)
def test_anything_else_is_refused(document: Any) -> None:
    with pytest.raises(DecodeError):
        open_sealed(document, KEYS.public)


@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_changed_letter_is_seen(part: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(GOOD[part]) - 1))
    letter = data.draw(st.characters(exclude_categories=["Cs"]).filter(lambda letter: letter != GOOD[part][place]))
    harmed = GOOD[part][:place] + letter + GOOD[part][place + 1 :]
    with pytest.raises(DecodeError):
        open_sealed({**GOOD, part: harmed}, KEYS.public)


def test_a_device_opens_a_collection_that_is_safe(everything: Collection) -> None:
    assert open_collection(json.loads(json.dumps(seal(everything.spec(), KEYS.private))), KEYS.public) == everything
    unsafe = read_collection(EXAMPLE.replace("= 1.0", "= 9.0"))
    with pytest.raises(UnsafeCollection):
        open_collection(seal(unsafe.spec(), KEYS.private), KEYS.public)
    with pytest.raises(InvalidValue):
        open_collection(seal({**make().spec(), "trust": "shuffle"}, KEYS.private), KEYS.public)
    with pytest.raises(DecodeError):
        open_collection(seal(everything.spec(), OTHER.private), KEYS.public)


def test_keys_are_kept_to_their_owner(tmp_path: Path) -> None:
    path = tmp_path / "key"
    KEYS.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Keys.load(path) == KEYS
    with pytest.raises(FileExistsError):
        OTHER.save(path)
    assert Keys.load(path) == KEYS
    path.write_text("no key")
    with pytest.raises(InvalidValue, match="64 hexadecimal digits"):
        Keys.load(path)


def test_a_private_key_is_never_shown() -> None:
    assert KEYS.private.hex() not in repr(KEYS)
    assert Keys.new() != Keys.new()
    with pytest.raises(InvalidValue) as refused:
        Keys(b"too short, and secret")
    assert "secret" not in str(refused.value)
