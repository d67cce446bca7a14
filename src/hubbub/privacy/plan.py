"""Planning: which oracle, how many users, what epsilon, for what error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.privacy import plan_view
from hubbub.privacy.asked import Asked
from hubbub.privacy.explain import explained, moved_far, reason
from hubbub.privacy.poisoning import FORGED
from hubbub.privacy.predict import Prediction, oracles, pick, predict
from hubbub.privacy.solve import LEAST_EPSILON, MOST_EPSILON, needed_epsilon, needed_n

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table


@dataclass(frozen=True)
class Plan:
    """A setting, what every oracle would do there, and which to use.

    Parameters
    ----------
    asked
        The question.
    n, epsilon, stderr
        Two as asked, and the one that was solved; `stderr` is what the picked oracle attains.
    rows
        Every oracle at that setting, the smallest standard error first.
    picked, why
        The one to use, and why.
    warnings
        The oracles that forged reports move much further than the picked one, and by how much.
    """

    asked: Asked
    n: int
    epsilon: float
    stderr: float
    rows: tuple[Prediction, ...]
    picked: str
    why: str
    warnings: tuple[str, ...] = ()

    def mechanism(self) -> FrequencyOracle:
        """The picked oracle, ready for use.

        Example:
            >>> plan(domain=["yes", "no"], n=1000, epsilon=1.0).mechanism().ratio() > 2.7
            True
        """
        return _kind(self.picked)(epsilon=self.epsilon, domain=self.asked.domain)

    def to_dict(self) -> dict[str, Json]:
        """The plan as JSON."""
        return {
            "domain": self.asked.size,
            "n": self.n,
            "epsilon": self.epsilon,
            "stderr": self.stderr,
            "solved": self.asked.unknown,
            "share": self.asked.share,
            "alpha": self.asked.alpha,
            "most_bytes": self.asked.most_bytes,
            "forged": self.asked.forged,
            "most_shift": self.asked.most_shift,
            "picked": self.picked,
            "why": self.why,
            "warnings": list(self.warnings),
            "rows": [row.to_dict() for row in self.rows],
        }

    def __rich__(self) -> Table:
        return plan_view.table(self)

    def plot(self, *, against: Literal["epsilon", "n"] = "epsilon", ax: Axes | None = None) -> Axes:
        """The standard error of every oracle against epsilon or n, the plan's own marked; matplotlib's axes.

        Example:
            >>> plan(domain=16, n=1000, epsilon=1.0).plot(against="n").get_xlabel()
            'reports'
        """
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
        'OLH'
        >>> plan(domain=2, epsilon=1.0, stderr=0.01).n
        9207
        >>> [plan(domain=128, n=10_000, epsilon=1.0, most_shift=limit).picked for limit in (None, 0.03)]
        ['SubsetSelection', 'SUE']

    References
    ----------
    Dissertation, section 3.4.1.
    """
    asked = Asked(
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
    people, spent, rows, best = _settle(asked)
    assert best.stderr is not None
    return Plan(
        asked=asked,
        n=people,
        epsilon=spent,
        stderr=best.stderr,
        rows=tuple(explained(row, best, asked) for row in rows),
        picked=best.mechanism,
        why=reason(rows, best, asked, spent),
        warnings=moved_far(rows, best, asked),
    )


def _settle(asked: Asked) -> tuple[int, float, list[Prediction], Prediction]:
    """The reports and the epsilon, as asked or solved for the oracle that is picked there; and the rows."""
    target = asked.stderr or 0.0
    n = asked.n or 1_000_000
    epsilon = _least_epsilon(asked, n, target) if asked.epsilon is None else float(asked.epsilon)
    rows, best = _compare(asked, n, epsilon)
    # The cheaper of two near equals may need a little more than the best: solve for the one picked, until it stays.
    for _ in rows:
        before = best.mechanism
        if asked.unknown == "n":
            n = needed_n(_kind(before), asked, epsilon, target)
        elif asked.unknown == "epsilon":
            epsilon = needed_epsilon(_kind(before), asked, n, target) or epsilon
        else:
            break
        rows, best = _compare(asked, n, epsilon)
        if best.mechanism == before:
            break
    return n, epsilon, rows, best


def _compare(asked: Asked, n: int, epsilon: float) -> tuple[list[Prediction], Prediction]:
    rows = predict(asked, n, epsilon)
    best = pick(rows, asked)
    if best is None:
        sizes = [row.bytes for row in rows if row.bias == "none" and row.bytes is not None]
        if not sizes:
            raise InvalidValue("epsilon", epsilon, f"one that an oracle accepts; {rows[0].mechanism} {rows[0].why}")
        shifts = [row.shift for row in rows if row.bias == "none" and row.shift is not None and asked.fits(row.bytes)]
        if shifts:
            least = f"at least {min(shifts):.3g}, the least that forged reports can move a share at epsilon {epsilon:g}"
            raise InvalidValue("most_shift", asked.most_shift, least)
        raise InvalidValue("most_bytes", asked.most_bytes, f"at least {min(sizes)}, the smallest report there is")
    return rows, best


def _least_epsilon(asked: Asked, n: int, stderr: float) -> float:
    """The smallest epsilon at which any oracle that may be picked reaches the error."""
    least = None
    for kind in oracles():
        if kind.bias == "none" and least != LEAST_EPSILON:
            needed = needed_epsilon(kind, asked, n, stderr, most=least or MOST_EPSILON)
            if needed is not None and asked.fits(kind(epsilon=needed, domain=asked.domain).report_bytes):
                least = needed
    if least is None:
        _, best = _compare(asked, n, MOST_EPSILON)
        within = "" if asked.most_bytes is None else f", in {asked.most_bytes} bytes each,"
        allowed = (
            f"at least {best.stderr:.3g}, or more reports: n = {n:,}{within} reach no less at any epsilon up to 20"
        )
        raise InvalidValue("stderr", stderr, allowed)
    return least


def _kind(name: str) -> type[FrequencyOracle]:
    return next(kind for kind in oracles() if kind.__name__ == name)
