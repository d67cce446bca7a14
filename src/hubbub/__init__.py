"""Private analytics: hear the crowd, never the person.

Names resolve on first use, so that a device loads nothing it does not need.

Example:
    >>> import hubbub as hb
    >>> grr = hb.GRR(epsilon=1.0, domain=3)
    >>> reports = grr.randomize([0, 1, 2, 2], hb.Random(seed=1))
    >>> len(grr.estimate(grr.accumulate(reports)))
    3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.core.domain import Categorical as Categorical
    from hubbub.core.domain import KeyValue as KeyValue
    from hubbub.core.domain import Numeric as Numeric
    from hubbub.core.domain import Ordinal as Ordinal
    from hubbub.core.domain import Sets as Sets
    from hubbub.core.domain import Strings as Strings
    from hubbub.core.domain.sets import ItemSets as ItemSets
    from hubbub.core.estimate import Estimate as Estimate
    from hubbub.core.reports import Reports as Reports
    from hubbub.core.reports import Sketch as Sketch
    from hubbub.curator.tops import ToPS as ToPS
    from hubbub.mechanisms.base import Mechanism as Mechanism
    from hubbub.mechanisms.frequency.adaptive import adaptive as adaptive
    from hubbub.mechanisms.frequency.basic_rappor import BasicRappor as BasicRappor
    from hubbub.mechanisms.frequency.bit_flips import BitFlips as BitFlips
    from hubbub.mechanisms.frequency.bloom_rappor import BloomRappor as BloomRappor
    from hubbub.mechanisms.frequency.bundle import Bundle as Bundle
    from hubbub.mechanisms.frequency.count_mean import CMS as CMS
    from hubbub.mechanisms.frequency.count_mean import HCMS as HCMS
    from hubbub.mechanisms.frequency.function_list import FLH as FLH
    from hubbub.mechanisms.frequency.grr import GRR as GRR
    from hubbub.mechanisms.frequency.hadamard import Hadamard as Hadamard
    from hubbub.mechanisms.frequency.local_hashing import BLH as BLH
    from hubbub.mechanisms.frequency.local_hashing import OLH as OLH
    from hubbub.mechanisms.frequency.local_hashing import SOLH as SOLH
    from hubbub.mechanisms.frequency.loloha import Loloha as Loloha
    from hubbub.mechanisms.frequency.measured import Measured as Measured
    from hubbub.mechanisms.frequency.projective import PGR as PGR
    from hubbub.mechanisms.frequency.questions import Questions as Questions
    from hubbub.mechanisms.frequency.rappor import Rappor as Rappor
    from hubbub.mechanisms.frequency.recursive_hadamard import RHR as RHR
    from hubbub.mechanisms.frequency.she import SHE as SHE
    from hubbub.mechanisms.frequency.subset import SubsetSelection as SubsetSelection
    from hubbub.mechanisms.frequency.unary import OUE as OUE
    from hubbub.mechanisms.frequency.unary import SUE as SUE
    from hubbub.mechanisms.frequency.unary import THE as THE
    from hubbub.mechanisms.numeric.hybrid import Hybrid as Hybrid
    from hubbub.mechanisms.numeric.hybrid import Piecewise as Piecewise
    from hubbub.mechanisms.numeric.hybrid import StochasticRounding as StochasticRounding
    from hubbub.mechanisms.numeric.square_wave import SquareWave as SquareWave
    from hubbub.mechanisms.numeric.staircase import Staircase as Staircase
    from hubbub.mechanisms.sets.priv_set import PrivSet as PrivSet
    from hubbub.mechanisms.sets.psfo import PSFO as PSFO
    from hubbub.mechanisms.sets.split_unary import SplitUnary as SplitUnary
    from hubbub.mechanisms.sets.wheel import Wheel as Wheel
    from hubbub.mechanisms.ternary.coco import CoCo as CoCo
    from hubbub.mechanisms.ternary.collision import Collision as Collision
    from hubbub.mechanisms.ternary.exsub import ExSub as ExSub
    from hubbub.mechanisms.ternary.exsub import OnlineExSub as OnlineExSub
    from hubbub.mechanisms.ternary.fast_buckets import FastCoCo as FastCoCo
    from hubbub.mechanisms.ternary.fast_buckets import FastCollision as FastCollision
    from hubbub.mechanisms.ternary.gradients import Gradients as Gradients
    from hubbub.mechanisms.ternary.net_seed import NetSeed as NetSeed
    from hubbub.mechanisms.ternary.net_sub import NetSub as NetSub
    from hubbub.mechanisms.ternary.sampled_signs import SQKR as SQKR
    from hubbub.mechanisms.ternary.vectors import Ternary as Ternary
    from hubbub.planning.plan import plan as plan
    from hubbub.planning.sets import plan_sets as plan_sets
    from hubbub.privacy.amplify import amplify as amplify
    from hubbub.privacy.audit import audit as audit
    from hubbub.protocols.changes.net_stream import NetStream as NetStream
    from hubbub.protocols.changes.stream import ChangeStream as ChangeStream
    from hubbub.query.connect import connect as connect
    from hubbub.random.source import Random as Random
    from hubbub.statistics.distribution import Distribution as Distribution
    from hubbub.statistics.ratios import log_ratio as log_ratio
    from hubbub.statistics.ratios import ratio as ratio

__version__ = "0.1.0"

_HOMES = {
    "Categorical": "hubbub.core.domain",
    "Distribution": "hubbub.statistics.distribution",
    "Estimate": "hubbub.core.estimate",
    "Gradients": "hubbub.mechanisms.ternary.gradients",
    "ItemSets": "hubbub.core.domain.sets",
    "KeyValue": "hubbub.core.domain",
    "Mechanism": "hubbub.mechanisms.base",
    "Numeric": "hubbub.core.domain",
    "OnlineExSub": "hubbub.mechanisms.ternary.exsub",
    "Ordinal": "hubbub.core.domain",
    "Questions": "hubbub.mechanisms.frequency.questions",
    "Random": "hubbub.random.source",
    "Reports": "hubbub.core.reports",
    "Sets": "hubbub.core.domain",
    "Sketch": "hubbub.core.reports",
    "Strings": "hubbub.core.domain",
    "Ternary": "hubbub.mechanisms.ternary.vectors",
    "ToPS": "hubbub.curator.tops",
    "adaptive": "hubbub.mechanisms.frequency.adaptive",
    "connect": "hubbub.query.connect",
    "amplify": "hubbub.privacy.amplify",
    "audit": "hubbub.privacy.audit",
    "log_ratio": "hubbub.statistics.ratios",
    "plan": "hubbub.planning.plan",
    "plan_sets": "hubbub.planning.sets",
    "ratio": "hubbub.statistics.ratios",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        return getattr(import_module(home), name)
    if not name.startswith("_"):
        from hubbub.mechanisms import MECHANISMS

        if name in MECHANISMS:
            return MECHANISMS[name]
    raise AttributeError(f"module 'hubbub' has no attribute {name!r}")


def __dir__() -> list[str]:
    from hubbub.mechanisms import MECHANISMS

    return sorted({*globals(), *_HOMES, *MECHANISMS})
