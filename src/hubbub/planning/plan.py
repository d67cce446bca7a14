"""Planning: which oracle, how many users, what epsilon, for what error."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hubbub.core.drawing import html_rows
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginFailed
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.planning import plan_view
from hubbub.planning.plan_view import explained, moved_far, reason
from hubbub.planning.predict import (
    FORGED,
    LEAST_EPSILON,
    MOST_EPSILON,
    PlanRequest,
    Prediction,
    needed_epsilon,
    needed_n,
    oracles,
    pick,
    predict,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table


@dataclass(frozen=True)
class Plan:
    """The predicted error of every frequency oracle at one setting, and the oracle to use.

    Parameters
    ----------
    n, epsilon, stderr
        Two as requested, and the third as solved; `stderr` is that of the picked oracle.
    rows
        Every oracle at that setting, the smallest standard error first.
    warnings
        The oracles that forged reports move much further than the picked one, and by how much.
    """

    request: PlanRequest
    n: int
    epsilon: float
    stderr: float
    rows: tuple[Prediction, ...]
    picked: str
    why: str
    warnings: tuple[str, ...] = ()

    def mechanism(self) -> FrequencyOracle:
        """The picked oracle, ready for use."""
        return _kind(self.picked)(epsilon=self.epsilon, domain=self.request.domain)

    def to_dict(self) -> dict[str, Json]:
        return {
            "domain": self.request.size,
            "n": self.n,
            "epsilon": self.epsilon,
            "stderr": self.stderr,
            "solved": self.request.unknown,
            "share": self.request.share,
            "alpha": self.request.alpha,
            "most_bytes": self.request.most_bytes,
            "forged": self.request.forged,
            "most_shift": self.request.most_shift,
            "picked": self.picked,
            "why": self.why,
            "warnings": list(self.warnings),
            "rows": [row.to_dict() for row in self.rows],
        }

    def __rich__(self) -> Table:
        return plan_view.table(self)

    def _repr_html_(self) -> str:
        return html_rows(plan_view.lines(self), plan_view.headings(self), caption=plan_view.title(self))

    def plot(self, *, against: Literal["epsilon", "n"] = "epsilon", ax: Axes | None = None) -> Axes:
        """Plot the standard error of every oracle against epsilon or n, the plan's own marked."""
        return plan_view.plot(self, against, ax)


def plan(
    *,
    domain: DomainLike,
    n: int | None = None,
    epsilon: float | None = None,
    stderr: float | None = None,
    share: float = 0.0,
    most_bytes: int | None = None,
    alpha: float = 0.05,
    forged: float = FORGED,
    most_shift: float | None = None,
) -> Plan:
    """Compare every frequency oracle, and solve for what was left out of n, epsilon and stderr.

    The pick is, among the oracles within `most_bytes` and `most_shift`, the one of smallest standard error; ties within
    1% go to the cheaper server, then to the fewer bytes, then to the smaller error. Oracles of heuristic bias are only
    listed.

    Parameters
    ----------
    domain
        A size, a list of names, or a Domain.
    n, epsilon, stderr
        Two of: how many reports, what each may spend, and the standard error of a share.
    share
        The share whose error is meant: 0 for a rare value.
    most_bytes
        The largest report that is acceptable.
    alpha
        How many values, in expectation, chance may lift above `detectable`.
    forged
        The part of all reports that may be forged: every row says how far they can move the share.
    most_shift
        How far they may move it at most: 0.05 picks no oracle that they can move by more than 5 percentage points.

    Example:
        >>> plan(domain=1024, n=100_000, epsilon=1.0, most_bytes=20).picked
        'PGR'
        >>> plan(domain=2, epsilon=1.0, stderr=0.01).n
        9207
        >>> [plan(domain=128, n=10_000, epsilon=1.0, most_shift=limit).picked for limit in (None, 0.03)]
        ['SubsetSelection', 'SUE']

    References
    ----------
    T. Wang, 2021, section 3.4.1.
    """
    request = PlanRequest(
        domain=domain,
        n=n,
        epsilon=epsilon,
        stderr=stderr,
        share=share,
        most_bytes=most_bytes,
        alpha=alpha,
        forged=forged,
        most_shift=most_shift,
    )
    people, spent, rows, best = _solve(request)
    assert best.stderr is not None
    return Plan(
        request=request,
        n=people,
        epsilon=spent,
        stderr=best.stderr,
        rows=tuple(explained(row, best, request) for row in rows),
        picked=best.mechanism,
        why=reason(rows, best, request, spent),
        warnings=moved_far(rows, best, request),
    )


