"""The central guarantee of shuffled reports: the smallest valid bound, its inverse, and that of several batches."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.privacy.binomial_tails import smallest_epsilon
from hubbub.privacy.shuffle_bounds import (
    COARSE,
    FINE,
    BlanketBound,
    CloneBound,
    binomial_epsilon,
    blanket_delta,
    clone_chance,
    clone_delta,
    csuzz19,
    efmrtt19,
    fmt21,
    stronger_clone_chance,
)

MOST_REPORTS = 10**12
MOST_AMPLIFIED = 25.0
"""The largest local epsilon with numerical bounds: above it, floats have too few digits for them."""


@dataclass(frozen=True)
class Amplified:
    """The central guarantee of one shuffled batch: it is (epsilon, delta)-private for replacing one report.

    Parameters
    ----------
    epsilon, delta
        The guarantee, rounded up.
    method
        The name of the bound.
    valid
        Whether the bound is proved. Unproved claims of papers are for comparison only, never a guarantee.
    one_batch
        Whether the guarantee is for one batch only: devices remember, and a second report can be linked to the first.
    """

    epsilon: float
    delta: float
    method: str
    valid: bool = True
    one_batch: bool = False

    def to_dict(self) -> dict[str, Json]:
        """The guarantee as JSON."""
        return asdict(self)


def amplify(mechanism: ReportFormat, *, n: int, delta: float, fakes: int = 0) -> Amplified:
    """The smallest valid (epsilon, delta) of n shuffled reports, of which one is replaced.

    The guarantee is against those who see the shuffled batch. Against someone who sees a report before that, only the
    local epsilon holds; and so it does against everyone if fewer than n reports are shuffled. A mechanism whose public
    part depends on the value is refused: its reports can be singled out. Where devices remember, the guarantee is for
    one batch only (`one_batch`).

    Of a mechanism that reports bit by bit, such as `ChangeStream`, the guarantee is of all batches of a horizon, which
    are a function of whole reports that are shuffled. It is for devices that are in every batch, on the level where it
    is worst: each of n such devices is on a level by chance, and whoever misses a batch is not among them.

    Parameters
    ----------
    mechanism
        The mechanism by which every device reports once.
    n
        How many reports are shuffled.
    delta
        The delta of the guarantee.
    fakes
        How many uniformly drawn reports are added; only for GRR and local hashing, whose blanket is uniform.

    Example:
        >>> from hubbub import GRR
        >>> amplified = amplify(GRR(epsilon=1.0, domain=3), n=10_000, delta=1e-6)
        >>> round(amplified.epsilon, 4), amplified.method, amplified.valid
        (0.038, 'blanket', True)
    """
    return min(bounds(mechanism, n=n, delta=delta, fakes=fakes), key=lambda bound: bound.epsilon)


def bounds(mechanism: ReportFormat, *, n: int, delta: float, fakes: int = 0) -> Iterator[Amplified]:
    """Every valid bound that applies, the local epsilon among them."""
    check_batch(n, delta, fakes)
    if isinstance(mechanism, ReportFormat) and mechanism.whole_reports:
        for _, whole in mechanism.whole_reports:
            check_fakes(whole, fakes)
        levels = [[*_bounds(whole, n, delta, 0, share)] for share, whole in mechanism.whole_reports]
        yield from max(levels, key=lambda level: min(bound.epsilon for bound in level))
        return
    single = check_unlinkable(mechanism)
    check_fakes(single, fakes)
    one_batch = single.linkable != "never"
    yield from (replace(bound, one_batch=one_batch) for bound in _bounds(single, n, delta, fakes))


def _bounds(mechanism: Mechanism, n: int, delta: float, fakes: int, share: float = 1.0) -> Iterator[Amplified]:
    """The bounds where each of the n - 1 others is in the batch with probability `share`."""
    tail = delta * 1e-7
    local, blanket = mechanism.effective_epsilon, mechanism.blanket()
    yield Amplified(local, 0.0, "local")
    if local > MOST_AMPLIFIED:
        return
    if blanket is not None:
        coarse = BlanketBound(blanket, n, fakes=fakes, share=share, cells=COARSE, tail=tail)
        fine = BlanketBound(blanket, n, fakes=fakes, share=share, cells=FINE, tail=tail)
        yield from _bound(smallest_epsilon(coarse, fine, delta, local), delta, "blanket")
    ratio = math.exp(local)
    for method, chance in (("clones", clone_chance(ratio)), ("stronger clones", stronger_clone_chance(ratio))):
        bound = CloneBound(ratio, n, share * chance, tail=tail)
        yield from _bound(smallest_epsilon(bound, bound, delta, local), delta, method)
    if share < 1:
        return  # the formulas are of a known number of reports
    yield from _bound(efmrtt19(local, n, delta), delta, "EFMRTT19")
    yield from _bound(fmt21(local, n, delta), delta, "FMT21")
    if blanket is not None and blanket.both == 0:
        weight = float(1 / (blanket.mass * blanket.preferred))
        yield from _bound(binomial_epsilon(weight, n, delta), delta, "BBGN19")
        if isinstance(mechanism, GRR) and mechanism.size == 2:
            yield from _bound(csuzz19(weight, n, delta), delta, "CSUZZ19")


def check_unlinkable(mechanism: ReportFormat) -> Mechanism:
    """The mechanism; refused where shuffled reports can be singled out, or it does not state that they cannot."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidValue("mechanism", mechanism, "a mechanism whose reports are made afresh, each from one value")
    if mechanism.linkable == "always":
        allowed = "one whose public part does not depend on the value: it singles reports out, and a shuffle hides none"
        raise InvalidValue("mechanism", type(mechanism).__name__, allowed)
    return mechanism


