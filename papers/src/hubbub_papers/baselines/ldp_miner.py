"""LDPMiner as published: everyone reports twice, with half of the budget each time."""

from __future__ import annotations

from collections.abc import Generator

from hubbub.core.domain import Ordinal, Sets
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Message, Reply, ask_once
from hubbub.protocols.views.sets import Subsets
from hubbub_papers.baselines.mining_ladder import Shares, top_shares


def ldp_miner(domain: Sets, *, epsilon: float, k: int, length: int) -> Generator[Message, Reply, Shares]:
    """Find the k most frequent items: everyone names an item by BLH, then reports on the 2k named most by SUE.

    Parameters
    ----------
    domain
        The sets that people hold.
    epsilon
        The budget of a person, half of it for each phase.
    k
        The number of items to find.
    length
        The 90th percentile of the sizes of sets, which the protocol takes as known.

    References
    ----------
    Dissertation, section 5.1.1.
    """
    names = PSFO(epsilon=epsilon / 2, domain=domain, length=length, oracle="BLH")
    sketch = yield from ask_once(Ask(mechanism=names, step=0))
    candidates = tuple((int(item),) for item in sorted(names.estimate(sketch).top(2 * k)))
    of_candidates = Sets(Ordinal(len(candidates)), len(candidates))
    reports = PSFO(epsilon=epsilon / 2, domain=of_candidates, length=len(candidates), oracle="SUE")
    sketch = yield from ask_once(Ask(mechanism=reports, step=0, view=Subsets(candidates)))
    shares = reports.estimate(sketch).value.tolist()
    return top_shares(dict(zip(candidates, shares, strict=True)), k)
