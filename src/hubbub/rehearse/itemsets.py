"""A rehearsal of mining: sets of items read from a file, and what a private study would find among them."""

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.domain.sets import ItemSets, as_item_sets
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.itemsets.findings import Findings
from hubbub.protocols.itemsets.study import mine
from hubbub.protocols.views.sets import Subsets
from hubbub.random.source import Random
from hubbub.rehearse.columns import MISSING, by_size, read_column
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet

LINES = (".dat", ".txt")
"""Files whose every line is a set."""


class NamedSets(NamedTuple):
    """The set of each person, as codes of items, and the names of the items."""

    labels: tuple[str, ...]
    people: ItemSets


def read_sets(
    path: Path, *, column: str | None = None, person: str | None = None, separator: str | None = None
) -> NamedSets:
    """Read sets of items. An item that is named twice in a set counts once; names are compared in NFC.

    Parameters
    ----------
    path
        A .dat or .txt file, in which each line is a person's set; or a .csv, .tsv, .jsonl, .ndjson or .parquet file.
    column
        The column whose cells name items, except for .dat and .txt files.
    person
        The column that names the person of a row, if a row names one item; unless given, a row is a person.
    separator
        The separator of the items of a line or a cell; white space unless given.
    """
    if path.suffix.lower() in LINES:
        if column is not None or person is not None:
            raise InvalidValue("column", column or person, f"nothing: each line of a {path.suffix} file is a set")
        return _coded(_split(_lines(path), separator))
    if column is None:
        raise InvalidValue("column", None, f"the column of the items, unless the file is one of {', '.join(LINES)}")
    cells = read_column(path, column)
    if person is None:
        texts = ["" if label == MISSING else label for label in cells.labels]
        parts = list(_split(texts, separator))
        return _coded([parts[code] for code in cells.codes])
    if separator is not None:
        raise InvalidValue("separator", separator, "nothing, if each row names one item")
    people = read_column(path, person)
    if people.missing:
        raise InvalidValue(person, MISSING, "a person in every row")
    has_item = np.array([label != MISSING for label in cells.labels])
    labels = tuple(dict.fromkeys(_normal(label) for label in cells.labels if label != MISSING))
    code = {label: number for number, label in enumerate(labels)}
    items = np.array([code.get(_normal(label), -1) for label in cells.labels])[cells.codes]
    pairs = np.unique(np.stack([people.codes, items], axis=1)[has_item[cells.codes]], axis=0)
    return NamedSets(labels, _item_sets(len(people.labels), pairs, len(labels)))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InvalidValue("path", str(path), "a file that exists")
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InvalidValue("path", str(path), "a file in UTF-8") from None


def _split(texts: Iterable[str], separator: str | None) -> list[list[str]]:
    if separator == "":
        raise InvalidValue("separator", separator, "at least one character")
    return [[item for part in _normal(text).split(separator) if (item := part.strip())] for text in texts]


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _coded(sets: Sequence[Sequence[str]]) -> NamedSets:
    if not sets:
        raise InvalidValue("path", "no rows", "a file with at least one row")
    labels = tuple(sorted({item for items in sets for item in items}, key=by_size))
    code = {label: number for number, label in enumerate(labels)}
    owners = np.repeat(np.arange(len(sets)), [len(items) for items in sets])
    codes = np.fromiter((code[item] for items in sets for item in items), dtype=np.int64, count=owners.size)
    return NamedSets(labels, _item_sets(len(sets), np.unique(np.stack([owners, codes], axis=1), axis=0), len(labels)))


def _item_sets(n: int, pairs: Ints, items: int) -> ItemSets:
    """The sets from sorted and distinct rows of (person, item)."""
    if items < 2:
        raise InvalidValue("path", f"{items} different items", "a file of at least two")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))])
    return ItemSets(offsets, pairs[:, 1], domain=items)


def find_itemsets(
    sets: Any, *, k: int, epsilon: float, rng: Random, itemsets: bool = True, domain: Sets | None = None
) -> Findings:
    """Find the k most frequent itemsets, or items, of a batch of sets, one of each person.

    Each person answers once, with a report that spends epsilon, as in a study of the same people.

    Parameters
    ----------
    sets
        `ItemSets`, or a list of sets, in any order: people are put on the circle at random.
    itemsets
        Whether to search for sets of several items (SVSM), or for single items only (SVIM).
    domain
        The domain of the sets; needed unless `ItemSets` are given.
    """
    if domain is None:
        if not isinstance(sets, ItemSets):
            raise InvalidValue("domain", None, "given, if the sets are a list")
        domain = Sets(Ordinal(sets.domain), sets.domain)
    people = as_item_sets(sets, domain)
    if not len(people):
        raise InvalidValue("sets", [], "at least one")
    fleet = Fleet(SetStream(people[rng.permutation(len(people))]), rng)
    results: list[Findings] = []

    def study() -> Protocol:
        findings = yield from mine(domain, epsilon=epsilon, k=k, itemsets=itemsets)
        results.append(findings)
        yield findings.release()

    for _release in converse(study(), fleet.answer):
        pass
    return results[0]


def true_shares(people: ItemSets, sets: tuple[tuple[int, ...], ...]) -> Floats:
    """The true share of the people who have each of some itemsets."""
    order = sorted(set(sets))
    if not order:
        return np.zeros(0)
    counts = np.zeros(len(order), dtype=np.int64)
    for start in range(0, len(people), _CHUNK):
        counts += Subsets(tuple(order)).contained(people[slice(start, start + _CHUNK)]).sum(axis=1)
    places = {items: place for place, items in enumerate(order)}
    return np.asarray(counts[[places[items] for items in sets]] / len(people))


_CHUNK = 1 << 17
