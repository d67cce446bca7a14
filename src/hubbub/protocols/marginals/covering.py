"""Covering designs: few sets of attributes, all of one size, that together contain every set of some smaller size."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.contingency import Attributes
from hubbub.core.errors import check_integer
from hubbub.core.random import Random

MOST_SUBSETS = 1 << 18
"""Designs that have to cover more subsets than this are not searched for."""
_ATTEMPTS = 8


def fewest_sets(attributes: int, covered: int, size: int) -> int:
    """A lower bound on the number of sets of a design (Schoenheim's bound)."""
    bound = 1
    for less in reversed(range(covered)):
        bound = -(-(attributes - less) * bound // (size - less))
    return bound


@lru_cache(maxsize=256)
def covering_design(attributes: int, covered: int, size: int, most: int) -> tuple[Attributes, ...] | None:
    """Sets of `size` attributes such that any `covered` attributes are in one; None if `most` sets do not suffice.

    A greedy search: to a set the attribute is added that most raises the expected number of newly covered subsets, if
    the rest of the set were drawn at random. Of several attempts the smallest design is returned, which need not be
    optimal.

    Parameters
    ----------
    attributes
        How many attributes there are.
    covered
        Any so many attributes must be together in one set.
    size
        How many attributes a set has.
    most
        The most sets that the design may have.
    """
    check_integer("attributes", attributes, 1)
    check_integer("covered", covered, 1, attributes)
    check_integer("size", size, covered, attributes)
    if fewest_sets(attributes, covered, size) > most or comb(attributes, covered) > MOST_SUBSETS:
        return None
    best: tuple[Attributes, ...] | None = None
    for attempt in range(1 if size == covered else _ATTEMPTS):
        design = _greedy_design(attributes, covered, size, most if best is None else len(best) - 1, attempt)
        best = design or best
    return best


@lru_cache(maxsize=256)
def spread_sets(attributes: int, size: int, number: int) -> tuple[Attributes, ...]:
    """So many different sets of `size` attributes: they cover first every attribute, then every pair, and so on."""
    check_integer("size", size, 1, attributes)
    check_integer("number", number, 1, comb(attributes, size))
    sets: list[Attributes] = []
    for covered in range(1, size + 1):
        if comb(attributes, covered) > MOST_SUBSETS:
            break
        _grow(sets, attributes, covered, size, number, np.arange(attributes))
    rng = Random(seed="sets of attributes")  # a fixed seed: the design is always the same
    while len(sets) < number:
        drawn = tuple(sorted(rng.permutation(attributes)[:size].tolist()))
        if drawn not in sets:
            sets.append(drawn)
    return tuple(sets[:number])


def _greedy_design(attributes: int, covered: int, size: int, most: int, attempt: int) -> tuple[Attributes, ...] | None:
    order = np.arange(attributes)
    if attempt:
        order = Random(seed=attempt).permutation(attributes)
    sets: list[Attributes] = []
    complete = _grow(sets, attributes, covered, size, most, order)
    return tuple(sets) if complete else None


def _grow(
    sets: list[Attributes], attributes: int, covered: int, size: int, most: int, order: NDArray[np.int64]
) -> bool:
    """Add sets until every subset of `covered` attributes is in one, or there are `most`; return whether all are."""
    left = _incidence(attributes, covered)
    for chosen in sets:
        left = left[left[:, list(chosen)].sum(axis=1) < covered]
    uses = np.bincount(np.array(sets, dtype=np.int64).ravel(), minlength=attributes)
    while left.size and len(sets) < most:
        new_set = _next_set(left, covered, size, uses, order)
        uses[new_set] += 1
        sets.append(tuple(sorted(new_set)))
        left = left[left[:, new_set].sum(axis=1) < covered]
    return not left.size


def _next_set(
    left: NDArray[np.int32], covered: int, size: int, uses: NDArray[np.int64], order: NDArray[np.int64]
) -> list[int]:
    attributes = left.shape[1]
    rank = np.argsort(order)
    chosen: list[int] = []
    for taken in range(size):
        missing = covered - left[:, chosen].sum(axis=1)
        rest, room = attributes - taken - 1, size - taken - 1
        chance = np.array([comb(rest - lack, room - lack) / comb(rest, room) if lack <= room else 0.0 for lack in
                           range(covered + 1)])  # fmt: skip
        gain = np.where(missing > 0, chance[np.maximum(missing - 1, 0)] - chance[missing], 0.0)
        score = np.round(gain @ left, 9)
        score[chosen] = -1.0
        chosen.append(int(np.lexsort((rank, uses, -score))[0]))
    return chosen


@lru_cache(maxsize=8)
def _incidence(attributes: int, covered: int) -> NDArray[np.int32]:
    """The incidence matrix: a row for each subset, with 1 where an attribute (column) is in it."""
    subsets = np.array(list(combinations(range(attributes), covered)), dtype=np.int64)
    rows = np.zeros((len(subsets), attributes), dtype=np.int32)
    rows[np.arange(len(subsets))[:, None], subsets] = 1
    return rows
