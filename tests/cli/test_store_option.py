"""`--store`: no password on the command line, no files that are no stores; keys and settings of shufflers."""

import os
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.collection.shuffle_route import ObliviousRoute, ShuffleRoute
from hubbub.service.http.key_folder import KeyFolder
from hubbub.service.store.sqlite import SqliteStore
from hubbub.shuffle.dgk import DGKPublic
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.store import ShufflerStore
from tests.cli.commands import Hubbub

EXAMPLE = Path(__file__).parents[2] / "examples" / "emoji.toml"
NOBODY = "127.0.0.1:1/nothing?connect_timeout=2"


def started(hubbub: Hubbub, *command: object, **env: str) -> str:
    """The one line with which a program that does not start says why."""
    # A program that does not start ends with the ports that it took.
    done = hubbub.process(*command, before="import warnings; warnings.simplefilter('ignore', ResourceWarning);", **env)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr


def serve(hubbub: Hubbub, *options: object, **env: str) -> str:
    return started(hubbub, "serve", EXAMPLE, "--port", 0, "--keys", "keys", *options, **env)


@pytest.mark.parametrize(
    "url", [f"postgresql://me:secret@{NOBODY}", f"postgresql://{NOBODY}&password=secret", "sqlite://me:secret@/x.db"]
)
def test_a_password_on_the_command_line_is_refused(hubbub: Hubbub, url: str):
    message = hubbub.refused("serve", EXAMPLE, "--port", 0, "--keys", "keys", "--store", url)
    assert "no password on the command line" in message
    assert "HUBBUB_STORE" in message
    assert "secret" not in message
    assert not Path("keys").exists()


def test_a_password_comes_from_the_environment_and_without_one_the_command_line_counts(hubbub: Hubbub):
    message = serve(hubbub, HUBBUB_STORE=f"postgresql://me:secret@{NOBODY}")
    assert "connection failed" in message
    assert "secret" not in message
    assert "connection failed" in serve(hubbub, "--store", f"postgresql://me@{NOBODY}", HUBBUB_STORE="mysql://unused")


def noise(path: Path) -> None:
    path.write_bytes(b"no database" * 999)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def damaged_root(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(4096) + content[8192:])


def version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE meta SET value = 'later' WHERE key = 'version'")
        database.commit()


@pytest.mark.parametrize("damage", [noise, folder, cut, damaged_root, version])
def test_a_store_that_cannot_be_read_is_one_line(hubbub: Hubbub, tmp_path: Path, damage: Callable[[Path], None]):
    SqliteStore(tmp_path / "hubbub.db").close()
    ShufflerStore(tmp_path / "first.db").close()
    for name in ("hubbub.db", "first.db"):
        damage(tmp_path / name)
    store = ("--store", f"sqlite:///{tmp_path / 'hubbub.db'}")
    serve(hubbub, *store)
    hubbub.refused("backup", "backup", *store)
    assert not Path("backup").exists()
    settings = {"collection": "c", "collector": "http://127.0.0.1:9", "public_key": "0" * 64, "key": "first.key"}
    lines = [f'{name} = "{value}"\n' for name, value in {**settings, "store": "first.db"}.items()]
    started(hubbub, "shuffler", "serve", "--config", hubbub.write("first.toml", "".join(lines) + "port = 0"))


SHORT_KEY = 'collection = "a"\ncollector = "http://localhost:9"\npublic_key = "00"\nkey = "a.key"\nstore = "a.db"'


def test_what_is_printed_goes_into_a_collection(hubbub: Hubbub, tmp_path: Path) -> None:
    """The collector's part and two shufflers' make a route; each key is in a file that only its owner reads."""
    output = hubbub("shuffler", "collector-key", "--keys", "keys").stdout
    assert hubbub("shuffler", "collector-key", "--keys", "keys").stdout == output  # made once
    output += "delta = 1e-6\nleast = 100\nfakes = 5\n"
    for number in range(2):
        options = ["--url", f"https://shuffler-{number}.example"]
        output += hubbub("shuffler", "own-keys", tmp_path / f"{number}.key", *options).stdout
    route = ShuffleRoute.from_spec(tomllib.loads(output)["shuffle"])
    keys = ShufflerKeys.load(tmp_path / "1.key")
    assert route.place_of(keys.encryption.public, keys.signing.public) == 1
    assert {(tmp_path / name).stat().st_mode & 0o77 for name in ("0.key", "1.key", "keys/onion.key")} == {0}
    assert "a file that is not there yet" in hubbub("shuffler", "own-keys", tmp_path / "1.key").stderr


def test_the_homomorphic_key_that_is_printed_goes_into_a_collection(hubbub: Hubbub, tmp_path: Path) -> None:
    output = hubbub("shuffler", "collector-key", "--keys", tmp_path / "keys").stdout
    output += "delta = 1e-6\nleast = 100\nfakes = 5\n"
    printed = hubbub("shuffler", "homomorphic-key", "--keys", tmp_path / "keys").stdout
    assert hubbub("shuffler", "homomorphic-key", "--keys", tmp_path / "keys").stdout == printed  # made once
    output += printed
    for number in range(3):
        options = ["--url", f"https://shuffler-{number}.example"]
        output += hubbub("shuffler", "own-keys", tmp_path / f"{number}.key", *options).stdout
    route = ObliviousRoute.from_spec(tomllib.loads(output)["shuffle"])
    assert DGKPublic.of(route.homomorphic_key) == KeyFolder(tmp_path / "keys").homomorphic_key().public
    assert (tmp_path / "keys" / "homomorphic.key").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("collection = 3", "collection: got 3"),
        ('colection = "a"', "colection"),
        ("[", "a TOML file"),
        (SHORT_KEY, "public_key"),
    ],
    ids=["a number", "a wrong key", "no TOML", "a short key"],
)
def test_a_wrong_configuration_says_what_is_wrong(hubbub: Hubbub, text: str, message: str) -> None:
    assert message in hubbub.refused("shuffler", "serve", "--config", hubbub.write("a.toml", text))
