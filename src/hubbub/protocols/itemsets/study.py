"""Studies of frequent items (SVIM) and of frequent itemsets (SVSM). Each device answers once."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from hubbub.core.domain import Domain, Ordinal, Sets
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.protocols.driver import Message, Protocol, Reply
from hubbub.protocols.itemsets.findings import Findings
from hubbub.protocols.itemsets.lengths import LOWERED, PERCENTILE, Itemset, guess_itemsets, largest_guess
from hubbub.protocols.itemsets.mining import CandidateShares, Groups, NobodyAnswered, estimate_candidates, prune_items

ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released."""
MOST_CANDIDATES = 1 << 12
MOST_KEPT = 1 << 13
MOST_ITEMS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class MiningConstants:
    """The constants of SVIM and SVSM; None, and no percents, takes the text's.

    Parameters
    ----------
    candidates
        How many items are candidates, and how many itemsets: 2k.
    largest
        The most items that a candidate itemset may have: see `largest_guess`.
    percentile
        The part of the people with candidates whose sets are not cut: sets are padded to this percentile of their
        lengths.
    top_guess
        The normalised share of the most frequent item, where the shares of itemsets are guessed as products.
    percents
        The size of each group in percent of the people: see `group_percents`.

    References
    ----------
    T. Wang, 2021, sections 5.3.1, 5.3.2, 5.4.2 and 5.4.3.
    """

    candidates: int | None = None
    largest: int | None = None
    percentile: float = PERCENTILE
    top_guess: float = LOWERED
    percents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.candidates is not None:
            check_integer("candidates", self.candidates, 1, MOST_KEPT)
        if self.largest is not None:
            check_integer("largest", self.largest, 2, 64)
        for name in ("percentile", "top_guess"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise InvalidValue(name, value, "a number between 0 and 1")

    def kept(self, k: int) -> int:
        """How many candidates there are at most."""
        return 2 * k if self.candidates is None else max(k, self.candidates)

    def most_items(self, k: int) -> int:
        """The most items of a candidate."""
        return largest_guess(k) if self.largest is None else self.largest

    def groups(self, items: int, k: int, *, itemsets: bool) -> tuple[int, ...]:
        """The size of each group in percent of the people."""
        usual = group_percents(items, self.kept(k), itemsets=itemsets)
        whole = all(type(percent) is int and percent > 0 for percent in self.percents)
        if self.percents and (not whole or len(self.percents) != len(usual) or sum(self.percents) != 100):
            allowed = f"{len(usual)} whole numbers above 0 that sum to 100, such as {', '.join(map(str, usual))}"
            raise InvalidValue("percents", self.percents, allowed)
        return self.percents or usual


CONSTANTS = MiningConstants()
"""Those of the text."""


def group_percents(items: int, candidates: int, *, itemsets: bool) -> tuple[int, ...]:
    """The size of each group in percent of the people.

    SVIM: half of the people name one item each, a tenth report how many candidates they have, the others which. If all
    items are candidates, nobody has to name items. For itemsets, half of the people are for SVIM, half for SVSM.

    References
    ----------
    T. Wang, 2021, sections 5.4.2 and 5.4.3.
    """
    known = items <= candidates
    if not itemsets:
        return (20, 80) if known else (50, 10, 40)
    return (10, 40, 10, 40) if known else (25, 5, 20, 10, 40)


def mine(
    domain: Domain,
    *,
    epsilon: float,
    k: int,
    itemsets: bool = True,
    turn: int = 0,
    turns: int = 1,
    groups: int = 1,
    constants: MiningConstants = CONSTANTS,
) -> Generator[Message, Reply, Findings]:
    """Find the k most frequent itemsets, or items: a part of a protocol that returns its findings.

    SVIM: the 2k items that people name most are candidates, whose shares are estimated. SVSM: the 2k itemsets with the
    largest product of their items' shares are candidates, whose shares are estimated in the same way from other people.
    A round that nobody answered ends the search, with the findings so far.

    Parameters
    ----------
    epsilon
        What one report spends; a device makes one in a run.
    k
        How many itemsets or items to find; fewer are found if there are fewer candidates.
    itemsets
        Whether to search for sets of several items, or for single items only.
    turn, turns, groups
        As of `Groups`.
    constants
        How many candidates there are, and more.
    """
    sets = domain
    if not isinstance(sets, Sets) or not isinstance(sets.items.size, int) or sets.items.size > MOST_ITEMS:
        raise InvalidValue("domain", domain, f"sets of at most {MOST_ITEMS:,} items")
    check_integer("k", k, 1 + itemsets, MOST_CANDIDATES)
    check_integer("turns", turns, 1)
    size, units = sets.items.size, units_of(epsilon)
    codes = Sets(Ordinal(size), sets.most)
    kept = constants.kept(k)
    asked = Groups(constants.groups(size, k, itemsets=itemsets), turn=turn, turns=turns, groups=groups)
    item_shares: CandidateShares | None = None
    set_shares: CandidateShares | None = None
    smallest_named_share, stopped = 0.0, None
    try:
        candidates: list[Itemset] = [(item,) for item in range(size)]
        if size > kept:
            pruned = yield from prune_items(asked, codes, units=units, keep=kept)
            candidates, smallest_named_share = pruned
        part = constants.percentile
        item_shares = yield from estimate_candidates(asked, candidates, units=units, longest=sets.most, part=part)
        if itemsets:
            shares = {item: share for (item,), share in item_shares.shares(k).items()}
            largest, top = constants.most_items(k), constants.top_guess
            candidates = guess_itemsets(shares, most=kept, largest=largest, top=top)
            if candidates:
                set_shares = yield from estimate_candidates(asked, candidates, units=units, part=part)
            else:
                stopped = "fewer than two items can be told from none: there are no candidate itemsets"
    except NobodyAnswered as error:
        stopped = str(error)
    return Findings(
        k=k,
        items=item_shares,
        itemsets=set_shares,
        smallest_named_share=smallest_named_share,
        reports=asked.reports,
        people=asked.reports / asked.share_asked,
        stopped=stopped,
    )


def itemset_study(
    domain: Domain,
    *,
    epsilon: float,
    k: int,
    itemsets: bool = True,
    names: Sequence[str] | None = None,
    turn: int = 0,
    turns: int = 1,
    groups: int = 1,
    constants: MiningConstants = CONSTANTS,
) -> Protocol:
    """The study of `mine`, with one release at its end.

    `domain`, `epsilon`, `k`, `itemsets`, `turn`, `turns`, `groups`, `constants`: as of `mine`. `names`: the names of
    the items, by code; their codes unless given.
    """
    turned = {"turn": turn, "turns": turns, "groups": groups}
    findings = yield from mine(domain, epsilon=epsilon, k=k, itemsets=itemsets, **turned, constants=constants)
    yield findings.release(names)
