"""The rules of a safe collection whose reports are shuffled."""

from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from hubbub.authoring.answerable import first_asks
from hubbub.collection.safety import Finding, links
from hubbub.collection.shuffle_route import ObliviousRoute
from hubbub.core.errors import HubbubError
from hubbub.questions.collection import Collection
from hubbub.questions.words import listed

_HERE = ("localhost", "127.0.0.1", "::1")


def shuffled_questions(collection: Collection) -> Iterator[Finding]:
    """The questions can be shuffled: no two reports can be linked to one device, and fakes can be subtracted."""
    route = collection.shuffle
    if route is None:
        return
    linked = [name for name, terms in collection.terms.items() if links(terms)]
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
        if route.fakes and name not in linked and not question.takes_fakes()
    ]
    if uncorrected:
        yield Finding(
            "error",
            "shuffle.fakes",
            f"the estimates of {listed(uncorrected)} cannot be corrected for fake reports, which only histograms by "
            "GRR or local hashing can whose reports are not kept: set fakes to 0, or choose another mechanism",
        )
    for name, terms in collection.terms.items():
        room = route.room(terms.report_bytes)
        if room < route.least:
            text = f"a batch of {name} has room for {max(room, 0):,} people's reports in addition to the fakes: too few"
            yield Finding("error", "shuffle.least", text)


def reports_are_numbers(collection: Collection) -> Iterator[Finding]:
    """In an oblivious shuffle reports are divided into shares: only numbers can be."""
    if not isinstance(collection.shuffle, ObliviousRoute):
        return
    from hubbub.shuffle.report_numbers import NUMBERED  # few collections need it

    for name, terms in collection.terms.items():
        named = {family.mechanism for family in terms.families}
        with suppress(HubbubError):  # an error already
            named |= {type(ask.mechanism).__name__ for ask in first_asks(collection, name)}
        unnumbered = sorted(named - NUMBERED)
        if unnumbered:
            text = f"reports by {listed(unnumbered)} are no numbers below 2^64, which alone can be divided into shares"
            yield Finding("error", f"questions.{name}", f"{text}; allowed: {listed(sorted(NUMBERED))}")


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
