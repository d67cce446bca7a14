"""The predicted errors and costs of each frequency oracle at one setting, and which of them to use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.core.plugin_guard import PluginFailed
from hubbub.core.spec import Json
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.support import SupportMechanism
from hubbub.privacy.plan_request import PlanRequest

TIE = 0.01


@dataclass(frozen=True)
class Prediction:
    """One oracle at one setting.

    Parameters
    ----------
    mechanism
        Its name.
    stderr
        The predicted standard error of a share; None where there is no formula, or the oracle refuses the setting. For
        an oracle with a bias that no number of reports removes (FLH), the largest: everyone else holds one value.
    detectable
        The smallest share that stands out from chance (Eq 3.13).
    bytes
        The size of a report.
    effective_epsilon
        What a report spends: less than epsilon where the oracle cannot use it all, or keeps some for later reports.
    server, work
        What a report costs the server, in operations and in words.
    total_variance
        Of all shares together.
    shift
        How far forged reports (1% of all, unless requested otherwise) can move the share, at most, up or down.
    bias
        "none", or "heuristic": such an oracle is listed, and never picked.
    picked, why
        Whether this oracle is picked, and why or why not.
    """

    mechanism: str
    stderr: float | None = None
    detectable: float | None = None
    bytes: int | None = None
    effective_epsilon: float | None = None
    server: float | None = None
    work: str = ""
    total_variance: float | None = None
    shift: float | None = None
    bias: str = "none"
    picked: bool = False
    why: str = ""

    def to_dict(self) -> dict[str, Json]:
        """The row as JSON."""
        return asdict(self)


def oracles() -> list[type[FrequencyOracle]]:
    """Every registered frequency oracle: the mechanisms whose errors have a formula."""
    return [kind for kind in MECHANISMS.usable().values() if issubclass(kind, FrequencyOracle)]


def predict(request: PlanRequest, n: int, epsilon: float) -> list[Prediction]:
    """A row for every registered mechanism that estimates shares, the smallest error first."""
    rows = [_row(kind, request, n, epsilon) for kind in oracles()]
    rows.sort(key=lambda row: math.inf if row.stderr is None else row.stderr)
    broken = [Prediction(name, why=f"refused: {reason}") for name, reason in MECHANISMS.broken().items()]
    return rows + list(_without_formula(request, epsilon)) + broken


def pick(rows: Sequence[Prediction], request: PlanRequest) -> Prediction | None:
    """The row to use; None if no oracle is within `most_bytes` and `most_shift`.

    Among those within most_bytes and most_shift, the smallest standard error; ties within 1% go to the cheaper server,
    then to the fewer bytes, then to the smaller error.
    """
    order = [kind.__name__ for kind in oracles()]
    eligible = [(row.stderr, row) for row in rows if row.stderr is not None and _may_be_picked(row, request)]
    best = min((error for error, _ in eligible), default=0.0)

    def preference(entry: tuple[float, Prediction]) -> tuple[float, int, float, int]:
        # Errors equal to a tenth of a percent are equal: then the order of the registry, the chapter's own.
        error, row = entry
        return row.server or 0.0, row.bytes or 0, round(error / best, 3), order.index(row.mechanism)

    near = [entry for entry in eligible if entry[0] <= best * (1 + TIE)]
    return min(near, key=preference)[1] if near else None


def _may_be_picked(row: Prediction, request: PlanRequest) -> bool:
    return row.bias == "none" and request.fits(row.bytes) and request.tolerates(row.shift)


def _row(kind: type[FrequencyOracle], request: PlanRequest, n: int, epsilon: float) -> Prediction:
    try:
        return _prediction(kind(epsilon=epsilon, domain=request.domain), request, n)
    except (InvalidValue, PluginFailed) as error:
        return Prediction(kind.__name__, bias=kind.bias, why=f"refused: {error}")


def _prediction(oracle: FrequencyOracle, request: PlanRequest, n: int) -> Prediction:
    noise = oracle.noise(n)
    return Prediction(
        type(oracle).__name__,
        stderr=math.sqrt(oracle.variance(n, request.share) + oracle.confusion * (1 - request.share) ** 2),
        detectable=oracle.threshold(n, request.alpha),
        bytes=oracle.report_bytes,
        effective_epsilon=oracle.effective_epsilon,
        server=oracle.server_operations(n),
        work=oracle.server_work,
        # The shares sum to 1, and their squares to no more.
        total_variance=oracle.size * noise.floor + noise.slope + (oracle.size - 1) * oracle.confusion,
        shift=request.shift(oracle),
        bias=oracle.bias,
    )


def _without_formula(request: PlanRequest, epsilon: float) -> Iterator[Prediction]:
    options: dict[str, Any] = {"epsilon": epsilon, "domain": request.domain}
    for kind in MECHANISMS.usable().values():
        has_formula = issubclass(kind, SupportMechanism | Measured)  # Measured is an oracle with numbers beside it
        if has_formula or "domain" not in {field.name for field in fields(kind)}:
            continue
        try:
            mechanism = kind(**options)
            yield Prediction(
                kind.__name__,
                bytes=mechanism.report_bytes,
                effective_epsilon=mechanism.effective_epsilon,
                bias=kind.bias,
                why="its error has no formula: values share parts of a report, and are separated by regression",
            )
        except (InvalidValue, PluginFailed) as error:
            yield Prediction(kind.__name__, bias=kind.bias, why=f"refused: {error}")
