"""The predicted errors and costs of each frequency oracle, and the number of reports or epsilon that an error takes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from hubbub.core.domain import as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginFailed
from hubbub.core.spec import Json
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle, SupportMechanism

FORGED = 0.01
"""The part of all reports that is assumed to be forged, unless another is given."""

_MANY = 10
_TWICE = 2


def warns(weight: float, least: float) -> bool:
    """Whether a mechanism deserves a warning: a forged report counts for more than ten people, and for more than
    needed.

    More than needed is more than twice what a forged report counts for under the mechanism to compare with (`least`).
    At d = 3 e^eps + 2 values, where direct encoding (GRR) stops being the most accurate, forged reports move it exactly
    twice as far as OUE.
    """
    return weight > _MANY and weight > _TWICE * least


def part_text(part: float) -> str:
    """A part of all reports in percent."""
    return f"{100 * part:.3g}%"


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The arguments of `hubbub.plan`, checked."""

    domain: DomainLike
    n: int | None = None
    epsilon: float | None = None
    stderr: float | None = None
    share: float = 0.0
    most_bytes: int | None = None
    alpha: float = 0.05
    forged: float = FORGED
    most_shift: float | None = None

    def __post_init__(self) -> None:
        domain = as_domain("domain", self.domain)
        if domain.size is None:
            raise InvalidValue("domain", domain, "a domain with a size; of sets, see plan_sets")
        object.__setattr__(self, "domain", domain)
        known = [name for name in ("n", "epsilon", "stderr") if getattr(self, name) is not None]
        if len(known) != 2:
            raise InvalidValue("n, epsilon, stderr", known, "two of the three; the third is solved")
        for name in ("n", "most_bytes"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InvalidValue(name, value, "an integer of at least 1")
            object.__setattr__(self, name, int(value))
        self._number("epsilon", 0.0, math.inf)
        self._number("stderr", 0.0, math.inf)
        self._number("alpha", 0.0, domain.size)
        self._number("forged", 0.0, 1.0)
        self._number("most_shift", 0.0, math.inf)
        if self.share != 0:
            self._number("share", 0.0, math.nextafter(1.0, 2.0))

    @property
    def size(self) -> int:
        """How many values there are."""
        size = as_domain("domain", self.domain).size
        assert size is not None
        return size

    @property
    def unknown(self) -> Literal["n", "epsilon", "stderr"]:
        """Which of n, epsilon and stderr is to be solved for."""
        if self.n is None:
            return "n"
        return "epsilon" if self.epsilon is None else "stderr"

    def fits(self, report_bytes: int | None) -> bool:
        """Whether a report is small enough."""
        return self.most_bytes is None or (report_bytes is not None and report_bytes <= self.most_bytes)

    def shift(self, oracle: FrequencyOracle) -> float:
        """How far forged reports, the part `forged` of all, can move `share` under an oracle."""
        return oracle.influence().shift(self.forged, self.share).largest

    def tolerates(self, shift: float | None) -> bool:
        """Whether a shift by forged reports is within `most_shift`."""
        return self.most_shift is None or (shift is not None and shift <= self.most_shift)

    def _number(self, name: str, above: float, below: float) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
            raise InvalidValue(name, value, f"a number above {above:g} and below {below:g}")


TIE = 0.01


@dataclass(frozen=True)
class Prediction:
    """One oracle at one setting.

    Parameters
    ----------
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
        has_formula = issubclass(kind, SupportMechanism | Measured)  # Measured is an oracle with public numbers
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


MOST_EPSILON = 20.0
"""The largest epsilon that a plan proposes: above it, a report nearly reveals its value."""

LEAST_EPSILON = 0.01
"""The smallest epsilon that a plan proposes."""

_MOST_REPORTS = 1 << 53
_PRECISION = 1e-13


def standard_error(kind: type[FrequencyOracle], request: PlanRequest, n: int, epsilon: float) -> float:
    """The predicted standard error of a share; infinite where the oracle refuses the setting or fails."""
    try:
        return math.sqrt(kind(epsilon=epsilon, domain=request.domain).variance(n, request.share))
    except (InvalidValue, PluginFailed):
        return math.inf


def needed_n(kind: type[FrequencyOracle], request: PlanRequest, epsilon: float, stderr: float) -> int:
    """The fewest reports that bring the standard error down to `stderr`: the variance is one report's over n."""
    oracle = kind(epsilon=epsilon, domain=request.domain)
    single = oracle.variance(1, request.share)
    if single > stderr**2 * _MOST_REPORTS:
        raise InvalidValue(
            "stderr", stderr, f"at least {math.sqrt(single / _MOST_REPORTS):.3g}, which takes 2^53 reports"
        )
    n = max(1, math.ceil(single / stderr**2) - 1)
    while math.sqrt(oracle.variance(n, request.share)) > stderr:
        n += 1
    return n


def needed_epsilon(
    kind: type[FrequencyOracle], request: PlanRequest, n: int, stderr: float, most: float = MOST_EPSILON
) -> float | None:
    """The smallest epsilon whose standard error is at most `stderr`, by bisection; None if `most` does not reach it.

    With a limit on how far forged reports may move a share, the smallest epsilon that keeps this limit too. The error
    is computed from the oracle's integers and is a step function of epsilon: the result is the beginning of a step, and
    its error is at or just below `stderr`.
    """

    def reached(epsilon: float) -> bool:
        if standard_error(kind, request, n, epsilon) > stderr:
            return False
        return request.most_shift is None or request.tolerates(
            request.shift(kind(epsilon=epsilon, domain=request.domain))
        )

    low, high = most, most
    if not reached(high):
        return None
    while reached(low):
        if low <= LEAST_EPSILON:
            return low
        low, high = max(low / 2, LEAST_EPSILON), low
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
