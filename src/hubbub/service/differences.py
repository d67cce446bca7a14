"""How two groups differ: of a question that is told by group, from one of its releases."""

from __future__ import annotations

import json

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.ratios import Ratios
from hubbub.core.spec import Json
from hubbub.questions.group_numbers import breakdown_name
from hubbub.questions.shapes import Shape
from hubbub.service.releases import stored_estimate
from hubbub.service.store.base import ReleaseRow


def group_difference(
    row: ReleaseRow, shape: Shape, *, by: str | None, of: str, minus: str, level: float = 0.95
) -> dict[str, Json]:
    """One group minus another, for every number that is told of a group, with intervals; withheld as the release is.

    Parameters
    ----------
    row, shape
        The release, and what the question's answers look like.
    by
        The field that makes the groups; the first one unless given.
    of, minus
        The names of the two groups.
    level
        Of the intervals.

    Example:
        >>> shape = Shape(form="groups", size=2, groups={"os": ("13", "14")}, values=("load",), unit="load")
        >>> row = ReleaseRow("0" * 32, "q", 7, 0.0, '{"n": 10}', "10 reports; at least 20 are needed")
        >>> group_difference(row, shape, by=None, of="14", minus="13")["withheld"]
        '10 reports; at least 20 are needed'
    """
    if not shape.groups:
        raise InvalidValue("question", row.question, "a question that is told by group")
    field = by if by is not None else next(iter(shape.groups))
    if field not in shape.groups:
        raise InvalidValue("by", field, f"one of {', '.join(shape.groups)}")
    groups = shape.groups[field]
    for name, group in (("of", of), ("minus", minus)):
        if group not in groups:
            raise InvalidValue(name, group, f"one of {', '.join(groups[:20])}")
    if of == minus:
        raise InvalidValue("minus", minus, f"another group than {of}")
    payload = json.loads(row.payload)
    told, withheld = payload, row.withheld
    if field != next(iter(shape.groups)):
        told = payload.get("estimates", {}).get(breakdown_name(field, main=False), {"n": 0})
        withheld = told.get("withheld", withheld)
    head: dict[str, Json] = {"question": row.question, "step": row.step, "by": field, "of": of, "minus": minus}
    values: list[Json] = list(shape.values)
    answer: dict[str, Json] = {**head, "n": told["n"], "level": level, "withheld": withheld, "labels": values}
    if withheld is None and "ratio" not in told:
        answer["withheld"] = "nobody answered"
    if answer["withheld"] is not None:
        return {**answer, **dict.fromkeys(("value", "low", "high"))}
    numbers = (np.array(told[name], dtype=np.float64) for name in ("value", "variance"))  # null becomes NaN
    ratios, size = stored_estimate(told, *numbers), len(shape.values)
    assert isinstance(ratios, Ratios)
    first, second = groups.index(of) * size, groups.index(minus) * size
    apart = [ratios.difference(first + place, second + place, level) for place in range(size)]
    value: list[Json] = [None if one.value != one.value else one.value for one in apart]
    low: list[Json] = [one.low for one in apart]
    high: list[Json] = [one.high for one in apart]
    return {**answer, "value": value, "low": low, "high": high}
