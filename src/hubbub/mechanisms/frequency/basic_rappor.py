"""Basic RAPPOR: a unary encoding randomised twice, once for all reports of a value and once for each report."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Ints
from hubbub.mechanisms.frequency.unary import SUE, flip_bits, odds
from hubbub.mechanisms.memoised import Memoised
from hubbub.random.integers import log_upper, pack, unpack
from hubbub.random.source import Random

_CHUNK = 1 << 18  # bytes drawn at a time


@dataclass(frozen=True, kw_only=True)
class BasicRappor(SUE, Memoised):
    """Shares of a domain of moderate size, for values that are reported again and again.

    The permanent answer is a symmetric unary encoding (`one`, `zero`), made once a value; each report flips its bits
    again: 1 stays 1 with probability `keep`, 0 becomes 1 with probability `lift`. `epsilon` bounds what all reports of
    one value reveal together; a single report reveals less, `effective_epsilon`. `randomize` draws both layers anew; a
    device that keeps its permanent answers has a state, and uses `enroll` and `step`.

    Parameters
    ----------
    epsilon
        What the permanent answer may spend, for life: 2 ln((1 - f/2)/(f/2)) in RAPPOR's own terms.
    domain
        A size, a list of names, or a Domain.
    width, one, zero, keep, lift
        Bits of the probabilities, and the probabilities; 0 chooses them, three quarters and a quarter for the last two.

    Example:
        >>> rappor = BasicRappor(epsilon=2.0, domain=8)
        >>> round(rappor.permanent_epsilon, 3), round(rappor.effective_epsilon, 3)
        (2.0, 0.941)
        >>> rng = Random(seed=1)
        >>> states = rappor.enroll(1, rng)
        >>> rappor.price(states, 0, [3]).tolist()
        [1999898332436]
        >>> states, reports, speaks = rappor.step(states, 0, [3], rng, paid=np.array([True]))
        >>> rappor.price(states, 1, [3]).tolist(), len(reports)
        ([0], 1)

    References
    ----------
    Erlingsson, Pihur and Korolova, 2014; T. Wang, 2021, section 3.1.1.
    """

    linkable = "between batches"
    keep: int = 0
    lift: int = 0

    def _resolve(self) -> None:
        super()._resolve()
        if not (self.keep or self.lift):
            self._set("keep", 3 << (self.width - 2))
            self._set("lift", 1 << (self.width - 2))
        self._integer("keep", 1, (1 << self.width) - 1)
        self._integer("lift", 1, (1 << self.width) - 1)
        if self.keep <= self.lift:
            raise InvalidValue("keep", self.keep, f"a probability above lift = {self.lift}")
        if self.permanent_epsilon > self.epsilon:
            raise InvalidValue(
                "epsilon", self.epsilon, f"at least {self.permanent_epsilon!r}, which its integers spend"
            )

    @cached_property
    def permanent_rates(self) -> tuple[Fraction, Fraction]:
        """The chance of a 1 in the permanent answer, where the value is held and where not."""
        return Fraction(self.one, 1 << self.width), Fraction(self.zero, 1 << self.width)

    @cached_property
    def permanent_epsilon(self) -> float:
        """What the permanent answer spends, exactly, rounded up."""
        return log_upper(odds(*self.permanent_rates))

    @property
    def most_memos(self) -> int:
        return self.size

    @property
    def answer_bytes(self) -> int:
        return -(-self.size // 8)

    def memo_keys(self, values: Values, public: Ints) -> Ints:
        return self.encode(values).astype(np.int64)

    def _answers(self, keys: Ints, rng: Random) -> NDArray[np.uint8]:
        return flip_bits(keys[:, None], self.size, self.width, self.one, self.zero, rng)

    def _from_answers(self, public: Ints, answers: NDArray[np.uint8], rng: Random) -> dict[str, Array]:
        return {"bits": flip_again(answers, self.size, self.width, self.keep, self.lift, rng)}

    def _sound(self, public: Ints, keys: Ints, answers: NDArray[np.uint8]) -> bool:
        spare = -self.size % 8
        return bool((public == 0).all() and (keys < self.size).all() and (answers[:, -1] < 1 << 8 - spare).all())

    def answer_chances(self, key: int) -> dict[bytes, Fraction] | None:
        if_held, if_not = self.permanent_rates
        every = self.outputs()
        rates = [if_held if bit == key else if_not for bit in range(self.size)]
        return None if every is None else bit_chances(every.private["bits"], rates)

    def report_chances(self, public: int, answer: bytes) -> dict[bytes, Fraction]:
        keep, lift = Fraction(self.keep, 1 << self.width), Fraction(self.lift, 1 << self.width)
        bits = unpack(np.frombuffer(answer, dtype=np.uint8)[None, :], self.size)[0]
        every = self.outputs()
        return {} if every is None else bit_chances(every.private["bits"], [keep if bit else lift for bit in bits])

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        keep, lift = Fraction(self.keep, 1 << self.width), Fraction(self.lift, 1 << self.width)
        p, q = (rate * keep + (1 - rate) * lift for rate in self.permanent_rates)
        return p, q

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        packed = np.empty((codes.size, -(-self.size // 8)), dtype=np.uint8)
        draw = rng.uint16 if self.width == 16 else rng.uint32
        step = max(1, _CHUNK // (self.size * self.width // 8))
        for start in range(0, codes.size, step):
            own = codes[start : start + step]
            draws = draw(own.size, 2, self.size)
            threshold = draws.dtype.type
            rows = np.arange(own.size)
            permanent = draws[:, 0] < threshold(self.zero)
            permanent[rows, own] = draws[rows, 0, own] < threshold(self.one)
            bits = draws[:, 1] < np.where(permanent, threshold(self.keep), threshold(self.lift))
            packed[start : start + step] = pack(bits)
        return {"bits": packed}


def flip_again(
    answers: NDArray[np.uint8], size: int, width: int, keep: int, lift: int, rng: Random
) -> NDArray[np.uint8]:
    """Packed bits from permanent ones: a 1 stays with probability keep/2^width, a 0 becomes 1 with lift/2^width."""
    packed = np.empty_like(answers)
    step = max(1, _CHUNK // (size * width // 8))
    for start in range(0, len(answers), step):
        permanent = answers[start : start + step]
        draws = (rng.uint16 if width == 16 else rng.uint32)(len(permanent), size)
        threshold = draws.dtype.type
        packed[start : start + step] = pack(
            draws < np.where(unpack(permanent, size) == 1, threshold(keep), threshold(lift))
        )
    return packed


def bit_chances(rows: NDArray[np.uint8], ones: list[Fraction]) -> dict[bytes, Fraction]:
    """The probability of each row of packed bits, where each bit is 1 with its own probability."""
    bits = unpack(rows, len(ones))
    return {
        row.tobytes(): prod((p if bit else 1 - p for p, bit in zip(ones, own, strict=True)), start=Fraction(1))
        for row, own in zip(rows, bits, strict=True)
    }
