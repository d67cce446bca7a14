"""Planning for sets: which mechanism estimates the share of people who hold each item best, and with what error."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from hubbub.core.domain import Sets
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.planning.item_shares import SetOption, set_options, ternary_options
from hubbub.planning.predict import FORGED


@dataclass(frozen=True)
class SetRow:
    """One mechanism at one setting.

    Parameters
    ----------
    mechanism
        Its name; of padding and sampling, with the oracle's.
    stderr
        The root of the mean variance of all items' shares: exact at the lengths people have.
    shift
        How far forged reports can move the share of an item that nobody holds.
    picked, why
        Whether this mechanism is picked, and how much larger the error of the others is.
    """

    mechanism: str
    stderr: float
    bytes: int
    effective_epsilon: float
    shift: float
    picked: bool
    why: str

    def to_dict(self) -> dict[str, Json]:
        return asdict(self)


@dataclass(frozen=True)
class SetPlan:
    """The predicted error of every mechanism for sets at one setting, and the mechanism to use.

    `held`: how many items people hold on average. `forged`: the part of all reports that may be forged. `options`: the
    mechanisms, the smallest error first.
    """

    domain: Sets
    n: int
    epsilon: float
    held: float
    forged: float
    options: tuple[SetOption, ...]

    @property
    def items(self) -> int:
        assert self.domain.items.size is not None
        return self.domain.items.size

    @property
    def best(self) -> SetOption:
        """The mechanism to use, with its estimator: `values`, `mechanism`, `estimate`."""
        return self.options[0]

    @property
    def picked(self) -> str:
        """The name of the picked mechanism."""
        return self.best.name

    @property
    def stderr(self) -> float:
        """The standard error of the picked mechanism."""
        return self.rows[0].stderr

    @cached_property
    def rows(self) -> tuple[SetRow, ...]:
        """Every mechanism, the smallest standard error first."""
        least = self.best.error(self.held, self.items)
        return tuple(self._row(option, least) for option in self.options)

    def _row(self, option: SetOption, least: float) -> SetRow:
        error = option.error(self.held, self.items)
        picked = option is self.best
        return SetRow(
            option.name,
            stderr=math.sqrt(error / self.n),
            bytes=option.mechanism.report_bytes,
            effective_epsilon=option.mechanism.effective_epsilon,
            shift=option.influence().shift(self.forged, 0.0).largest,
            picked=picked,
            why="picked" if picked else f"{error / least:.2f} times the squared error",
        )


def plan_sets(
    *, domain: Sets, n: int, epsilon: float, held: float | Sequence[float] | None = None, forged: float = FORGED
) -> SetPlan:
    """Compare every mechanism that estimates the share of people who hold each item; pick the smallest exact error.

    Compared are padding and sampling over GRR, OLH and OUE, PrivSet, Wheel, a unary encoding with a split budget, and
    the ternary mechanisms, each with its best parameters. All are unbiased for sets of up to the domain's `most` items.
    Variances are linear in the shares, and the shares sum to the number of items that people hold on average: so the
    mean variance over all items is exact, whichever items are popular. Of equal errors the first in that order is
    picked.

    Parameters
    ----------
    domain
        The sets: their items, and the most that one may hold.
    n, epsilon
        How many reports, and what each may spend.
    held
        How many items people hold: on average, or as the shares of people who hold 0, 1, 2, ...; unless given, half of
        the most.
    forged
        The part of all reports that may be forged.

    Example:
        >>> from hubbub import Ordinal
        >>> features = Sets(Ordinal(40), most=12)
        >>> [plan_sets(domain=features, n=10_000, epsilon=epsilon).picked for epsilon in (1.0, 4.0)]
        ['PSFO-GRR', 'PrivSet']
        >>> planned = plan_sets(domain=Sets(Ordinal(1000), most=12), n=10_000, epsilon=1.0, held=[0.0] + [1 / 12] * 12)
        >>> planned.held, planned.picked, round(planned.stderr, 4)
        (6.5, 'PrivSet', 0.0702)
    """
    check_integer("n", n, 1, 1 << 62)
    if not 0 <= forged < 1:
        raise InvalidValue("forged", forged, "a number from 0 to below 1")
    mean = mean_held(held, domain)
    options = [
        *set_options(epsilon=epsilon, domain=domain, held=mean),
        *ternary_options(epsilon=epsilon, domain=domain, held=mean),
    ]
    size = domain.items.size or 1
    ordered = sorted(options, key=lambda option: float(f"{option.error(mean, size):.9g}"))
    return SetPlan(domain, n, epsilon, mean, forged, tuple(ordered))


def mean_held(held: float | Sequence[float] | None, domain: Sets) -> float:
    """How many items people hold on average."""
    if held is None:
        return domain.most / 2
    numbers = np.asarray(held, dtype=np.float64)
    if numbers.ndim == 0 and 0 <= numbers <= domain.most:
        return float(numbers)
    fits = numbers.ndim == 1 and numbers.size <= domain.most + 1
    if not fits or not (numbers >= 0).all() or not abs(numbers.sum() - 1) < 1e-6:
        allowed = f"a number from 0 to {domain.most}, or the shares of people who hold 0 to {domain.most} items"
        raise InvalidValue("held", held, allowed)
    return float(numbers @ np.arange(numbers.size))
