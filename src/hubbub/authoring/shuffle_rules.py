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
    """The questions can be shuffled: no two reports can be linked to one device, and fakes can be subtracted."""
    route = collection.shuffle
    if route is None:
        return
    linked = [name for name, question in collection.questions.items() if question.linked(collection.setting(name))]
    for name in linked:
        yield Finding(
            "error",
            f"questions.{name}",
            "its reports in several steps can be linked to one device, which undoes the shuffle; ask it in a "
            'collection of trust "local"',
        )
    uncorrected = [
        name
        for name, question in collection.questions.items()
        if route.fakes and name not in linked and not question.takes_fakes(collection.setting(name))
    ]
    if uncorrected:
        yield Finding(
            "error",
            "shuffle.fakes",
            f"the estimates of {listed(uncorrected)} cannot be corrected for fake reports, which only histograms by "
            "GRR or local hashing can whose reports are not kept: set fakes to 0, or choose another mechanism",
        )
    for name, terms in collection.terms.items():
        room = MOST_BATCH_BYTES // (terms.report_bytes + route.layer_bytes) - route.all_fakes
        if room < route.least:
            text = f"a batch of {name} has room for {max(room, 0):,} people's reports beside the fakes: too few"
            yield Finding("error", "shuffle.least", text)


def who_shuffles(collection: Collection) -> Iterator[Finding]:
    """How many have to be trusted, and whether their addresses are safe."""
    route = collection.shuffle
    if route is None:
        return
    if len(route.shufflers) == 1:
        text = "a single shuffler: if it works with the collector, only the local epsilon is left; two are better"
        yield Finding("warning", "shuffle.shufflers", text)
    hosts = [urlsplit(shuffler.url) for shuffler in route.shufflers]
    if len({host.netloc for host in hosts}) < len(hosts):
        text = "two shufflers have the same address, so that probably one party runs both"
        yield Finding("warning", "shuffle.shufflers", text)
    if hosts[0].scheme == "http" and hosts[0].hostname not in _HERE:
        text = f"{hosts[0].netloc} is reached without TLS: anyone on the network sees the ids of reports"
        yield Finding("warning", "shuffle.shufflers", text)
    if route.delta * route.least >= 1:
        text = (
            f"a delta of {route.delta:g} allows that one person's report is revealed in every batch of "
            f"{route.least:,}: choose a far smaller one"
        )
        yield Finding("error", "shuffle.delta", text)
    if not route.fakes:
        text = "no fakes: if everyone else works with the collector, only the local epsilon is left"
        yield Finding("note", "shuffle.fakes", text)
