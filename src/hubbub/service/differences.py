"""The difference of two groups in a release of a question whose answers are by group."""

from __future__ import annotations

import json
import math

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
    """Group `of` minus group `minus`, for every number of a group, with intervals; withheld if the release is.

    Parameters
    ----------
    row, shape
        The release, and the shape of the question's answers.
    by
        The field that makes the groups; by default the first one.
    of, minus
        The names of the two groups.
    level
        The confidence level of the intervals.

    Example:
        >>> shape = Shape(form="groups", size=2, groups={"os": ("13", "14")}, values=("load",), unit="load")
        >>> row = ReleaseRow("0" * 32, "q", 7, 0.0, '{"n": 10}', "10 reports; at least 20 are needed")
        >>> group_difference(row, shape, by=None, of="14", minus="13")["withheld"]
        '10 reports; at least 20 are needed'
    """
    if not shape.groups:
        raise InvalidValue("question", row.question, "a question whose answers are by group")
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
    estimate, withheld = payload, row.withheld
    if field != next(iter(shape.groups)):
        estimate = payload.get("estimates", {}).get(breakdown_name(field, main=False), {"n": 0})
        withheld = estimate.get("withheld", withheld)
    head: dict[str, Json] = {"question": row.question, "step": row.step, "by": field, "of": of, "minus": minus}
    values: list[Json] = list(shape.values)
    answer: dict[str, Json] = {**head, "n": estimate["n"], "level": level, "withheld": withheld, "labels": values}
    if withheld is None and "ratio" not in estimate:
        answer["withheld"] = "nobody answered"
    if answer["withheld"] is not None:
        return {**answer, **dict.fromkeys(("value", "low", "high"))}
    numbers = (np.array(estimate[name], dtype=np.float64) for name in ("value", "variance"))  # null becomes NaN
    ratios, size = stored_estimate(estimate, *numbers), len(shape.values)
    assert isinstance(ratios, Ratios)
    first, second = groups.index(of) * size, groups.index(minus) * size
    differences = [ratios.difference(first + index, second + index, level) for index in range(size)]
    value: list[Json] = [None if math.isnan(difference.value) else difference.value for difference in differences]
    low: list[Json] = [difference.low for difference in differences]
    high: list[Json] = [difference.high for difference in differences]
    return {**answer, "value": value, "low": low, "high": high}
