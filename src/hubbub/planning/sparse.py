"""The exact errors of all mechanisms for sparse ternary vectors at one setting."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.ternary.ternary import Quantity, TernaryMechanism
from hubbub.privacy.amplify import local_epsilon


@dataclass(frozen=True)
class TernaryRow:
    """One mechanism at one setting.

    Parameters
    ----------
    error
        The exact mean squared error, summed over the positions; None where the mechanism has none.
    within
        What the errors of all means stay below with a probability of 95% (`max_error`); None for frequencies.
    why
        Why there is no error: the mechanism refuses the setting, or does not estimate the quantity.
    """

    mechanism: str
    error: float | None = None
    within: float | None = None
    effective_epsilon: float | None = None
    bits: int | None = None
    why: str = ""

    def to_dict(self) -> dict[str, Json]:
        return asdict(self)


def compare_ternary(
    *,
    epsilon: float,
    dimension: int,
    sparsity: int,
    n: int = 1,
    of: Quantity = "mean",
    central_epsilon: float | None = None,
    delta: float = 1e-6,
) -> list[TernaryRow]:
    """A row for every registered ternary mechanism with its own best parameters, the smallest error first.

    Parameters are chosen for the quantity `of`, where a mechanism has such parameters. Everybody is assumed to hold
    `sparsity` entries, as in the papers.

    Parameters
    ----------
    of
        The error of the mean, or of the frequency.
    central_epsilon, delta
        What the shuffled batch may spend; None where nothing is shuffled. Each mechanism then has the largest local
        epsilon for which that is proved, at most `epsilon`; one whose shuffled reports have no such bound is refused.
    """
    vectors = {"dimension": dimension, "sparsity": sparsity}

    def make(kind: type[TernaryMechanism]) -> TernaryMechanism:
        def with_epsilon(local: float) -> TernaryMechanism:
            return kind.best_for(of, epsilon=local, **vectors)

        if central_epsilon is None:
            return with_epsilon(epsilon)
        largest = local_epsilon(with_epsilon, epsilon=central_epsilon, n=n, delta=delta, most=epsilon, quick=True)
        assert isinstance(largest, TernaryMechanism)
        return largest

    rows = [_row(kind, make, n, of) for kind in MECHANISMS.usable().values() if issubclass(kind, TernaryMechanism)]
    return sorted(rows, key=lambda row: math.inf if row.error is None else float(f"{row.error:.9g}"))


def _row(
    kind: type[TernaryMechanism], make: Callable[[type[TernaryMechanism]], TernaryMechanism], n: int, of: Quantity
) -> TernaryRow:
    try:
        mechanism = make(kind)
    except InvalidValue as error:
        return TernaryRow(kind.__name__, why=f"refused: {error}")
    estimates_it = of in mechanism.answers
    return TernaryRow(
        kind.__name__,
        error=mechanism.mse(n, of=of) if estimates_it else None,
        within=mechanism.max_error(n) if of == "mean" else None,
        effective_epsilon=mechanism.effective_epsilon,
        bits=mechanism.report_bits,
        why="" if estimates_it else f"its reports tell no {of}",
    )
