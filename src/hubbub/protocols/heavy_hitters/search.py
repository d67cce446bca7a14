"""A search among kept reports for the best supported strings that extend some prefixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.core.domain.texts import prefix_codes
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Ints, Reports, Words
from hubbub.core.spec import Json
from hubbub.protocols.driver import Count, CountResult
from hubbub.protocols.heavy_hitters.prefixes import BitEncoding
from hubbub.protocols.views.basic import Prefix

__all__ = ["BLOCK", "PrefixSearch"]

BLOCK = 1 << 20
"""How many candidates are counted at a time: memory does not grow with their number."""
BLOCK_REPORTS = 1 << 16
_ALL = (1 << 64) - 1


@dataclass(frozen=True)
class PrefixSearch(Count):
    """A request for the `most` best supported strings among all that extend some prefixes to the length of an ask.

    Strings that are no prefix of a value are not tested. The place of a string is its number in the list of all
    extensions of the first prefix, then of the second, and so on, tested or not. Of equal supports the lower place
    wins.

    Parameters
    ----------
    ask
        An ask of a `Prefix`, by a frequency oracle over `BitStrings`, with `kept`.
    candidates
        The prefixes that are extended, as integers of `known` bits.
    known
        How many bits the prefixes have; 0 to search all strings, with the one prefix 0.
    most
        How many strings are returned.
    """

    known: int
    most: int
    encoding: BitEncoding

    def __post_init__(self) -> None:
        if not self.ask.kept or not isinstance(self.ask.view, Prefix) or not self.known < self.ask.view.bits:
            raise InvalidValue("ask", self.ask, "an ask of longer prefixes, whose reports are kept")
        if not self.candidates or not self.oracle.is_open:
            raise InvalidValue("candidates", self.candidates, "at least one, among reports over BitStrings")
        if self.most < 1:
            raise InvalidValue("most", self.most, "at least 1")

    @property
    def bits(self) -> int:
        """The length of the strings that are searched for."""
        assert isinstance(self.ask.view, Prefix)
        return self.ask.view.bits

    @property
    def extra(self) -> int:
        """How many bits the prefixes are extended by."""
        return self.bits - self.known

    def starts(self) -> range:
        return range(0, len(self.candidates) << self.extra, BLOCK)

    def supports(self, batches: Iterable[Reports], start: int) -> Ints:
        _, codes = self.block(start)
        counts = np.zeros(len(codes), dtype=np.int64)
        for reports in _larger_batches(batches) if len(codes) else ():
            counts += self.oracle.supports(reports, codes)
        return counts

    def choose(self, n: int, supports: Iterable[Ints]) -> CountResult:
        places, support, tested = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0
        for start, counts in zip(self.starts(), supports, strict=True):
            tested += len(counts)
            places, support = np.append(places, self.block(start)[0]), np.append(support, counts)
            best = best_places(places, support, self.most)
            places, support = places[best], support[best]
        return CountResult(n, support, tuple(places.tolist()), tested)

    def block(self, start: int) -> tuple[Ints, Words]:
        """The places of the tested strings among the `BLOCK` places from `start` on, and the codes of these strings."""
        places = np.arange(start, min(start + BLOCK, len(self.candidates) << self.extra))
        prefixes = string_words(self.candidates, self.known, self.encoding.bits)
        words = extended(prefixes[places >> self.extra], self.known, places & (1 << self.extra) - 1, self.extra)
        tested = self.encoding.possible(words, self.bits)
        return places[tested], prefix_codes(words[tested], self.bits)

    def strings(self, result: CountResult) -> tuple[int, ...]:
        """The strings of a result, as integers of `bits` bits, the best first."""
        mask = (1 << self.extra) - 1
        extensions = ((self.candidates[place >> self.extra], place & mask) for place in result.places)
        return tuple(int(prefix) << self.extra | extension for prefix, extension in extensions)

    def work(self, n: int) -> int:
        return n * (len(self.candidates) << self.extra)

    def candidates_json(self) -> Json:
        return {"prefixes": [hex(int(prefix)) for prefix in self.candidates], "known": self.known, "most": self.most}

    def check(self, result: CountResult) -> None:
        if not len(result.support) == len(result.places) <= self.most:
            raise InvalidValue("support", result, f"at most {self.most} integers, and as many places")


def _larger_batches(batches: Iterable[Reports]) -> Iterator[Reports]:
    """The same reports in larger batches: a pass over all candidates takes some time for a batch of any size."""
    waiting: list[Reports] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= BLOCK_REPORTS:
            yield Reports.concat(waiting)
            waiting = []
    if waiting:
        yield Reports.concat(waiting)


def best_places(places: Ints, support: Ints, most: int) -> Ints:
    """The indices of the `most` largest supports, largest first; of equal ones the lower index first."""
    likely = np.arange(len(support))
    if len(support) > most:
        likely = np.flatnonzero(support >= np.partition(support, -most)[-most])
    return likely[np.lexsort((places[likely], -support[likely]))][:most]


def string_words(strings: Iterable[int | str], bits: int, of: int) -> Words:
    """Strings of a number of bits, given as integers, as the first bits of rows of 64-bit words that hold `of` bits."""
    width = -(-of // 64)
    wide = [int(string) << (64 * width - bits) for string in strings]
    return np.array(
        [[(string >> 64 * (width - 1 - at)) & _ALL for at in range(width)] for string in wide], dtype=np.uint64
    )


def extended(words: Words, known: int, more: Ints, extra: int) -> Words:
    """Write the `extra` bits of `more` into `words` after the first `known` bits, in place; return `words`."""
    at, offset = divmod(known, 64)
    bits, over = more.astype(np.uint64), offset + extra - 64
    if over <= 0:
        words[:, at] |= bits << np.uint64(-over)
    else:
        words[:, at] |= bits >> np.uint64(over)
        words[:, at + 1] |= bits << np.uint64(64 - over)
    return words
