"""The check of `influence`: how far forged reports can move an estimate."""

import math
from itertools import product
from typing import Any

import numpy as np

from hubbub.checks.failure import require
from hubbub.checks.probability import public_rows, row_keys
from hubbub.checks.values import some_values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Floats, Reports
from hubbub.mechanisms.base import ColumnSpec, Mechanism
from hubbub.random.source import Random
from hubbub.statistics.influence import Influence, forged_part

_PUBLIC_ROWS = 8
_LISTED = 12_000  # about the most reports that are listed
_RANDOM = 200
_EVERYTHING = 1 << 15  # reports of any content, accepted or not, that are tried one by one
_WORK = 1 << 22  # ... where their sketches are small
_CLOSE = 1e-9  # estimates are floats


def check_influence(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """No accepted report stands for a number outside of what `influence` states, and the two ends are attained.

    And m forged reports among n honest ones move the estimate by exactly m/(n+m) of the distance. All private parts are
    tried where they can be listed, and whatever else the format check accepts: all of it where reports are short, else
    columns filled at random. The numbers come from the mechanism's own estimates.
    """
    rng = Random(seed=rng_seed)
    listed, reports = accepted_reports(mechanism, rng)
    honest = mechanism.randomize(some_values(mechanism, 300, rng), rng)
    for options, stated in influences(mechanism):
        singles = np.array([_value(mechanism, reports[k : k + 1], options) for k in range(len(reports))])
        least, most = float(stated.least), float(stated.most)
        slack = _CLOSE * (most - least)
        lowest, highest = float(singles.min()), float(singles.max())
        message = f"a report stands for {lowest:.6g} to {highest:.6g}, and influence() says {least:.6g} to {most:.6g}"
        require(least - slack <= lowest and highest <= most + slack, message)
        if listed:
            require(lowest <= least + slack and most - slack <= highest, message)
        before = _value(mechanism, honest, options)
        for number in (int(np.argmin(singles.min(axis=1))), int(np.argmax(singles.max(axis=1)))):
            forged = Reports.concat([reports[number : number + 1]] * 7)
            after = _value(mechanism, Reports.concat([honest, forged]), options)
            wanted = before + float(forged_part(7, len(honest))) * (singles[number] - before)
            require(np.allclose(after, wanted, rtol=0, atol=slack), "the estimate is no mean over reports")


def influences(mechanism: Mechanism) -> list[tuple[dict[str, object], Influence]]:
    """The influence that a mechanism states for each quantity, with the options of `estimate` for that quantity."""
    every = [{"of": quantity} for quantity in getattr(mechanism, "answers", ())] or [{}]
    stated = [(options, mechanism.influence(**options)) for options in every]
    return [(options, influence) for options, influence in stated if influence is not None]


def accepted_reports(mechanism: Mechanism, rng: Random) -> tuple[bool, Reports]:
    """Reports that the format check accepts, one per row, and whether every private part is among them.

    Added to those of clients: columns filled with all values, or with random, the least and the largest ones.
    """
    parts: list[Reports] = []
    for public in public_rows(mechanism, _PUBLIC_ROWS, rng):
        outputs = mechanism.outputs(public)
        if outputs is None or sum(len(part) for part in parts) + len(outputs) > _LISTED:
            break
        parts.append(outputs)
    listed = bool(parts)
    parts.append(mechanism.randomize(some_values(mechanism, _RANDOM, rng), rng))
    parts += _accepted(mechanism, _arbitrary(mechanism, rng))
    every = Reports.concat(parts)
    keys = row_keys({**every.public, **every.private}, len(every))
    return listed, every[np.array(sorted({key: row for row, key in enumerate(keys)}.values()))]


def _arbitrary(mechanism: Mechanism, rng: Random) -> Reports:
    """Columns filled with anything that their type holds: everything, if it is little; else some at random."""
    limits = [_limits(column) for column in mechanism.columns for _ in range(math.prod(column.shape))]
    combinations = math.prod(most - least + 1 for least, most in limits)
    if combinations <= _EVERYTHING and combinations * math.prod(mechanism.sketch_shape) <= _WORK:
        rows = list(product(*(range(least, most + 1) for least, most in limits)))
    else:
        rows = [tuple(_between(*limit, rng) for limit in limits) for _ in range(_RANDOM)]
        rows += list(zip(*limits, strict=True))
    parts: dict[str, dict[str, Array]] = {"public": {}, "private": {}}
    start = 0
    for column in mechanism.columns:
        end = start + math.prod(column.shape)
        filled = np.array([row[start:end] for row in rows], dtype=column.dtype)
        parts[column.part][column.name], start = filled.reshape(len(rows), *column.shape), end
    return Reports(mechanism.spec_id, **parts)


def _limits(column: ColumnSpec) -> tuple[int, int]:
    limits = np.iinfo(column.dtype)
    return int(limits.min), int(limits.max) if column.below is None else column.below - 1


def _between(least: int, most: int, rng: Random) -> int:
    return least + int.from_bytes(rng.bytes(16), "little") % (most - least + 1)


def _accepted(mechanism: Mechanism, reports: Reports) -> list[Reports]:
    """The parts of a batch that the format check accepts, found by halving."""
    try:
        mechanism.check(reports)
    except InvalidValue:
        middle = len(reports) // 2
        halves = (reports[:middle], reports[middle:]) if middle else ()
        return [part for half in halves for part in _accepted(mechanism, half)]
    return [reports]


def _value(mechanism: Mechanism, reports: Reports, options: dict[str, Any]) -> Floats:
    return mechanism.estimate(mechanism.accumulate(reports), **options).value
