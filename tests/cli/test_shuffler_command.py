"""`hubbub shuffler` of a collection: keys, and what a wrong configuration says."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.shuffler.config import ShufflerKeys


def test_what_is_printed_goes_into_a_collection(hubbub: Callable[..., Any], tmp_path: Path) -> None:
    """The collector's part and two shufflers' make a route; each key is in a file that only its owner reads."""
    output = hubbub("shuffler", "collector-key", "--keys", tmp_path / "keys").stdout
    assert hubbub("shuffler", "collector-key", "--keys", tmp_path / "keys").stdout == output  # made once
    output += "delta = 1e-6\nleast = 100\nfakes = 5\n"
    for number in range(2):
        options = ["--url", f"https://shuffler-{number}.example"]
        output += hubbub("shuffler", "own-keys", tmp_path / f"{number}.key", *options).stdout
    route = ShuffleRoute.from_spec(tomllib.loads(output)["shuffle"])
    keys = ShufflerKeys.load(tmp_path / "1.key")
    assert route.place_of(keys.encryption.public, keys.signing.public) == 1
    assert {(tmp_path / name).stat().st_mode & 0o77 for name in ("0.key", "1.key", "keys/onion.key")} == {0}
    assert "a file that is not there yet" in hubbub("shuffler", "own-keys", tmp_path / "1.key").stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("collection = 3", "collection: got 3"),
        ('colection = "a"', "colection"),
        ("[", "a TOML file"),
        (
            'collection = "a"\ncollector = "http://localhost:9"\npublic_key = "00"\nkey = "a.key"\nstore = "a.db"',
            "public_key",
        ),
    ],
    ids=["a number", "a wrong key", "no TOML", "a short key"],
)
def test_a_wrong_configuration_says_what_is_wrong(
    refused: Callable[..., str], tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "a.toml").write_text(text)
    assert message in refused("shuffler", "serve", "--config", tmp_path / "a.toml")
