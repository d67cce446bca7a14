"""Basic RAPPOR: a unary encoding randomised twice, once for good and once a report."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bits import pack, unpack
from hubbub.core.errors import InvalidValue
from hubbub.core.exact import log_upper
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.unary import SUE, flip_bits, odds
from hubbub.mechanisms.memo.memo import Memo, Memoised

__all__ = ["BasicRappor"]


@dataclass(frozen=True, kw_only=True)
class BasicRappor(SUE, Memoised):
    """Shares of a domain of moderate size, for values that are reported again and again.

    The permanent answer is a symmetric unary encoding (`one`, `zero`), made once a value; each report flips its bits
    again: 1 stays 1 with probability `keep`, 0 becomes 1 with probability `lift`. `epsilon` bounds what all reports of
    one value tell together; `effective_epsilon` is what a single one tells, which is less. `randomize` makes both
    layers anew; a device that is to keep its permanent answers uses `remember` and `report_from`.

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
        >>> memo = rappor.remember(3, Random(seed=1))
        >>> daily = [rappor.report_from(memo, Random(seed=day)) for day in range(100)]
        >>> len({report.to_bytes() for report in daily}) > 1, memo.key, rappor.permanent_event().spent
        (True, 3, 1999898332436)

    References
    ----------
    Dissertation, section 3.1.1.
    """

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

    def memo_key(self, value: Any, public: int = 0) -> int:
        return int(self.encode([value])[0])

    def _answer(self, key: int, rng: Random) -> bytes:
        return flip_bits(np.array([[key]]), self.size, self.width, self.one, self.zero, rng).tobytes()

    def _report(self, memo: Memo, rng: Random) -> Reports:
        kept = np.frombuffer(memo.answer, dtype=np.uint8)[None, :]
        if kept.shape[1] != -(-self.size // 8):
            raise InvalidValue("memo", memo, f"{self.size} bits")
        draws = rng.uint16(1, self.size) if self.width == 16 else rng.uint32(1, self.size)
        threshold = draws.dtype.type
        bits = draws < np.where(unpack(kept, self.size) == 1, threshold(self.keep), threshold(self.lift))
        return Reports(self.spec_id, private={"bits": pack(bits)})

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        keep, lift = Fraction(self.keep, 1 << self.width), Fraction(self.lift, 1 << self.width)
        p, q = (rate * keep + (1 - rate) * lift for rate in self.permanent_rates)
        return p, q

    def _randomize(self, codes: NDArray[Any], rng: Random) -> dict[str, NDArray[Any]]:
        packed = np.empty((codes.size, -(-self.size // 8)), dtype=np.uint8)
        draw = rng.uint16 if self.width == 16 else rng.uint32
        step = max(1, (1 << 18) // (self.size * self.width // 8))
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