def check_batch(n: int, delta: float, fakes: int) -> None:
    """Refuse numbers of reports and fakes, and a delta, for which there is no bound."""
    check_integer("n", n, 1, MOST_REPORTS)
    check_integer("fakes", fakes, 0, MOST_REPORTS)
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 1e-300 <= delta < 1:
        raise InvalidValue("delta", delta, "a number from 1e-300 to below 1")


def check_fakes(mechanism: Mechanism, fakes: int) -> None:
    """Refuse fakes for a mechanism whose blanket is not uniform: fakes are drawn uniformly, and would hide less.

    Rows of fair bits, for example, hide a report of a unary encoding less than draws from its blanket would.
    """
    if fakes and not isinstance(mechanism, GRR | LocalHashing):
        name = type(mechanism).__name__
        raise InvalidValue(
            "fakes", fakes, f"0: fakes are drawn uniformly, which hides reports of GRR and local hashing, not of {name}"
        )


def amplified_delta(mechanism: Mechanism, *, n: int, epsilon: float, fakes: int = 0, cells: int = FINE) -> float:
    """The smallest delta that is proved at an epsilon, by the numerical bounds."""
    check_unlinkable(mechanism)
    check_fakes(mechanism, fakes)
    local, blanket = mechanism.effective_epsilon, mechanism.blanket()
    if local <= epsilon:
        return 0.0
    if local > MOST_AMPLIFIED:
        return 1.0
    ratio = math.exp(local)
    deltas = [clone_delta(ratio, n, epsilon, chance) for chance in (clone_chance(ratio), stronger_clone_chance(ratio))]
    if blanket is not None:
        deltas.append(blanket_delta(blanket, n, epsilon, fakes=fakes, cells=cells))
    return min(deltas)


def _bound(epsilon: float | None, delta: float, method: str) -> Iterator[Amplified]:
    if epsilon is not None:
        yield Amplified(epsilon, delta, method)


def compose(batches: Sequence[Amplified], *, slack: float = 0.0) -> Amplified:
    """The guarantee of all batches that one person's reports are in.

    Epsilons and deltas add up. With a slack, which is added to delta, the advanced composition of Kairouz, Oh and
    Viswanath (2015, Theorem 3.5, in its form for unequal epsilons) is taken where it is smaller. Several batches of
    memoised reports are refused: the reports of one device can be linked.
    """
    if not batches:
        raise InvalidValue("batches", [], "at least one")
    if len(batches) > 1 and any(batch.one_batch for batch in batches):
        allowed = "one: a device that remembers can be recognised in a second batch, where only local epsilons hold"
        raise InvalidValue("batches", len(batches), allowed)
    if not 0 <= slack < 1:
        raise InvalidValue("slack", slack, "at least 0, below 1")
    delta, valid = math.fsum(batch.delta for batch in batches), all(batch.valid for batch in batches)
    plain = math.fsum(batch.epsilon for batch in batches)
    if slack:
        drift = math.fsum(
            math.expm1(batch.epsilon) * batch.epsilon / (math.exp(batch.epsilon) + 1) for batch in batches
        )
        squares = math.fsum(batch.epsilon**2 for batch in batches)
        advanced = drift + math.sqrt(2 * math.log(1 / slack) * squares)
        if advanced < plain:
            return Amplified(advanced, delta + slack, f"advanced composition of {len(batches)}", valid)
    return Amplified(plain, delta, f"composition of {len(batches)}", valid, batches[0].one_batch)


_CLOSE = 1e-3
_FURTHER = 1.05


def local_epsilon(
    make: Callable[[float], Mechanism],
    *,
    epsilon: float,
    n: int,
    delta: float,
    fakes: int = 0,
    most: float = 20.0,
    quick: bool = False,
) -> Mechanism:
    """The mechanism of the largest local epsilon, to 0.1%, whose n shuffled reports are (epsilon, delta)-private.

    `make` gives the mechanism of a local epsilon, and `most` is the largest local epsilon that is tried. The returned
    mechanism was evaluated, and keeps to the target. With `quick` the bounds are coarse: the mechanism keeps to the
    target too, but its epsilon may be a little smaller than possible.
    """
    check_batch(n, delta, fakes)
    if not epsilon > 0:
        raise InvalidValue("epsilon", epsilon, "above 0")
    if epsilon >= most:
        return make(most)

    def keeps(local: float, cells: int) -> Mechanism | None:
        mechanism = make(local)
        spent = amplified_delta(mechanism, n=n, epsilon=epsilon, fakes=fakes, cells=cells)
        return mechanism if spent <= delta else None

    best, low, high = make(epsilon), epsilon, most  # a local epsilon of the target keeps to it without amplification
    # What the coarse bound allows is allowed: the fine bound only goes a little further.
    for cells in (COARSE,) if quick else (COARSE, FINE):
        while (largest := keeps(high, cells)) is not None:
            if high == most:
                return largest
            best, low, high = largest, high, min(most, high * _FURTHER)
        while high > low * (1 + _CLOSE):
            middle = (low * high) ** 0.5
            mechanism = keeps(middle, cells)
            if mechanism is None:
                high = middle
            else:
                best, low = mechanism, middle
        high = min(most, low * _FURTHER)
    return best
