"""The rules of a collection whose reports are shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from hubbub.collection.document import Collection
from hubbub.collection.finding import Finding
from hubbub.collection.shuffle_route import MOST_BATCH_BYTES
from hubbub.questions.words import listed

_HERE = ("localhost", "127.0.0.1", "::1")


def shuffled_questions(collection: Collection) -> Iterator[Finding]:
    """What is asked can be shuffled: no report is known for the same device's as another, and fakes can be taken off.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> list(shuffled_questions(read_collection(EXAMPLE)))
        []
    """
    route = collection.shuffle
    if route is None:
        return
    linked = [name for name, each in collection.questions.items() if each.linked(collection.setting(name))]
    for name in linked:
        yield Finding(
            "error",
            f"questions.{name}",
            "its reports may be known for one device's, over several steps: that undoes the shuffle; ask it in a "
            'collection of trust "local"',
        )
    plain = [
        name
        for name, each in collection.questions.items()
        if route.fakes and name not in linked and not each.takes_fakes(collection.setting(name))
    ]
    if plain:
        yield Finding(
            "error",
            "shuffle.fakes",
            f"the estimates of {listed(plain)} cannot take fake reports off, which is done for histograms by GRR or "
            "local hashing whose reports are not kept: make fakes 0, or ask by another mechanism",
        )
    for name, terms in collection.terms.items():
        room = MOST_BATCH_BYTES // (terms.report_bytes + route.layer_bytes) - route.all_fakes
        if room < route.least:
            text = f"a batch of {name} has room for {max(room, 0):,} people's reports beside all fakes: too few"
            yield Finding("error", "shuffle.least", text)


def who_shuffles(collection: Collection) -> Iterator[Finding]:
    """How many have to be trusted, and whether their addresses are safe.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> list(who_shuffles(read_collection(EXAMPLE)))
        []
    """
    route = collection.shuffle
    if route is None:
        return
    if len(route.shufflers) == 1:
        text = "a single shuffler: if it works with the collector, only the local epsilon is left; two are better"
        yield Finding("warning", "shuffle.shufflers", text)
    hosts = [urlsplit(each.url) for each in route.shufflers]
    if len({host.netloc for host in hosts}) < len(hosts):
        yield Finding("warning", "shuffle.shufflers", "two of them are at one address, and so probably in one hand")
    if hosts[0].scheme == "http" and hosts[0].hostname not in _HERE:
        text = f"{hosts[0].netloc} is reached without TLS: whoever is on the way sees the ids of reports"
        yield Finding("warning", "shuffle.shufflers", text)
    if route.delta * route.least >= 1:
        text = f"{route.delta:g} would let one person's report of every batch of {route.least:,} be shown: far less"
        yield Finding("error", "shuffle.delta", text)
    if not route.fakes:
        text = "no fakes: if everyone else works with the collector, only the local epsilon is left"
        yield Finding("note", "shuffle.fakes", text)