def _solve(request: PlanRequest) -> tuple[int, float, list[Prediction], Prediction]:
    """n and epsilon, as requested or solved for the picked oracle; the rows, and the row of that oracle."""
    target = request.stderr or 0.0
    n = request.n or 1_000_000
    epsilon = _least_epsilon(request, n, target) if request.epsilon is None else float(request.epsilon)
    rows, best = _compare(request, n, epsilon)
    if request.unknown not in ("n", "epsilon"):
        return n, epsilon, rows, best
    # Of two oracles with nearly equal errors the cheaper one is picked, and may need a little more than the best: solve
    # for the picked one until the pick does not change.
    solved: dict[str, tuple[int, float, list[Prediction], Prediction]] = {}
    while best.mechanism not in solved:
        picked = best.mechanism
        if request.unknown == "n":
            n = needed_n(_kind(picked), request, epsilon, target)
        else:
            epsilon = needed_epsilon(_kind(picked), request, n, target) or epsilon
        rows, best = _compare(request, n, epsilon)
        solved[picked] = n, epsilon, rows, best
        if best.mechanism == picked:
            return solved[picked]
    # The picks go round in a cycle: the smallest of its settings whose pick reaches the error, else the largest.
    cycle = sorted(solved.values(), key=lambda setting: setting[:2])
    return next((setting for setting in cycle if (setting[3].stderr or 0.0) <= target), cycle[-1])


def _compare(request: PlanRequest, n: int, epsilon: float) -> tuple[list[Prediction], Prediction]:
    rows = predict(request, n, epsilon)
    best = pick(rows, request)
    if best is None:
        sizes = [row.bytes for row in rows if row.bias == "none" and row.bytes is not None]
        if not sizes:
            raise InvalidValue("epsilon", epsilon, f"one that an oracle accepts; {rows[0].mechanism} {rows[0].why}")
        shifts = [row.shift for row in rows if row.bias == "none" and row.shift is not None and request.fits(row.bytes)]
        if shifts:
            least = f"at least {min(shifts):.3g}, the least that forged reports can move a share at epsilon {epsilon:g}"
            raise InvalidValue("most_shift", request.most_shift, least)
        raise InvalidValue("most_bytes", request.most_bytes, f"at least {min(sizes)}, the smallest report there is")
    return rows, best


def _least_epsilon(request: PlanRequest, n: int, stderr: float) -> float:
    """The smallest epsilon at which an oracle that may be picked reaches the standard error."""
    least = None
    for kind in oracles():
        if kind.bias != "none" or least == LEAST_EPSILON:
            continue
        with suppress(PluginFailed):  # its row says so
            needed = needed_epsilon(kind, request, n, stderr, most=least or MOST_EPSILON)
            if needed is not None and request.fits(kind(epsilon=needed, domain=request.domain).report_bytes):
                least = needed
    if least is None:
        _, best = _compare(request, n, MOST_EPSILON)
        within = "" if request.most_bytes is None else f", in {request.most_bytes} bytes each,"
        allowed = (
            f"at least {best.stderr:.3g}, or more reports: n = {n:,}{within} reach no less at any epsilon up to 20"
        )
        raise InvalidValue("stderr", stderr, allowed)
    return least


def _kind(name: str) -> type[FrequencyOracle]:
    return next(kind for kind in oracles() if kind.__name__ == name)
