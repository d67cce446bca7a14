"""A collection's file: what it may say, and the exact place of what it may not."""

from pathlib import Path

import pytest

from hubbub.authoring import UnsafeCollection, load_collection, read_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection.time import duration_text, every, seconds_of
from hubbub.core.domain import Categorical, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_good_to_serve(path: Path) -> None:
    collection = load_collection(path)
    assert collection.name == path.stem
    assert load_collection(str(path)) == collection
    assert load_collection(path.read_text(encoding="utf-8")) == collection


def test_the_telemetry_example_has_every_kind() -> None:
    collection = load_collection(next(path for path in EXAMPLES if path.stem == "telemetry"))
    assert {type(domain) for domain in collection.fields.values()} == {Categorical, Ordinal, Numeric, Strings, Sets}
    assert {question.kind for question in collection.questions.values()} == {"histogram", "mean", "stream", "memo"}


def test_what_is_left_out() -> None:
    collection = load_collection(EXAMPLE)
    assert (collection.trust, collection.origin, collection.retention_days) == ("local", 0, 90)
    assert (collection.minimum_batch, collection.minimum_arc, dict(collection.overrides)) == (100, 4294967, {})


@pytest.mark.parametrize(
    ("written", "origin"),
    [("1970-01-01T00:01:00Z", 60), ("1970-01-01T02:00:00+01:00", 3600), ("77", 77)],
)
def test_origins(written: str, origin: int) -> None:
    assert load_collection(EXAMPLE.replace("[schedule]", f"[schedule]\norigin = {written}")).origin == origin


@pytest.mark.parametrize(
    ("text", "seconds"), [("1d", 86400), ("1h", 3600), ("10m", 600), ("30s", 30), ("0s", 0), ("90m", 5400)]
)
def test_durations(text: str, seconds: int) -> None:
    assert seconds_of("step", text) == seconds


@pytest.mark.parametrize("text", ["1", "h", "1 h", "1.5h", "-1h", "1w", "1hh", "", 60, None, True, "１h"])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(InvalidValue, match="schedule"):
        seconds_of("schedule.step", text)


def test_durations_in_words() -> None:
    assert [duration_text(seconds) for seconds in (0, 1, 60, 86400, 90000)] == [
        "0 days",
        "1 second",
        "1 minute",
        "1 day",
        "25 hours",
    ]
    assert every(86400) == "every day"


