"""The steps of mining items and itemsets (SVIM and SVSM): what each group is asked, and the resulting estimates."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.domain import Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.ask import CIRCLE, Arc, Ask, Pointer
from hubbub.protocols.driver import Message, Reply, ask_once
from hubbub.protocols.heavy_hitters.pem import sensitivity_threshold
from hubbub.protocols.itemsets.lengths import PERCENTILE, Itemset, significant_lengths, upper_limits
from hubbub.protocols.views.basic import View, Whole
from hubbub.protocols.views.sets import SubsetCount, Subsets


class NobodyAnswered(Exception):
    """Nobody answered in a round, so that the study cannot go on."""

    def __init__(self, round: int) -> None:
        self.round = round
        super().__init__(f"nobody answered in round {round}")


class Groups:
    """Groups of people on disjoint arcs, which are asked one after another; everyone is in one group.

    Parameters
    ----------
    percents
        The size of each group in percent of the people, in the order in which the groups are asked.
    turn, turns
        If the circle is divided into `turns` equal parts, the number of the part that is asked in this run.
    groups
        How many equal groups devices are in, of which one is asked: the circle is that of this group.
    """

    def __init__(self, percents: Sequence[int], *, turn: int = 0, turns: int = 1, groups: int = 1) -> None:
        if sum(percents) != 100 or min(percents) < 1:
            raise InvalidValue("percents", percents, "whole numbers above 0 that sum to 100")
        pointer, part = Pointer(turn % turns * (CIRCLE // turns)), CIRCLE // turns
        self.arcs: tuple[Arc, ...] = tuple(pointer.take(part * percent // 100) for percent in percents)
        self._left, self._groups = list(self.arcs), groups
        self.round, self.reports, self.share_asked = 0, 0, 0.0

    def skip(self) -> None:
        """Leave the next group out."""
        self._left.pop(0)

    def ask(self, mechanism: ReportFormat, view: View) -> Generator[Message, Reply, tuple[Sketch, int]]:
        """Ask the next group. Returns its sketch and the estimated size of the population."""
        arc = self._left.pop(0)
        share = arc.share / self._groups
        self.round, self.share_asked = self.round + 1, self.share_asked + share
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=0, view=view, cohort=arc))
        self.reports += sketch.n
        if not sketch.n:
            raise NobodyAnswered(self.round)
        return sketch, max(sketch.n, round(sketch.n / share))


@dataclass(frozen=True, eq=False)
class CandidateShares:
    """Candidates, and the estimated share of people who have each.

    Parameters
    ----------
    sets
        The candidates, each as the ascending codes of its items.
    estimate
        The shares of the candidates, in the same order, corrected by the factor.
    length
        The length that people's sets of candidates were padded to.
    factor
        The factor that corrects estimates for people with more candidates (Eq 5.5).
    deviation
        The standard error of the share of a candidate that nobody has.
    least, most
        The shares before the correction, which are at most the true ones on average; and the estimates of
        `upper_limits`, which are at least the true ones on average.
    """

    sets: tuple[Itemset, ...]
    estimate: Estimate
    length: int
    factor: float
    deviation: float
    least: Estimate
    most: tuple[Estimate, ...]

    def shares(self, k: int) -> dict[Itemset, float]:
        """The k candidates with the largest shares, largest first."""
        return {self.sets[place]: float(self.estimate.value[place]) for place in self.estimate.top(k)}

    def limits(self, chance: float) -> tuple[Floats, Floats]:
        """The ends of an interval for each candidate, which misses its share with at most this probability.

        The lowest of several upper limits is taken, so that each has its part of the probability.
        """
        low = self.least.value - normal_reach(1 - chance) * self.least.stderr
        reach = normal_reach(1 - chance / len(self.most))
        return low, np.min([limit.value + reach * limit.stderr for limit in self.most], axis=0)


def prune_items(
    groups: Groups, domain: Sets, *, units: int, keep: int
) -> Generator[Message, Reply, tuple[list[Itemset], float]]:
    """Step 1 of SVIM: each person of the first group names one of their items; the `keep` items named most are kept.

    Sets are padded to one element, so that everyone with an item names one. Returns the items kept, as sets of one
    item, and the smallest share of the named items that can be told from noise.

    References
    ----------
    T. Wang, 2021, section 5.3.1, step 1.
    """
    psfo: Any = PSFO(epsilon=epsilon_of(units), domain=domain, length=1)
    sketch, _ = yield from groups.ask(psfo, Whole())
    shares = psfo.estimate(sketch)
    best = np.sort(shares.top(keep))
    least = sensitivity_threshold(psfo.variance(1) ** 0.5, len(shares), sketch.n, keep)
    return [(int(item),) for item in best], least


def estimate_candidates(
    groups: Groups,
    candidates: Sequence[Itemset],
    *,
    units: int,
    longest: int | None = None,
    published: bool = False,
    part: float = PERCENTILE,
) -> Generator[Message, Reply, CandidateShares]:
    """Steps 2 to 4 of SVIM: ask one group how many candidates they have, the next group which, and correct estimates.

    The counts of candidates give the distribution of lengths (`significant_lengths`, also for `longest` and
    `published`). Sets are padded to a percentile of it (`part`), and the estimates are multiplied by the update factor.
    The factor is right on average but not for each candidate, as people with many candidates may have others: intervals
    rest on limits that hold whatever these have (`upper_limits`). With a single candidate no factor is needed: people
    are only asked whether they have it.

    References
    ----------
    T. Wang, 2021, section 5.3.1, steps 2 to 4; section 5.3.2.
    """
    sets, epsilon = tuple(sorted(candidates)), epsilon_of(units)
    count = SubsetCount(sets)
    sizes = adaptive(epsilon=epsilon, domain=count.size, most_bytes=0)  # GRR or OLH
    if len(sets) == 1:
        groups.skip()
    sketch, people = yield from groups.ask(sizes, count)
    size_shares = sizes.estimate(sketch)
    if len(sets) == 1:
        share = Estimate(size_shares.value[1:], size_shares.variance[1:], sketch.n).of_population(people)
        return CandidateShares(sets, share, 1, 1.0, sizes.variance(sketch.n) ** 0.5, least=share, most=(share,))
    lengths = significant_lengths(size_shares, sizes.variance(sketch.n), longest, published=published)
    length = lengths.percentile(part)
    factor = lengths.update_factor(length)
    size_shares = size_shares.of_population(people)
    psfo = PSFO(epsilon=epsilon, domain=len(sets), length=length)
    sketch, people = yield from groups.ask(psfo, Subsets(sets))
    raw = psfo.estimate(sketch)
    least = Estimate(raw.value, raw.variance, sketch.n).of_population(people)
    shares = Estimate(factor * raw.value, factor**2 * least.variance, sketch.n, bias=raw.bias)
    return CandidateShares(
        sets,
        shares,
        length,
        factor,
        factor * psfo.variance(sketch.n) ** 0.5,
        least=least,
        most=upper_limits(least, size_shares, length, min(len(sets), longest or len(sets))),
    )
