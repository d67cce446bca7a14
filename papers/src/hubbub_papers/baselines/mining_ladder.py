"""LDPMiner, SVIM and the protocols between them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.event import units_of
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Message, Reply, ask_once
from hubbub.protocols.itemsets.lengths import Itemset, guess_itemsets, largest_guess, significant_lengths
from hubbub.protocols.itemsets.mining import Groups, estimate_candidates
from hubbub.protocols.views.basic import Whole
from hubbub.protocols.views.sets import Size, Subsets

Shares = dict[Itemset, float]
"""Items or itemsets, the most frequent first, and their estimated shares."""
LONGEST = 128
"""The largest size of a set that is counted; a larger set counts as this size."""


@dataclass(frozen=True)
class Rung:
    """A protocol from LDPMiner to SVIM: people first name items, then other people report on the candidates.

    Parameters
    ----------
    name
        Its name in T. Wang, 2021.
    first
        The oracle of the first phase; an empty name is the better of GRR and OLH.
    first_length
        The length to which sets are padded there: 1, or the 90th percentile "L" of their sizes, on which a tenth of the
        people report.
    second
        The oracle of the second phase.
    second_length
        The length to which a person's candidates are padded: "2k", the number of candidates, or the 90th percentile "L"
        of the number that a person holds, on which a tenth of the people report.
    updated
        Whether the estimates are multiplied by the update factor of Eq 5.5.
    published
        Whether significant lengths follow the text's rule; otherwise that of the deployed protocol.
    """

    name: str
    first: str
    first_length: Literal["1", "L"]
    second: str
    second_length: Literal["2k", "L"]
    updated: bool = False
    published: bool = True

    def percents(self, *, itemsets: bool) -> tuple[int, ...]:
        """The percentage of people in each group; for itemsets, half of the people are for the items alone."""
        if self.first_length == "L":
            return (5, 20, 25, 50) if itemsets else (10, 40, 50)
        if self.second_length == "L":
            return (25, 5, 20, 10, 40) if itemsets else (50, 10, 40)
        return (25, 25, 50) if itemsets else (50, 50)


LDP_MINER = Rung("(BLH, L), (SUE, 2k)", "BLH", "L", "SUE", "2k")
"""LDPMiner as the chapter evaluates it: with its own oracles, and groups instead of a divided budget."""
OLH_MINER = Rung("(OLH, L), (OLH, 2k)", "OLH", "L", "OLH", "2k")
"""LDPMiner with the better oracle: section 5.3.1 says that this one is evaluated, section 5.4.2 that `LDP_MINER` is."""
SVIM = Rung("(OLH, 1), (Adap, L)(c)", "OLH", "1", "", "L", updated=True)
DEPLOYED = Rung("SVIM as deployed", "OLH", "1", "", "L", updated=True, published=False)
"""SVIM with another rule for `significant_lengths`: a length that is significant by chance multiplies all shares."""
LADDER = (
    LDP_MINER,
    OLH_MINER,
    Rung("(OLH, 1), (OLH, 2k)", "OLH", "1", "OLH", "2k"),
    Rung("(OLH, 1), (Adap, 2k)", "OLH", "1", "", "2k"),
    Rung("(OLH, 1), (Adap, L)", "OLH", "1", "", "L"),
    SVIM,
)
"""The six protocols of section 5.4.2, in the text's order."""


def mine_by(
    rung: Rung, domain: Sets, *, epsilon: float, k: int, itemsets: bool = False
) -> Generator[Message, Reply, Shares]:
    """Find the k most frequent items by a protocol of the ladder; or itemsets, by SVSM with it instead of SVIM.

    References
    ----------
    T. Wang, 2021, sections 5.4.2 and 5.4.3.
    """
    groups = Groups(rung.percents(itemsets=itemsets))
    candidates = yield from _named(rung, groups, domain, epsilon, 2 * k)
    shares = yield from _estimated(rung, groups, candidates, epsilon)
    if itemsets:
        items = {codes[0]: share for codes, share in top_shares(shares, k).items()}
        guessed = guess_itemsets(items, most=2 * k, largest=largest_guess(k))
        if len(guessed) > 1:  # there is no oracle over a single value
            shares |= yield from _estimated(rung, groups, guessed, epsilon)
    return top_shares(shares, k)


def _named(
    rung: Rung, groups: Groups, domain: Sets, epsilon: float, keep: int
) -> Generator[Message, Reply, list[Itemset]]:
    """The first phase: the items that are reported most."""
    length = 1
    if rung.first_length == "L":
        most = min(domain.most, LONGEST)
        sizes = OLH(epsilon=epsilon, domain=most + 1)
        sketch, _ = yield from groups.ask(sizes, Size(most))
        estimate, noise = sizes.estimate(sketch), sizes.variance(sketch.n)
        length = significant_lengths(estimate, noise, published=rung.published).percentile()
    psfo = PSFO(epsilon=epsilon, domain=domain, length=length, oracle=rung.first)
    sketch, _ = yield from groups.ask(psfo, Whole())
    return [(int(item),) for item in psfo.estimate(sketch).top(keep)]


def _estimated(
    rung: Rung, groups: Groups, candidates: Sequence[Itemset], epsilon: float
) -> Generator[Message, Reply, Shares]:
    """The second phase: the share of each candidate."""
    if rung.second_length == "L":
        mined = yield from estimate_candidates(groups, candidates, units=units_of(epsilon), published=rung.published)
        factor = 1.0 if rung.updated else mined.factor
        return dict(zip(mined.sets, (mined.estimate.value / factor).tolist(), strict=True))
    sets = tuple(sorted(candidates))
    psfo = PSFO(epsilon=epsilon, domain=Sets(Ordinal(len(sets)), len(sets)), length=len(sets), oracle=rung.second)
    sketch, _ = yield from groups.ask(psfo, Subsets(sets))
    return dict(zip(sets, psfo.estimate(sketch).value.tolist(), strict=True))


def top_shares(shares: Shares, k: int) -> Shares:
    """The k largest shares, the largest first."""
    return dict(sorted(shares.items(), key=lambda pair: -pair[1])[:k])


def ldp_miner(domain: Sets, *, epsilon: float, k: int, length: int) -> Generator[Message, Reply, Shares]:
    """Find the k most frequent items: everyone names an item by BLH, then reports on the 2k named most by SUE.

    The protocol takes `length`, the 90th percentile of the sizes of sets, as known.

    References
    ----------
    Qin et al., 2016; T. Wang, 2021, section 5.1.1.
    """
    names = PSFO(epsilon=epsilon / 2, domain=domain, length=length, oracle="BLH")
    sketch = yield from ask_once(Ask(mechanism=names, step=0))
    candidates = tuple((int(item),) for item in sorted(names.estimate(sketch).top(2 * k)))
    of_candidates = Sets(Ordinal(len(candidates)), len(candidates))
    reports = PSFO(epsilon=epsilon / 2, domain=of_candidates, length=len(candidates), oracle="SUE")
    sketch = yield from ask_once(Ask(mechanism=reports, step=0, view=Subsets(candidates)))
    shares = reports.estimate(sketch).value.tolist()
    return top_shares(dict(zip(candidates, shares, strict=True)), k)
