"""Decomposes a formula over private columns into boxes: disjoint ones, or overlapping ones with signs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hubbub.query.errors import QueryError
from hubbub.query.formula import AllOf, AnyOf, Formula, PrivateAtom
from hubbub.query.runs import Runs, both, runs_of, without
from hubbub.query.time_limit import check_time

Box = tuple[Runs, ...]
"""For each private column the codes that the box holds."""
SignedBoxes = tuple[tuple[int, Box], ...]
"""Boxes with factors: the people in each box count as often as its factor says."""
MOST_BOXES = 1024
MOST_OVERLAPPING = 6
"""Inclusion and exclusion is tried for at most so many boxes."""


def boxes_of(formula: Formula, sizes: Sequence[int]) -> list[Box]:
    """Boxes, which may overlap, whose union is the set of records for which a formula holds."""
    whole: Box = tuple(((0, size - 1),) for size in sizes)
    if isinstance(formula, PrivateAtom):
        boxes = [tuple(formula.runs if k == formula.column else runs for k, runs in enumerate(whole))]
        return [box for box in boxes if all(box)]
    assert isinstance(formula, AllOf | AnyOf)
    if isinstance(formula, AnyOf):
        return merged([box for part in formula.parts for box in boxes_of(part, sizes)])
    boxes = [whole]
    for part in formula.parts:
        check_time()
        meeting = boxes_of(part, sizes)
        if len(boxes) * len(meeting) > MOST_BOXES:
            raise QueryError("the condition has too many combinations of AND and OR", "ask several simpler queries")
        boxes = merged([cut for box in boxes for other in meeting if (cut := overlap(box, other)) is not None])
    return boxes


def overlap(left: Box, right: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty."""
    shared = tuple(both(a, b) for a, b in zip(left, right, strict=True))
    return shared if all(shared) else None


def merged(boxes: list[Box]) -> list[Box]:
    """Fewer boxes with the same union: boxes inside others are dropped, boxes that differ in one column are merged."""
    left = list(dict.fromkeys(boxes))
    before = 0
    while len(left) != before:
        before = len(left)
        left = _outermost(left)
        for k in range(len(left[0]) if left else 0):
            alike: dict[tuple[Runs, ...], list[Runs]] = {}
            for box in left:
                alike.setdefault((*box[:k], *box[k + 1 :]), []).append(box[k])
            left = [
                (*rest[:k], runs_of(run for runs in every for run in runs), *rest[k:]) for rest, every in alike.items()
            ]
    return left


def _outermost(boxes: list[Box]) -> list[Box]:
    """The boxes that are inside no other box."""
    if len(boxes) < 2:
        return boxes
    low = np.array([[runs[0][0] for runs in box] for box in boxes])
    high = np.array([[runs[-1][1] for runs in box] for box in boxes])
    outermost = []
    for place, box in enumerate(boxes):
        check_time()
        wider = ((low <= low[place]) & (high >= high[place])).all(axis=1)
        wider[place] = False
        if not any(overlap(boxes[other], box) == box for other in np.flatnonzero(wider)):
            outermost.append(box)
    return outermost


def minus(box: Box, taken: Box) -> list[Box]:
    """Disjoint boxes whose union is one box without another."""
    if overlap(box, taken) is None:
        return [box]
    pieces = []
    rest = box
    for k in range(len(box)):
        outside = without(rest[k], taken[k])
        if outside:
            pieces.append((*rest[:k], outside, *rest[k + 1 :]))
        rest = (*rest[:k], both(rest[k], taken[k]), *rest[k + 1 :])
    return pieces


def disjoint(boxes: Sequence[Box]) -> list[Box]:
    """Disjoint boxes with the same union."""
    apart: list[Box] = []
    for box in boxes:
        pieces = [box]
        for earlier in apart:
            check_time()
            pieces = [piece for whole in pieces for piece in minus(whole, earlier)]
            if len(apart) + len(pieces) > MOST_BOXES:
                raise QueryError("the condition has too many combinations of AND and OR", "ask several simpler queries")
        apart += pieces
    return merged(apart)


def ways_to_add(formula: Formula, sizes: Sequence[int]) -> list[tuple[str, SignedBoxes]]:
    """The decompositions of a formula: disjoint boxes, inclusion and exclusion, or everything minus the complement."""
    boxes = boxes_of(formula, sizes)
    ways: list[tuple[str, SignedBoxes]] = [("disjoint", tuple((1, box) for box in disjoint(boxes)))]
    if 1 < len(boxes) <= MOST_OVERLAPPING:
        ways.append(("inclusion and exclusion", _inclusion(boxes)))
    if boxes:
        whole: Box = tuple(((0, size - 1),) for size in sizes)
        rest = [whole]
        for box in boxes:
            check_time()
            rest = [piece for part in rest for piece in minus(part, box)]
            if len(rest) > MOST_BOXES:
                break
        if 0 < len(rest) <= MOST_BOXES:
            ways.append(("all but the rest", ((1, whole), *((-1, box) for box in merged(rest)))))
    return ways


def _inclusion(boxes: Sequence[Box]) -> SignedBoxes:
    signed: list[tuple[int, Box]] = []
    meeting: list[tuple[int, Box]] = []  # a factor and an intersection of boxes so far
    for box in boxes:
        more = [(1, box), *((-sign, cut) for sign, old in meeting if (cut := overlap(old, box)) is not None)]
        meeting += more
        signed += more
    factors: dict[Box, int] = {}
    for sign, cut in signed:
        factors[cut] = factors.get(cut, 0) + sign
    return tuple((factor, cut) for cut, factor in factors.items() if factor)
