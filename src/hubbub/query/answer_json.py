"""Answers as JSON, and back: what a collector sends, and what `connect("http://...")` reads."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hubbub.core.errors import DecodeError
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.outputs import AnswerInterval

_PARTS = ("value", "low", "high", "stderr", "least", "most")


def answer_to_json(answer: QueryAnswer) -> dict[str, Any]:
    """An answer as JSON: a number that is not known is null, an end without a bound "inf" or "-inf"."""
    columns = [{"name": column.name, "estimate": column.estimate, "how": column.how} for column in answer.columns]
    rows = [[_cell(cell) for cell in row] for row in answer.rows]
    return {
        "columns": columns,
        "rows": rows,
        "level": answer.level,
        "n": answer.n,
        "bias": answer.bias,
        "notes": list(answer.notes),
        "explain": answer.plan,
    }


def answer_from_json(data: object) -> QueryAnswer:
    """Read an answer back; anything else is refused."""
    try:
        if not isinstance(data, Mapping):
            raise TypeError("no object")
        columns = tuple(
            AnswerColumn(str(column["name"]), bool(column["estimate"]), str(column["how"]))
            for column in data["columns"]
        )
        rows = tuple(
            tuple(_read(cell, column) for cell, column in zip(row, columns, strict=True)) for row in data["rows"]
        )
        notes = tuple(str(note) for note in data["notes"])
        level, n = float(data["level"]), int(data["n"])
        return QueryAnswer(columns, rows, level, n, str(data["bias"]), notes, str(data["explain"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError("answer", data, f"an answer in JSON: {error}") from None


def _cell(cell: Any) -> Any:
    if isinstance(cell, AnswerInterval):
        return {part: _number(getattr(cell, part)) for part in _PARTS}
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        return float(cell)
    return cell if cell is None or isinstance(cell, str | int | float | bool) else str(cell)


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _read(cell: Any, column: AnswerColumn) -> Any:
    if not column.estimate:
        return cell
    numbers = {part: cell[part] for part in _PARTS}
    return AnswerInterval(**{part: math.nan if number is None else float(number) for part, number in numbers.items()})
