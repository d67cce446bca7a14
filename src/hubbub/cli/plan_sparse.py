"""`hubbub plan --sparsity`: which mechanism for sparse vectors and key-value data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hubbub.cli.output import emit, page
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.privacy.compare_ternary import TernaryRow


def plan_sparse(*, domain: int, sparsity: int, n: int, epsilon: float, of: str, as_json: bool) -> None:
    """Print the exact error of every ternary mechanism at one setting, and which to use."""
    from hubbub.cli.tables import plain_table
    from hubbub.privacy.compare_ternary import compare_ternary

    if of not in ("mean", "frequency"):
        raise InvalidValue("--of", of, "mean or frequency")
    rows = compare_ternary(epsilon=epsilon, dimension=domain, sparsity=sparsity, n=n, of=of)  # type: ignore[arg-type]
    best = rows[0]
    if best.error is None:
        raise InvalidValue("--sparsity", sparsity, best.why)
    if as_json:
        setting = {"domain": domain, "sparsity": sparsity, "n": n, "epsilon": epsilon, "of": of}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    title = f"{domain:,} entries, at most {sparsity:,} not 0; {n:,} reports, epsilon {epsilon:.4g}: each entry's {of}\n"
    table = plain_table("mechanism", "stderr", "bits", "", left=[""], title=title)
    for row in rows:
        numbers = _stderr(row, domain), "-" if row.bits is None else f"{row.bits:,}"
        style = "bold green" if row is best else "dim" if row.error is None else None
        table.add_row(row.mechanism, *numbers, _note(row, best), style=style)
    page().print(table, f"\n{best.mechanism} has the smallest error of the {of}, if everyone has {sparsity:,} entries.")
    return None


def _stderr(row: TernaryRow, domain: int) -> str:
    return "-" if row.error is None else f"{math.sqrt(row.error / domain):.3g}"


def _note(row: TernaryRow, best: TernaryRow) -> str:
    if row is best:
        return "picked"
    if row.error is None or best.error is None:
        return "refused" if row.bits is None else row.why
    return f"{row.error / best.error:.2f} times the squared error"