# What is put in the place of a line of the example, and where the error is found.
BROKEN = [
    ('name = "themes"', 'name = "The Mes"', "name"),
    ('name = "themes"', "name = 3", "name"),
    ('name = "themes"', "", "name"),
    ("version = 1", "version = 0", "version"),
    ("version = 1", "version = 1.5", "version"),
    ("version = 1", "version = true", "version"),
    ("version = 1", 'version = 1\ntrust = "shuffle"', "shuffle"),
    ("version = 1", 'version = 1\ntrust = "us"', "trust"),
    ("version = 1", "version = 1\ncolour = 3", "colour"),
    ("[schedule]", "[schedules]", "schedule"),
    ('step = "1h"', "step = 3600", "schedule.step"),
    ('step = "1h"', 'step = "1 hour"', "schedule.step"),
    ('step = "1h"', 'step = "0s"', "schedule.step"),
    ('step = "1h"', 'step = "999999999d"', "schedule.step"),
    ('lateness = "10m"', "", "schedule.lateness"),
    ('lateness = "10m"', 'lateness = "10m"\nlatenes = "5m"', "schedule.latenes"),
    ('lateness = "10m"', 'lateness = "10m"\nretention = "36h"', "schedule.retention"),
    ('lateness = "10m"', 'lateness = "10m"\nretention = "0d"', "schedule.retention"),
    ('lateness = "10m"', 'lateness = "10m"\norigin = 2025-01-01T00:00:00', "schedule.origin"),
    ('lateness = "10m"', 'lateness = "10m"\norigin = 2025-01-01', "schedule.origin"),
    ('lateness = "10m"', 'lateness = "10m"\norigin = 1.5', "schedule.origin"),
    ('lateness = "10m"', 'lateness = "10m"\norigin = 1970-01-01T00:00:00.5Z', "schedule.origin"),
    ('lateness = "10m"', 'lateness = "10m"\norigin = 1960-01-01T00:00:00Z', "schedule.origin"),
    ("event = 1.0", "", "privacy"),
    ("event = 1.0", "event = 0", "privacy.event"),
    ("event = 1.0", 'event = "much"', "privacy.event"),
    ("event = 1.0", "user = 1e9", "privacy.user"),
    ("event = 1.0", "window = 1.0", "privacy.window"),
    ("event = 1.0", "window = { epsilon = 1.0 }", "privacy.window.steps"),
    ("event = 1.0", "window = { epsilon = -1.0, steps = 3 }", "privacy.window.epsilon"),
    ("event = 1.0", "window = { epsilon = 1.0, steps = 0 }", "privacy.window.steps"),
    ("event = 1.0", "window = { epsilon = 1.0, steps = 3, more = 1 }", "privacy.window.more"),
    ("event = 1.0", "event = 1.0\nminimum_batch = 1.5", "privacy.minimum_batch"),
    ("event = 1.0", "event = 1.0\nminimum_batch = 0", "privacy.minimum_batch"),
    ("event = 1.0", "event = 1.0\nminimum_arc = 0", "privacy.minimum_arc"),
    ("event = 1.0", "event = 1.0\nminimum_arc = 1.5", "privacy.minimum_arc"),
    ("[fields.theme]", "[fields.Theme]", "fields"),
    ('kind = "categorical"', 'kind = "colour"', "fields.theme.kind"),
    ('kind = "categorical"', "", "fields.theme.kind"),
    ('kind = "categorical"', 'kind = "ordinal"', "fields.theme.size"),
    ('names = ["light", "dark"]', 'names = ["light", "light"]', "fields.theme.names"),
    ('names = ["light", "dark"]', 'names = ["light"]', "fields.theme.names"),
    ('names = ["light", "dark"]', 'names = ["light", 3]', "fields.theme.names"),
    ('names = ["light", "dark"]', 'names = "light"', "fields.theme.names"),
    ('names = ["light", "dark"]', 'names = ["light", "(none)"]', "fields.theme.names"),
    ('names = ["light", "dark"]', 'names = ["light", "dark"]\nsize = 2', "fields.theme.size"),
    ('kind = "histogram"', 'kind = "mean"', "questions.popular.field"),
    ('kind = "histogram"', 'kind = "pie"', "questions.popular.kind"),
    ('kind = "histogram"', 'kind = "stream"', "questions.popular.method"),
    ('kind = "histogram"', 'kind = "stream"\nmethod = "LPA"', "questions.popular.w"),
    ('kind = "histogram"', 'kind = "stream"\nmethod = "LPA"\nw = "long"', "questions.popular.w"),
    ('kind = "histogram"', 'kind = "memo"', "questions.popular.permanent"),
    ('kind = "histogram"', 'kind = "memo"\npermanent = 0.5', "questions.popular.permanent"),
    ('kind = "histogram"', 'kind = "histogram"\nmechanism = "OHL"', "questions.popular.mechanism"),
    ('field = "theme"', 'field = "them"', "questions.popular.field"),
    ("epsilon = 1.0", "epsilon = 0", "questions.popular.epsilon"),
    ("epsilon = 1.0", "epsilon = nan", "questions.popular.epsilon"),
    ("epsilon = 1.0", "epsilon = inf", "questions.popular.epsilon"),
    ("epsilon = 1.0", "epsilon = true", "questions.popular.epsilon"),
    ("epsilon = 1.0", "", "questions.popular.epsilon"),
    ("epsilon = 1.0", "epsilon = 1.0\nepsilom = 1.0", "questions.popular.epsilom"),
    ("epsilon = 1.0", "epsilon = 1.0\n[override]\neverything = 'mine'", "override.everything"),
    ("epsilon = 1.0", "epsilon = 1.0\n[override]\nepsilon_above_8 = 8", "override.epsilon_above_8"),
    ("epsilon = 1.0", "epsilon = 1.0\n[override]\nepsilon_above_8 = ''", "override.epsilon_above_8"),
    ("epsilon = 1.0", "epsilon = = 1.0", "collection"),
]
# What a further field says.
BROKEN_FIELDS = [
    ("kind = 'numeric'\nlow = 0\nhigh = 1", "fields.more.cells"),
    ("kind = 'numeric'\nlow = 1\nhigh = 0\ncells = 3", "fields.more.high"),
    ("kind = 'numeric'\nlow = 0\nhigh = 1\ncells = 1", "fields.more.cells"),
    ("kind = 'ordinal'\nsize = 1", "fields.more.size"),
    ("kind = 'strings'\nlongest = 0", "fields.more.longest"),
    ("kind = 'sets'\nmost = 2", "fields.more.items"),
    ("kind = 'sets'\nmost = 9\nitems = { kind = 'ordinal', size = 3 }", "fields.more.most"),
    ("kind = 'sets'\nmost = 1\nitems = { kind = 'ordinal', size = 1 }", "fields.more.items.size"),
    ("kind = 'sets'\nmost = 1\nitems = { kind = 'ordinal', size = 3, x = 1 }", "fields.more.items.x"),
    ("kind = 'sets'\nmost = 1\nitems = { kind = 'strings', longest = 3 }", "fields.more.items"),
]
BROKEN += [("[fields.theme]", f"[fields.more]\n{field}\n[fields.theme]", where) for field, where in BROKEN_FIELDS]


@pytest.mark.parametrize(
    ("line", "instead", "where"), BROKEN, ids=[f"{where}-{k}" for k, (*_, where) in enumerate(BROKEN)]
)
def test_an_error_names_its_place(line: str, instead: str, where: str) -> None:
    assert line in EXAMPLE
    with pytest.raises(InvalidValue) as refused:
        read_collection(EXAMPLE.replace(line, instead, 1))
    assert refused.value.field == where
    assert str(refused.value).startswith(f"{where}: got ")


def test_a_misspelt_key_is_guessed() -> None:
    with pytest.raises(InvalidValue, match="did you mean epsilon"):
        read_collection(EXAMPLE.replace("epsilon = 1.0", "epsilon = 1.0\nepsilom = 1.0"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing"):
        load_collection(tmp_path / "nothing.toml")


def test_an_unsafe_collection_is_read_and_not_loaded() -> None:
    text = EXAMPLE.replace("epsilon = 1.0", "epsilon = 9.0")
    assert read_collection(text).questions["popular"].epsilon == 9.0
    with pytest.raises(UnsafeCollection, match="epsilon 9 can make") as refused:
        load_collection(text)
    assert {finding.where for finding in refused.value.findings} == {"questions.popular.epsilon", "privacy.event"}
