"""Every mechanism for sparse ternary vectors at one setting, by its exact error."""

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
        The exact mean squared error, summed over the positions; None where there is none to tell.
    effective_epsilon
        What a report spends.
    bits
        How many bits a report holds.
    why
        Why there is no error: what the mechanism says against the setting, or that it does not tell the quantity.
    """

    mechanism: str
    error: float | None = None
    effective_epsilon: float | None = None
    bits: int | None = None
    why: str = ""

    def to_dict(self) -> dict[str, Json]:
        """The row as JSON.

        Example:
            >>> TernaryRow("NetSub", error=6110.6).to_dict()["error"]
            6110.6
        """
        return asdict(self)


def compare_ternary(
    *, epsilon: float, dimension: int, sparsity: int, n: int = 1, of: Quantity = "mean"
) -> list[TernaryRow]:
    """A row for every registered ternary mechanism with its own best parameters, the smallest error first.

    The parameters are those for the quantity that is asked, where the mechanism has any to choose by it. Everybody is
    taken to hold `sparsity` entries, as the papers do.

    Parameters
    ----------
    epsilon, dimension, sparsity
        The setting.
    n
        How many people report.
    of
        The error of the mean, or of the frequency.

    Example:
        >>> for row in compare_ternary(epsilon=1.0, dimension=128, sparsity=8)[:4]:
        ...     print(row.mechanism, round(row.error))
        NetSub 6111
        NetSeed 6111
        ExSub 7981
        CoCo 8872
    """
    given = {"epsilon": epsilon, "dimension": dimension, "sparsity": sparsity}
    rows = [_row(kind, given, n, of) for kind in MECHANISMS.values() if issubclass(kind, TernaryMechanism)]
    return sorted(rows, key=lambda row: math.inf if row.error is None else float(f"{row.error:.9g}"))


def _row(kind: type[TernaryMechanism], given: dict[str, Any], n: int, of: Quantity) -> TernaryRow:
    try:
        mechanism = kind.best_for(of, **given)
    except InvalidValue as error:
        return TernaryRow(kind.__name__, why=f"refused: {error}")
    told = of in mechanism.answers
    return TernaryRow(
        kind.__name__,
        error=mechanism.mse(n, of=of) if told else None,
        effective_epsilon=mechanism.effective_epsilon,
        bits=mechanism.report_bits,
        why="" if told else f"its reports tell no {of}",
    )
