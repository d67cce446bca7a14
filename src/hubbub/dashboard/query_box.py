"""The query box of a table: a query, its answer as a table and as bars, its plan, and the answer as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.dashboard.answers import Value
from hubbub.dashboard.bars import MOST_ROWS, BarTable, fold
from hubbub.dashboard.layout import facts, path_to, table
from hubbub.dashboard.markup import Child, Html, el, join
from hubbub.questions import Shape
from hubbub.questions.collection import Collection

if TYPE_CHECKING:
    from hubbub.query.answer import QueryAnswer
    from hubbub.query.intervals import AnswerInterval

LONGEST = 10_000
_MAY_ASK = (
    "Counts under any conditions on these columns, and sums, means and quantiles of numbers. The server knows step.",
    "Counts under any conditions on these columns, and sums and means of numbers, of one step.",
)
_MOST_DIGITS, _MOST_SIGNS = 12, 40


class BoxQuery(NamedTuple):
    """What a form asks of a table: the query, and the steps that it is of."""

    sql: str
    first: int | str | None = None
    last: int | str | None = None

    @staticmethod
    def read(asked: Mapping[str, str]) -> BoxQuery | None:
        """From the fields of a form; None where they ask nothing."""
        sql = asked.get("sql", "")[:LONGEST]
        if not sql.strip():
            return None
        return BoxQuery(sql, *(_step(asked.get(name, "")) for name in ("from", "to")))

    def fields(self) -> dict[str, str]:
        """The same as fields of a form."""
        return {"sql": self.sql, "from": _shown(self.first), "to": _shown(self.last)}


def query_section(
    collection: Collection, name: str, shape: Shape, asked: BoxQuery | None, answer: QueryAnswer | str | None
) -> Html:
    """The box, and below it what was answered, or why nothing was."""
    columns = facts([(column, values) for column, values in shape.columns.items()])
    example = f'SELECT COUNT(*) FROM "{name}"'  # noqa: S608 - shown, not run
    text = el("textarea", asked.sql if asked else example, name="sql", rows=4, spellcheck="false", aria_label="Query")
    steps = [
        el("label", f"{word} step or date ", el("input", name=key, size=12, value=_shown(step)))
        for word, key, step in (
            ("from", "from", asked.first if asked else None),
            ("to", "to", asked.last if asked else None),
        )
    ]
    form = el(
        "form",
        text,
        el("p", steps, el("button", "Ask"), class_="choose"),
        method="post",
        action=path_to("results", collection.name, name),
    )
    title = f"q-{name}-sql"
    return el(
        "section",
        el("h3", "Ask by SQL", id=title),
        el(
            "p",
            f"{_MAY_ASK[shape.form == 'marginals']} The latest step with reports is asked, unless others are named, "
            "here or behind WHERE. EXPLAIN before a query says how it is answered, and how far off that will be. "
            "DESCRIBE lists the columns.",
            class_="note",
        ),
        columns,
        form,
        None if asked is None or answer is None else _query_answer(collection, name, asked, answer),
        aria_labelledby=title,
        class_="sql",
    )


def _query_answer(collection: Collection, name: str, asked: BoxQuery, answer: QueryAnswer | str) -> Html:
    if isinstance(answer, str):
        return el("p", answer, class_="notice", role="alert")
    if not answer.columns:
        return el("pre", answer.plan)
    parts: list[Child] = [_bars(name, answer), _rows(answer)]
    parts += [el("p", note, class_="note") for note in answer.notes]
    if answer.plan:
        parts.append(fold(f"q-{name}-plan", "How it was answered", el("pre", answer.plan)))
    fields = [el("input", type="hidden", name=key, value=text) for key, text in asked.fields().items()]
    download = path_to("results", collection.name, name, "answer.csv")
    parts.append(el("form", fields, el("p", el("button", "The answer as CSV")), method="post", action=download))
    parts.append(el("p", f"From {answer.n:,} reports.", class_="note"))
    return join(parts)


def _bars(name: str, answer: QueryAnswer) -> Html | None:
    """The first estimate, a bar for each group."""
    place = next((place for place, column in enumerate(answer.columns) if column.estimate), None)
    if place is None:
        return None
    keys = [other for other, column in enumerate(answer.columns) if not column.estimate]
    values = []
    for code, row in enumerate(answer.rows[:MOST_ROWS]):
        label = ", ".join("NULL" if row[key] is None else str(row[key]) for key in keys) or answer.columns[place].name
        value, low, high = _ends(row[place])
        values.append(Value(code, label, value, low, high, signed=True))
    return BarTable(values, "quantity", f"q-{name}-answer").table(values, f"{answer.columns[place].name}, drawn")


def _rows(answer: QueryAnswer) -> Html | None:
    headings, rows = answer_rows(answer)
    keys = [column.name for column in answer.columns if not column.estimate]
    if len(headings) <= 3 and len(rows) == 1:
        return None  # the bar says it all
    shown: list[Sequence[Child]] = [[_number(cell) for cell in row] for row in rows[:MOST_ROWS]]
    return table("The answer", [heading if heading in keys else f"#{heading}" for heading in headings], shown)


def answer_rows(answer: QueryAnswer) -> tuple[list[str], list[list[Any]]]:
    """The answer as plain rows: each estimate is three columns, its name, and that with _low and _high."""
    headings: list[str] = []
    for column in answer.columns:
        ends = [f"{column.name}_low", f"{column.name}_high"] if column.estimate else []
        headings += [column.name, *ends]
    rows = []
    for row in answer.rows:
        plain: list[Any] = []
        for column, cell in zip(answer.columns, row, strict=True):
            plain += _ends(cell) if column.estimate else [cell]
        rows.append(plain)
    return headings, rows


def answer_csv(answer: QueryAnswer) -> str:
    """The answer as CSV; of EXPLAIN, the plan."""
    if not answer.columns:
        return answer.plan + "\n"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    headings, rows = answer_rows(answer)
    writer.writerow([_plain(heading) for heading in headings])
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return out.getvalue()


def _plain(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell


def _ends(cell: AnswerInterval) -> list[float | None]:
    """Value, low and high, cut to what is possible; None where there is no number."""
    cut = (min(max(number, cell.least), cell.most) for number in (cell.value, cell.low, cell.high))
    return [number if math.isfinite(number) else None for number in cut]


def _number(cell: Any) -> str:
    if cell is None:
        return "NULL"
    return f"{cell:,.6g}" if isinstance(cell, float) else str(cell)


def _step(text: str) -> int | str | None:
    """A step, a date or a time; None if there is none."""
    plain = text.strip()[:_MOST_SIGNS]
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= _MOST_DIGITS else plain or None


def _shown(step: int | str | None) -> str:
    return "" if step is None else str(step)
