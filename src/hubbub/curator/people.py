"""People who are in a stream several times: at most some values of each enter it, and each spends a part of epsilon."""

import math
from fractions import Fraction

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Bools, Ints

MOST_VALUES = 1 << 20


def epsilon_of_value(epsilon: float, per_person: int) -> float:
    """What a value may spend, so that all values of a person, of which at most `per_person` enter, spend epsilon.

    Which values enter, and how many, depends on nobody's values: changing all values of one person changes at most
    `per_person` values of the stream. A release of which each costs at most the result costs at most epsilon together,
    exactly (group privacy), whatever positions these have.

    Example:
        >>> epsilon_of_value(1.0, 4)
        0.25
    """
    check_integer("per_person", per_person, 1, MOST_VALUES)
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise InvalidValue("epsilon", epsilon, "a finite number above 0")
    part = epsilon / per_person
    while Fraction(part) * per_person > Fraction(epsilon):
        part = math.nextafter(part, 0.0)
    return part


def first_of_each(people: Ints, per_person: int) -> Bools:
    """Which values are among the first `per_person` of their person; `people` has a number for each value's person.

    Example:
        >>> import numpy as np
        >>> first_of_each(np.array([7, 3, 7, 7, 3]), 2).tolist()
        [True, True, True, False, True]
    """
    check_integer("per_person", per_person, 1, MOST_VALUES)
    order = np.argsort(people, kind="stable")
    ordered, places = people[order], np.arange(people.size)
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: people.size]
    entered = np.empty(people.size, dtype=bool)
    entered[order] = places - np.maximum.accumulate(np.where(begins, places, 0)) < per_person
    return entered
