"""RAPPOR in full: a Bloom filter randomised twice, once for all reports of a value and once for each report."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Ints
from hubbub.mechanisms.frequency.basic_rappor import bit_chances, flip_again
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.mechanisms.frequency.unary import flip_bits
from hubbub.mechanisms.memoised import Memoised
from hubbub.random.integers import exp_floor, log_upper
from hubbub.random.source import Random

_WIDTH = 32
_ALL = 1 << _WIDTH
_MOST_KEYS = 1 << 53  # whole numbers that every client has


@dataclass(frozen=True, kw_only=True)
class BloomRappor(Rappor, Memoised):
    """Shares of candidate strings, of values that are reported again and again, from Bloom filters.

    A device draws its cohort for life. The Bloom filter of a value is flipped once, each bit with probability
    zero/2^32, and kept (the permanent answer); for each report its bits are flipped again, each with probability
    1 - keep/2^32. `epsilon` bounds what all reports of one filter tell together, 2 hashes ln((1-f)/f) of a flip f;
    `effective_epsilon` is what one report tells, by the flip of both layers. Shares are decoded as by `Rappor`, and the
    bias is "heuristic". The cohort goes with every report, and tells that much of who sends it.

    Parameters
    ----------
    epsilon
        What a permanent answer may spend, for life.
    domain
        What values may be; any text of at most 256 bytes unless given.
    bits, hashes, cohorts
        The size of the filter, the hash functions a value sets bits by, the number of cohorts.
    zero
        Of 2^32, how often a bit of the permanent answer is flipped; 0 chooses the smallest that epsilon allows.
    hash
        The name of the function that sets the bits: "product32".
    keep
        Of 2^32, how often a report keeps a bit of the permanent answer; 0 takes three quarters.

    Example:
        >>> rappor = BloomRappor(epsilon=4.0)
        >>> round(rappor.permanent_epsilon, 3), round(rappor.effective_epsilon, 3)
        (4.0, 1.882)
        >>> rng = Random(seed=1)
        >>> states = rappor.enroll(1, rng)
        >>> states, reports, speaks = rappor.step(states, 0, ["yes"], rng, paid=np.array([True]))
        >>> rappor.price(states, 1, ["yes"]).tolist(), len(reports)
        ([0], 1)

    References
    ----------
    Erlingsson, Pihur and Korolova, 2014; T. Wang, 2021, sections 3.1.1 and 3.1.2.
    """

    linkable = "between batches"
    keep: int = 0

    def _resolve(self) -> None:
        super()._resolve()
        if self.bits**self.hashes > _MOST_KEYS:
            most = max(k for k in range(1, self.hashes) if self.bits**k <= _MOST_KEYS)
            raise InvalidValue("hashes", self.hashes, f"at most {most}, with a filter of {self.bits} bits")
        if self.keep == 0:
            self._set("keep", 3 << (_WIDTH - 2))
        self._integer("keep", (_ALL >> 1) + 1, _ALL - 1)
        if self.permanent_epsilon > self.epsilon:
            raise InvalidValue("epsilon", self.epsilon, f"at least {self.permanent_epsilon!r}, which `zero` spends")

    @classmethod
    def of_report(cls, report: float, *, epsilon: float, **keys: Any) -> Self:
        """The mechanism whose single report spends at most a given epsilon, below that of the permanent answer.

        With a permanent bit right with probability a, a report's bit is right with probability s = a k + (1-a)(1-k),
        and a report spends 2 hashes ln(s/(1-s)): so k = (s - (1-a)) / (2a - 1), rounded down.
        """
        full = cls(epsilon=epsilon, **keys)
        right, wrong = full.permanent_rates
        root, most = exp_floor(Fraction(report) / (2 * full.hashes)), exp_floor(report)
        keep = int((root / (1 + root) - wrong) / (right - wrong) * _ALL)
        for tried in range(min(keep, _ALL - 1), max(keep - 4, _ALL >> 1), -1):
            rappor = cls(epsilon=epsilon, **{**keys, "zero": full.zero, "keep": tried})
            if rappor.ratio() <= most:
                return rappor
        raise InvalidValue("epsilon", report, "an epsilon that 32-bit probabilities can tell from 0")

    # -- the two layers ---------------------------------------------------------------------------------------

    @cached_property
    def permanent_rates(self) -> tuple[Fraction, Fraction]:
        """The chance of a 1 in the permanent answer, where the filter has one, and where not."""
        wrong = Fraction(self.zero, _ALL)
        return 1 - wrong, wrong

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The chance of a 1 in a report, where the filter has one, and where not: of both layers."""
        (right, wrong), keep = self.permanent_rates, Fraction(self.keep, _ALL)
        own = right * keep + wrong * (1 - keep)
        return own, 1 - own

    @cached_property
    def permanent_epsilon(self) -> float:
        """What a permanent answer spends, exactly, rounded up."""
        right, wrong = self.permanent_rates
        return log_upper((right / wrong) ** (2 * self.hashes))

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        cohort = rng.below(self.cohorts, codes.size)
        return self._from_answers(cohort, self._answers(self._keys(cohort, codes), rng), rng)

    # -- the device's memory ----------------------------------------------------------------------------------

    @property
    def most_memos(self) -> int:
        filters = sum(comb(self.bits, ones) for ones in range(1, self.hashes + 1))
        return filters if self._domain.size is None else min(filters, self._domain.size)

    @property
    def answer_bytes(self) -> int:
        return -(-self.bits // 8)

    def _draw_public(self, n: int, rng: Random) -> Ints:
        return rng.below(self.cohorts, n).astype(np.int64)

    def memo_keys(self, values: Values, public: Ints) -> Ints:
        return self._keys(public, self.encode(values))

    def _keys(self, cohorts: Array, codes: Array) -> Ints:
        """The filter of each code as a number: its places in ascending order, the last one repeated, as digits."""
        places = np.sort(self.filters(cohorts, codes), axis=1)  # -1, a bit that was set already, comes first
        places = np.sort(np.where(places < 0, places[:, -1:], places), axis=1)
        return np.asarray(places @ self.bits ** np.arange(self.hashes, dtype=np.int64))

    def _places(self, keys: Ints) -> Ints:
        """The bits that the filter of a key has; one that is there twice is -1 the second time."""
        places = keys[:, None] // self.bits ** np.arange(self.hashes, dtype=np.int64) % self.bits
        places[:, 1:][places[:, 1:] == places[:, :-1]] = -1
        return np.asarray(places)

    def _answers(self, keys: Ints, rng: Random) -> NDArray[np.uint8]:
        return flip_bits(self._places(keys), self.bits, _WIDTH, _ALL - self.zero, self.zero, rng)

    def _from_answers(self, public: Ints, answers: NDArray[np.uint8], rng: Random) -> dict[str, Array]:
        return {"cohort": public, "bits": flip_again(answers, self.bits, _WIDTH, self.keep, _ALL - self.keep, rng)}

    def _sound(self, public: Ints, keys: Ints, answers: NDArray[np.uint8]) -> bool:
        spare = -self.bits % 8
        drawn = bool(((public >= 0) & (public < self.cohorts)).all())
        return drawn and bool((keys < self.bits**self.hashes).all() and (answers[:, -1] < 1 << 8 - spare).all())

    def publics(self) -> dict[int, Fraction]:
        return dict.fromkeys(range(self.cohorts), Fraction(1, self.cohorts))

    def answer_chances(self, key: int) -> dict[bytes, Fraction] | None:
        right, wrong = self.permanent_rates
        ones = self._places(np.array([key]))[0]
        every = self.outputs()
        rates = [right if bit in ones else wrong for bit in range(self.bits)]
        return None if every is None else bit_chances(every.private["bits"], rates)

    def report_chances(self, public: int, answer: bytes) -> dict[bytes, Fraction]:
        keep = Fraction(self.keep, _ALL)
        every = self.outputs({"cohort": np.array([public])})
        assert every is not None  # permanent answers were listed
        bits = np.unpackbits(np.frombuffer(answer, dtype=np.uint8), count=self.bits, bitorder="little")
        chances = bit_chances(every.private["bits"], [keep if bit else 1 - keep for bit in bits])
        return {every[row : row + 1].to_bare(): chance for row, chance in enumerate(chances.values())}

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"], bits=4, cohorts=2)
        yield cls(epsilon=4.0, bits=130)
