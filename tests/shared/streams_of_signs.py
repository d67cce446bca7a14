"""What a device says sign by sign, as the net rule and ExSub have it, with exact chances."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.mechanisms.ternary.net_sub import NetSub
from hubbub.mechanisms.ternary.selection import advance, odds

Chances = dict[tuple[int, ...], Fraction]


def filled(vector: Sequence[int], s: int) -> tuple[int, ...]:
    """The vector, and +1 at as many of the s stubs as it has entries too few."""
    stubs = s - sum(map(abs, vector))
    return (*vector, *([1] * stubs), *([0] * (s - stubs)))


def said(mechanism: ExSub | NetSub, values: Sequence[int], *, bounded: bool = True) -> Chances:
    """The signs that a device with these values says, followed through every branch.

    Unbounded is a planted bug: there is always room for one more change.
    """
    weights, chances = mechanism.group_weights(), defaultdict[tuple[int, ...], Fraction](Fraction)

    def follow(counters: list[int], signs: tuple[int, ...], chance: Fraction) -> None:
        if len(signs) == len(values):
            chances[signs] += chance
            return
        value = values[len(signs)]
        if value and not bounded:
            counters[3] = max(counters[3], 1)
        plus, minus, total = odds(counters, value)
        for sign, ways in ((1, plus), (-1, minus), (0, total - plus - minus)):
            if ways > 0:
                after = list(counters)
                advance(after, value, sign)
                follow(after, (*signs, sign), chance * Fraction(ways, total))

    for (trues, reverses), weight in weights.items():
        start = [trues, reverses, mechanism.m - trues - reverses, mechanism.sparsity, mechanism.dimension]
        follow(start, (), Fraction(weight, sum(weights.values())))
    return dict(chances)
