"""How reports are weighted: two weights, the truth or another value, and the part that does not depend on the value."""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Ints, Words
from hubbub.random.integers import ceil_div, exp_floor


class Blanket(NamedTuple):
    """The privacy blanket of a mechanism, in three numbers.

    There is a measure over reports of total `mass`, the same for all values, such that the probability of every report
    under every value is between 1 and `ratio` times its measure. So with probability `mass` a report is a draw from
    that measure, which does not depend on the value. These draws hide one report among many that are shuffled.

    Parameters
    ----------
    mass
        The total of the measure.
    ratio
        The largest probability of a report under a value, over its measure.
    both
        The smallest part of draws from the measure that both of any two values make `ratio` times as likely; None where
        it is not known, and the smallest possible part is used.
    """

    mass: Fraction
    ratio: Fraction
    both: Fraction | None = None

    @property
    def preferred(self) -> Fraction:
        """The part of draws that a value makes `ratio` times as likely, if it leaves all others as they are."""
        return (1 / self.mass - 1) / (self.ratio - 1)

    @property
    def shared(self) -> Fraction:
        """The least part that both of two values prefer."""
        return max(Fraction(0), 2 * self.preferred - 1) if self.both is None else self.both


MOST_WEIGHT_BITS = 1 << 11


def resolve_two_weights(mechanism: Any, epsilon: float | Fraction, precision: int = 64) -> None:
    """Choose the fields `bits` and `least` of a mechanism where they are 0, and check them.

    `least` is e^-epsilon of 2^bits, rounded up, and has at least `precision` bits.
    """
    if mechanism.bits == 0:
        mechanism._set("bits", 1 + precision + int(float(epsilon) / math.log(2)))
    mechanism._integer("bits", 1, MOST_WEIGHT_BITS)
    if mechanism.least == 0:
        mechanism._set("least", ceil_div(1 << mechanism.bits, exp_floor(epsilon)))
    if mechanism.least == 1 << mechanism.bits:
        raise InvalidValue("epsilon", mechanism.epsilon, f"an epsilon that {precision}-bit weights can tell from 0")
    mechanism._integer("least", 1, (1 << mechanism.bits) - 1)


def search_power(epsilon: float) -> float:
    """e^epsilon for choosing parameters: limited to a range outside which no choice changes and floats overflow."""
    return math.exp(min(max(epsilon, 1e-6), 140.0))


TWO_64 = 1 << 64


def other_weight(epsilon: float, options: int) -> int:
    """Of 2^64, the share of each false answer (Eq 3.4): 1/(e^epsilon + options - 1), rounded up, toward privacy."""
    return ceil_div(TWO_64, exp_floor(epsilon) + options - 1)


def truth_weight(other: int, options: int) -> int:
    """The share of the truth: what the other options leave of 2^64."""
    return TWO_64 - (options - 1) * other


def choose(truth: Ints, draws: Words, other: int, options: int) -> Ints:
    """Turn 64 random bits each into the truth or one of the other options, with exactly the stored shares."""
    keep = truth_weight(other, options)
    if options == 2:
        return truth ^ (draws >= np.uint64(keep))
    index = ((draws - np.uint64(keep)) // np.uint64(other)).astype(np.int64)  # wraps where the truth is kept
    index += index >= truth
    return np.where(draws < np.uint64(keep), truth, index)


def choice_rates(other: int, options: int) -> tuple[Fraction, Fraction]:
    """The exact probabilities of the truth and of one other option."""
    return Fraction(truth_weight(other, options), TWO_64), Fraction(other, TWO_64)
