"""`hubbub promise`: the text, the short form, the document, and the record of a registry."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hubbub.authoring import load_collection, promise
from hubbub.authoring.guarantees import guarantees_of
from hubbub.authoring.toml import EXAMPLE
from tests.authoring.test_shuffle import TEXT as SHUFFLED
from tests.cli.commands import Hubbub

EXAMPLES = Path(__file__).parents[2] / "examples"
COLLECTIONS = sorted(EXAMPLES.glob("*.toml"))


class Outline(HTMLParser):
    """The elements that are open at the end, and all text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def document(hubbub: Hubbub, tmp_path: Path, *args: object) -> str:
    target = tmp_path / "promise.html"
    assert hubbub("promise", *args, "--html", target).exit_code == 0
    outline = Outline(target.read_text(encoding="utf-8"))
    assert outline.open == []
    return outline.text


def test_the_text_is_that_of_check(hubbub: Hubbub):
    file = EXAMPLES / "telemetry.toml"
    shown = " ".join(hubbub.shown("promise", file).split())
    assert shown == " ".join(promise(load_collection(file)).split())


@pytest.mark.parametrize("file", COLLECTIONS, ids=lambda file: file.stem)
def test_every_example_has_a_document_of_its_own(file: Path, hubbub: Hubbub, tmp_path: Path):
    text, collection = document(hubbub, tmp_path, file), load_collection(file)
    assert collection.collection_id in text
    for heading in ("What an observer can learn", "What leaves the device", "What is not covered", "Signature"):
        assert heading in text
    for name in collection.questions:
        assert len(re.findall(name, text)) >= 3  # examples of two values, and the promise
    assert "Who must work together" not in text
    assert f"at least {collection.minimum_batch:,} people" in hubbub.shown("promise", file, "--short")


def test_a_shuffled_one_says_who_must_work_together(hubbub: Hubbub, tmp_path: Path):
    text = document(hubbub, tmp_path, hubbub.write("shuffled.toml", SHUFFLED))
    assert "the collector and all shufflers but one" in text
    record = hubbub.answer("promise", hubbub.write("shuffled.toml", SHUFFLED))
    numbers = guarantees_of(load_collection(SHUFFLED))
    assert record["flavor"] == "Approximate DP"
    assert record["central"] == {"epsilon_year": numbers.central_year, "delta": numbers.delta}


def test_the_version_before_is_compared(hubbub: Hubbub, tmp_path: Path):
    old = hubbub.write("old.toml", EXAMPLE.replace("event = 1.0", "event = 2.0"))
    new = hubbub.write("new.toml", EXAMPLE.replace("version = 1", "version = 2"))
    text = document(hubbub, tmp_path, new, "--against", old)
    assert "What version 1 said" in text
    assert "budget.event" in text
    assert "--against" in hubbub.refused("promise", new, "--against", old)


def test_an_unsafe_collection_promises_nothing(hubbub: Hubbub, tmp_path: Path):
    file = hubbub.write("bad.toml", EXAMPLE.replace("= 1.0", "= 9.0"))
    assert "questions.popular.epsilon" in hubbub.refused("promise", file, "--html", tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_the_short_form_promises_nothing_that_is_not_kept(hubbub: Hubbub):
    daily = EXAMPLE.replace('step = "1h"', 'step = "1d"')
    assert "at most 73.2% sure of either. Over a longer time there is no such limit" in hubbub.shown(
        "promise", hubbub.write("daily.toml", daily), "--short"
    )
    limited = hubbub.write("limited.toml", daily.replace("event = 1.0", "event = 1.0\nuser = 2.0"))
    assert "In all your life, nobody can become more than 88.1% sure." in hubbub.shown("promise", limited, "--short")


def test_names_are_escaped(hubbub: Hubbub, tmp_path: Path):
    file = hubbub.write("odd.toml", EXAMPLE.replace("Light or dark?", "<script>alert(1)</script>"))
    assert "<script>alert(1)</script>" in document(hubbub, tmp_path, file)  # as text


def test_a_record_is_pure_where_nothing_is_shuffled(hubbub: Hubbub):
    record = hubbub.answer("promise", hubbub.write("themes.toml", EXAMPLE))
    assert (record["flavor"], record["model"], record["privacy_unit"]) == ("Pure DP", "Local", "User-year")
    assert record["event_epsilon"] == pytest.approx(1.0, rel=1e-3)
    assert record["central"] is None
