"""Sequential selection: entries come one at a time, and each is decided at once: which sign is reported, if any.

How many true signs, reversed signs and signs of zeros are reported in all is drawn beforehand. Counters hold how many
of each are still to be reported, and how many entries and zeros are still to come. An entry is reported with the
probability of selection sampling: still to be reported over still to come. **Compare first, then count down.**
"""

import sys
from collections.abc import MutableSequence, Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import MissingDependency
from hubbub.random.source import Random

COUNTERS = ("trues", "reverses", "falses", "entries", "zeros")
"""The state: signs of each kind still to be reported, entries and zeros still to come."""
LARGE_BATCH = 1 << 10  # entries of several devices from which on compiled code is worth loading
_SMALL = 1 << 6  # the same, where it is loaded already


def select(
    values: NDArray[np.int8], words: NDArray[np.uint32], counters: NDArray[np.int32], rng: Random
) -> NDArray[np.int8]:
    """Report a sign, or nothing (0), for every value of every row, from one 32-bit word each; `counters` is changed.

    Entries past the allowed number count as zeros. A device needs no compiled code for its one row.
    """

    def decide_alone(row: int, column: int) -> int:
        state: list[int] = counters[row].tolist()
        sign = _next_sign(state, int(values[row, column]), int(words[row, column]), rng)
        counters[row] = state
        return sign

    loaded = "hubbub.kernels.ternary" in sys.modules
    if len(values) > 1 and values.size >= (_SMALL if loaded else LARGE_BATCH):
        try:
            from hubbub.kernels.ternary import select as compiled
        except MissingDependency:
            pass
        else:
            return compiled(values, words, counters, decide_alone)
    signs = np.empty(values.shape, dtype=np.int8)
    for row in range(len(values)):
        state: list[int] = counters[row].tolist()
        signs[row] = [
            _next_sign(state, value, word, rng)
            for value, word in zip(values[row].tolist(), words[row].tolist(), strict=True)
        ]
        counters[row] = state
    return signs


def _next_sign(counters: list[int], value: int, word: int, rng: Random) -> int:
    sign = decide(word, *odds(counters, value), rng)
    advance(counters, value, sign)
    return sign


def odds(counters: Sequence[int], value: int) -> tuple[int, int, int]:
    """The chances that +1 and that -1 is reported next, if a device holds `value`: two numerators, one denominator."""
    trues, reverses, falses, entries, zeros = counters
    if value == 0 or entries == 0:
        return falses, falses, 2 * zeros
    return (trues, reverses, entries) if value > 0 else (reverses, trues, entries)


def advance(counters: MutableSequence[int], value: int, sign: int) -> None:
    """Count down the sign that was reported and the value that came."""
    if value == 0 or counters[3] == 0:
        counters[4] -= 1
        counters[2] -= sign != 0
    else:
        counters[3] -= 1
        counters[0] -= sign == value
        counters[1] -= sign == -value


def decide(bits: int, plus: int, minus: int, total: int, rng: Random) -> int:
    """The sign that 32 random bits lead to; where they cannot decide (once in 2^31), more are drawn."""
    drawn = 32
    while True:
        low, first, second = bits * total, plus << drawn, plus + minus << drawn
        if low >= second:
            return 0
        if low + total <= first:
            return 1
        if low >= first and low + total <= second:
            return -1
        bits, drawn = bits << 32 | int.from_bytes(rng.bytes(4), "little"), drawn + 32
