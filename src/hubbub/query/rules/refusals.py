"""Rules that refuse statements of other shapes, unlisted expressions, and columns where they cannot be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.errors import did_you_mean
from hubbub.query.sandbox import check_time
from hubbub.query.trees import Tree, exp, private_names, refused

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

MOST_GROUPED = 4096
"""The largest number of values of a private column in GROUP BY."""


def check_placement(select: Tree, schema: TableSchema) -> Tree:
    """Refuse private columns outside of WHERE and GROUP BY, and results that are neither keys nor aggregates."""
    where = select.args.get("where")
    if where is not None:
        for call in where.find_all(exp.AggFunc):
            raise refused(call, f"{call.sql_name()} cannot stand in WHERE", "put it behind HAVING")
    group = select.args.get("group")
    keys = [] if group is None else group.expressions
    for key in keys:
        _check_key(key, schema)
    known = {key.sql("duckdb") for key in keys}
    for item in select.expressions:
        _check_result(item.unalias(), known, schema, "SELECT")
    having = select.args.get("having")
    if having is not None:
        if not keys and not having.find(exp.AggFunc):
            raise refused(having, "HAVING without an aggregate", "put the condition behind WHERE")
        _check_result(having.this, known, schema, "HAVING")
    order = select.args.get("order")
    for ordered in [] if order is None else order.expressions:
        _check_result(ordered.this, known, schema, "ORDER BY")
    for part in ("limit", "offset"):
        bound = select.args.get(part)
        if bound is not None and not (isinstance(bound.expression, exp.Literal) and bound.expression.is_int):
            raise refused(bound, f"{part.upper()} is no whole number", f"ask {part.upper()} 10")
    return select


def _check_key(key: Tree, schema: TableSchema) -> None:
    for call in key.find_all(exp.AggFunc):
        raise refused(call, f"{call.sql_name()} cannot stand in GROUP BY", "put it behind SELECT")
    private = private_names(key, schema)
    if not private:
        if not key.find(exp.Column):
            raise refused(key, "GROUP BY a constant", "group by a column")
        return
    others = {inner.name for inner in key.find_all(exp.Column)} - {private[0]}
    if others:
        problem = f"{private[0]} is private: it cannot be grouped by together with {min(others)}"
        raise refused(key, problem, f"ask GROUP BY {private[0]}, {min(others)}")
    column = next(column for column in schema.private if column.name == private[0])
    if isinstance(key, exp.Column) and column.size > MOST_GROUPED:
        raise refused(key, f"{column.name} has {column.size:,} values", f"at most {MOST_GROUPED:,} are grouped by")


def _check_result(node: Tree, keys: set[str], schema: TableSchema, clause: str) -> None:
    """Refuse a result with a column that is neither a key nor inside an aggregate."""
    check_time()
    if node.sql("duckdb") in keys:
        return
    if isinstance(node, exp.AggFunc):
        for inner in [call for call in node.find_all(exp.AggFunc) if call is not node]:
            raise refused(inner, "an aggregate of an aggregate", "ask one of a column")
        return
    if isinstance(node, exp.Column):
        if private_names(node, schema):
            raise refused(
                node,
                f"{node.name} is private: nobody's is known",
                f"in {clause} it can stand with GROUP BY {node.name}",
            )
        raise refused(node, f"{node.name} is in no aggregate", f"ask SUM({node.name}), or GROUP BY {node.name}")
    for part in node.iter_expressions():
        _check_result(part, keys, schema, clause)


KNOWN_PARTS = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}
NAMES = {
    "with_": "WITH",
    "joins": "a join",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL",
    "into": "INTO",
    "sample": "a sample",
    "pivots": "PIVOT",
}


def check_statement(select: Tree, schema: TableSchema) -> Tree:
    """Refuse all but SELECT ... FROM one table with the known clauses."""
    check_parts(select, schema)
    for join in select.args.get("joins") or []:
        raise refused(join, "a join is not answered", _instead("joins", schema))
    for subquery in select.find_all(exp.Subquery, exp.Exists, exp.Select):
        if subquery is not select:
            problem = "sub-queries are answered behind FROM alone"
            raise refused(subquery, problem, "ask the inner query first, and put its answer in")
    source = select.args.get("from_")
    if source is None:
        raise refused(select, "there is no FROM", f"ask FROM {schema.name}")
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refused(source, "only a table can stand behind FROM", f"ask FROM {schema.name}")
    extra = [part for part, value in table.args.items() if value and part not in ("this", "alias")]
    if extra:
        raise refused(source, "only the name of a table can stand behind FROM", f"ask FROM {schema.name}")
    if table.name.casefold() != schema.name.casefold():
        raise refused(table, f"unknown table {table.sql('duckdb')}", did_you_mean(table.name, [schema.name]))
    for window in select.find_all(exp.Window):
        raise refused(window, "windows are not answered", "ask GROUP BY")
    for order in select.find_all(exp.Star):
        if not isinstance(order.parent, exp.Count):
            raise refused(order, "rows cannot be shown: nobody's are known", "ask COUNT(*), SUM(...) or AVG(...)")
    return select


def check_parts(select: Tree, schema: TableSchema) -> None:
    """Refuse clauses that are not known."""
    for part, value in select.args.items():
        if value and part not in {*KNOWN_PARTS, "joins"}:
            name = NAMES.get(part, part.strip("_").upper())
            node = value[0] if isinstance(value, list) else value
            where = node if isinstance(node, exp.Expression) else select.find(exp.Table) or select
            raise refused(where, f"{name} is not answered", _instead(part, schema))


def _instead(part: str, schema: TableSchema) -> str:
    if part in ("joins", "laterals"):
        return f"{schema.name} is joined with public tables, here there are none"
    if part == "distinct":
        return "ask GROUP BY"
    return "known are SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET"


STRUCTURE = "Select From Table TableAlias Where Group Having Order Ordered Limit Offset Alias Identifier Column Star"
LOGIC = "And Or Not Paren EQ NEQ GT GTE LT LTE In Between Is Like ILike Null Boolean Literal Case If Coalesce Filter"
ARITHMETIC = (
    "Add Sub Mul Div IntDiv Mod Neg Abs Round Floor Ceil Ln Log Exp Sqrt Pow Least Greatest Sign Nullif WidthBucket"
)
TEXTS = "Lower Upper Length Trim Substring Left Right Concat DPipe StartsWith Contains"
TIMES = "Extract Year Month Day Week Quarter DayOfWeek TimestampTrunc DateTrunc Date Var"
CASTS = "Cast TryCast DataType DataTypeParam"
AGGREGATES = (
    "Count CountIf Sum Avg Stddev StddevSamp StddevPop Variance VariancePop Median Quantile PercentileDisc "
    "PercentileCont ApproxQuantile"
)
CAST_TYPES = frozenset(
    [
        "BOOLEAN",
        "INT",
        "SMALLINT",
        "TINYINT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "TEXT",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMPNTZ",
        "DECIMAL",
    ]
)
DEEPEST = 200
"""The largest depth of a tree."""
ALLOWED = frozenset(
    getattr(exp, name) for name in " ".join((STRUCTURE, LOGIC, ARITHMETIC, TEXTS, TIMES, CASTS, AGGREGATES)).split()
)
"""The kinds of expressions that a query may have."""


def check_whitelist(select: Tree, schema: TableSchema) -> Tree:
    """Refuse a query with an unknown expression."""
    for node in select.walk():
        if type(node) not in ALLOWED:
            raise _unknown(node)
        if node.depth > DEEPEST:
            raise refused(node, "the query is nested too deeply", f"at most {DEEPEST} levels are read")
        if isinstance(node, exp.DataType) and (node.this.name not in CAST_TYPES or node.args.get("nested")):
            raise refused(
                node.parent or node, f"unknown type {node.sql('duckdb')}", "known are BIGINT, DOUBLE, VARCHAR ..."
            )
        if isinstance(node, exp.Between) and node.args.get("symmetric"):
            raise refused(node, "SYMMETRIC is not answered", "ask BETWEEN the smaller AND the larger")
        if isinstance(node, exp.Ordered) and isinstance(node.this, exp.Var):
            raise refused(node, "ORDER BY ALL is not answered", "name what the groups are ordered by")
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            raise _unknown(node.this)
    return select


def _unknown(node: Tree) -> Exception:
    if isinstance(node, exp.Max | exp.Min):
        name = node.key.upper()
        instead = "ask for a quantile: the ends of a group whose members nobody knows cannot be estimated"
        return refused(node, f"{name} is not answered", instead)
    if isinstance(node, exp.Distinct):
        return refused(node, "DISTINCT is not answered", "ask GROUP BY")
    if isinstance(node, exp.Parameter | exp.Placeholder):
        return refused(node, "parameters have no values here", "write the value itself")
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        functions = "COUNT, SUM, AVG, STDDEV, QUANTILE_DISC, ABS, ROUND, LN, EXP, LOWER, LENGTH, YEAR, CASE and CAST"
        return refused(node, f"unknown function {name.upper()}", f"known are {functions}")
    return refused(node, f"{node.key.upper()} is not answered", "ask with arithmetic and comparisons of columns")
