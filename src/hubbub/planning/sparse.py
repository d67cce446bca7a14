"""The exact errors of all mechanisms for sparse ternary vectors at one setting."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.ternary.rates import Quantity
from hubbub.mechanisms.ternary.ternary import TernaryMechanism


@dataclass(frozen=True)
class TernaryRow:
    """One mechanism at one setting.

    Parameters
    ----------
    mechanism
        Its name.
    error
        The exact mean squared error, summed over the positions; None where the mechanism has none.
    effective_epsilon
        What a report spends.
    bits
        How many bits a report holds.
    why
        Why there is no error: the mechanism refuses the setting, or does not estimate the quantity.
    """

    mechanism: str
    error: float | None = None
    effective_epsilon: float | None = None
    bits: int | None = None
    why: str = ""

    def to_dict(self) -> dict[str, Json]:
        """The row as JSON."""
        return asdict(self)


def compare_ternary(
    *, epsilon: float, dimension: int, sparsity: int, n: int = 1, of: Quantity = "mean"
) -> list[TernaryRow]:
    """A row for every registered ternary mechanism with its own best parameters, the smallest error first.

    Parameters are chosen for the quantity `of`, where a mechanism has such parameters. Everybody is assumed to hold
    `sparsity` entries, as in the papers.

    Parameters
    ----------
    epsilon, dimension, sparsity
        The setting.
    n
        How many people report.
    of
        The error of the mean, or of the frequency.
    """
    setting = {"epsilon": epsilon, "dimension": dimension, "sparsity": sparsity}
    rows = [_row(kind, setting, n, of) for kind in MECHANISMS.usable().values() if issubclass(kind, TernaryMechanism)]
    return sorted(rows, key=lambda row: math.inf if row.error is None else float(f"{row.error:.9g}"))


def _row(kind: type[TernaryMechanism], setting: dict[str, Any], n: int, of: Quantity) -> TernaryRow:
    try:
        mechanism = kind.best_for(of, **setting)
    except InvalidValue as error:
        return TernaryRow(kind.__name__, why=f"refused: {error}")
    estimates_it = of in mechanism.answers
    return TernaryRow(
        kind.__name__,
        error=mechanism.mse(n, of=of) if estimates_it else None,
        effective_epsilon=mechanism.effective_epsilon,
        bits=mechanism.report_bits,
        why="" if estimates_it else f"its reports tell no {of}",
    )
