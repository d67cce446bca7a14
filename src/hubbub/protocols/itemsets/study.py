"""Studies of frequent items (SVIM) and of frequent itemsets (SVSM). Each device answers once."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from hubbub.core.domain import Domain, Ordinal, Sets
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.protocols.driver import Message, Protocol, Reply
from hubbub.protocols.itemsets.findings import Findings
from hubbub.protocols.itemsets.lengths import Itemset, guess_itemsets, largest_guess
from hubbub.protocols.itemsets.mining import CandidateShares, Groups, NobodyAnswered, estimate_candidates, prune_items

ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released."""
MOST_CANDIDATES = 1 << 12
MOST_ITEMS = 1 << 20


def group_percents(items: int, k: int, *, itemsets: bool) -> tuple[int, ...]:
    """The size of each group in percent of the people.

    SVIM: half of the people name one item each, a tenth report how many candidates they have, the others which. If all
    items are candidates, nobody has to name items. For itemsets, half of the people are for SVIM, half for SVSM.

    References
    ----------
    Dissertation, sections 5.4.2 and 5.4.3.
    """
    known = items <= 2 * k
    if not itemsets:
        return (20, 80) if known else (50, 10, 40)
    return (10, 40, 10, 40) if known else (25, 5, 20, 10, 40)


def mine(
    domain: Domain, *, epsilon: float, k: int, itemsets: bool = True, turn: int = 0, turns: int = 1
) -> Generator[Message, Reply, Findings]:
    """Find the k most frequent itemsets, or items: a part of a protocol that returns its findings.

    SVIM: the 2k items that people name most are candidates, whose shares are estimated. SVSM: the 2k itemsets with the
    largest product of their items' shares are candidates, whose shares are estimated in the same way from other people.
    A round that nobody answered ends the search, with the findings so far.

    Parameters
    ----------
    domain
        The sets that people hold: a `Sets`.
    epsilon
        What one report spends; a device makes one in a run.
    k
        How many itemsets or items to find; fewer are found if there are fewer candidates.
    itemsets
        Whether to search for sets of several items, or for single items only.
    turn, turns
        As of `Groups`.
    """
    sets = domain
    if not isinstance(sets, Sets) or not isinstance(sets.items.size, int) or sets.items.size > MOST_ITEMS:
        raise InvalidValue("domain", domain, f"sets of at most {MOST_ITEMS:,} items")
    check_integer("k", k, 1 + itemsets, MOST_CANDIDATES)
    check_integer("turns", turns, 1)
    size, units = sets.items.size, units_of(epsilon)
    codes = Sets(Ordinal(size), sets.most)
    groups = Groups(group_percents(size, k, itemsets=itemsets), turn=turn, turns=turns)
    item_shares: CandidateShares | None = None
    set_shares: CandidateShares | None = None
    smallest_named_share, stopped = 0.0, None
    try:
        candidates: list[Itemset] = [(item,) for item in range(size)]
        if size > 2 * k:
            pruned = yield from prune_items(groups, codes, units=units, keep=2 * k)
            candidates, smallest_named_share = pruned
        item_shares = yield from estimate_candidates(groups, candidates, units=units, longest=sets.most)
        if itemsets:
            shares = {item: share for (item,), share in item_shares.shares(k).items()}
            candidates = guess_itemsets(shares, most=2 * k, largest=largest_guess(k))
            if candidates:
                set_shares = yield from estimate_candidates(groups, candidates, units=units)
            else:
                stopped = "fewer than two items can be told from none: there are no candidate itemsets"
    except NobodyAnswered as error:
        stopped = str(error)
    return Findings(
        k=k,
        items=item_shares,
        itemsets=set_shares,
        smallest_named_share=smallest_named_share,
        reports=groups.reports,
        people=groups.reports / groups.share_asked,
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
) -> Protocol:
    """The study of `mine`, with one release at its end.

    Parameters
    ----------
    domain, epsilon, k, itemsets, turn, turns
        As of `mine`.
    names
        The names of the items, by code; their codes unless given.
    """
    findings = yield from mine(domain, epsilon=epsilon, k=k, itemsets=itemsets, turn=turn, turns=turns)
    yield findings.release(names)
