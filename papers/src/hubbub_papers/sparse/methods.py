"""The mechanisms by the papers' names, how each is drawn, and how ours differ from the papers'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary.coco import CoCo
from hubbub.mechanisms.ternary.collision import Collision
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.mechanisms.ternary.net_sub import NetSub
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub_papers.baselines.ddrm import DDRM
from hubbub_papers.baselines.efmrtt import EFMRTT
from hubbub_papers.baselines.future_rand import FutureRand
from hubbub_papers.baselines.kvue import KVUE
from hubbub_papers.baselines.pckv_agrr import PCKVAGRR
from hubbub_papers.baselines.pckv_grr import PCKVGRR
from hubbub_papers.baselines.pckv_ue import PCKVUE
from hubbub_papers.baselines.priv_kv import PrivKV
from hubbub_papers.baselines.succinct import Succinct, published_clip
from hubbub_papers.baselines.topl import ToPLClipped

Build = Callable[[float, int, int, int], TernaryMechanism]
"""From epsilon, the dimension, the sparsity, and the number of people."""


@dataclass(frozen=True)
class NamedMechanism:
    """A mechanism under a paper's name.

    Parameters
    ----------
    name
        Its name in the papers.
    build
        Constructs the mechanism.
    colour, marker
        How its line is drawn.
    note
        How it differs from what the papers ran.
    """

    name: str
    build: Build
    colour: str
    marker: str
    note: str = ""


def _best(kind: Callable[..., TernaryMechanism]) -> Build:
    """With the parameters of the smallest error of the mean."""
    return lambda epsilon, dimension, sparsity, n: kind(epsilon=epsilon, dimension=dimension, sparsity=sparsity)


def _succinct(epsilon: float, dimension: int, sparsity: int, n: int) -> Succinct:
    return Succinct(epsilon=epsilon, dimension=dimension, sparsity=sparsity, clip=published_clip(sparsity, n))


_UNBIASED = "SUCCINCT: clipping undone, so that it is unbiased"
# Okabe and Ito's colours, which colour-blind readers can tell apart, and some of our own.
_ALL = (
    NamedMechanism("PrivKV", _best(PrivKV), "#7f4f24", "v", "PrivKV spends all of eps, the published one less"),
    NamedMechanism("KVUE", _best(KVUE), "#b8a800", "<"),
    NamedMechanism("PCKV-GRR", _best(PCKVGRR), "#e69f00", "s"),
    NamedMechanism("PCKV-AGRR", _best(PCKVAGRR), "#56b4e9", "^"),
    NamedMechanism("PCKV-UE", _best(PCKVUE), "#cc79a7", "X"),
    NamedMechanism("SUCCINCT", _succinct, "#009e73", "P", _UNBIASED),
    NamedMechanism(
        "SUCCINCT, best clip", _best(Succinct), "#6fc9a9", "P", f"{_UNBIASED}; clipped where it is best: ours"
    ),
    NamedMechanism(
        "FutureRand", _best(FutureRand.published), "#808080", "h", "FutureRand with its published constants"
    ),
    NamedMechanism("FutureRand, best", _best(FutureRand), "#b0b0b0", "h", "FutureRand that spends all of eps: ours"),
    NamedMechanism("EFMRTT", _best(EFMRTT), "#332288", "*"),
    NamedMechanism("ToPL", _best(ToPLClipped), "#a05195", ">"),
    NamedMechanism("DDRM", _best(DDRM), "#2f4b7c", "p"),
    NamedMechanism("Collision", _best(Collision), "#0072b2", "o"),
    NamedMechanism("CoCo", _best(CoCo), "#d55e00", "D"),
    NamedMechanism("ExSub", _best(ExSub), "#000000", "d"),
    NamedMechanism("NetSub", _best(NetSub), "#e7298a", "8", "NetSub, the net rule: ours, in neither paper"),
)
METHODS: dict[str, NamedMechanism] = {method.name: method for method in _ALL}
"""Every mechanism that the two papers compare, by the papers' names; and NetSub, which is ours."""


@lru_cache(maxsize=256)  # the same in every run
def mechanism(name: str, epsilon: float, dimension: int, sparsity: int, n: int) -> TernaryMechanism:
    """The mechanism of that name, for n people."""
    if name not in METHODS:
        raise InvalidValue("name", name, f"one of {', '.join(METHODS)}")
    return METHODS[name].build(epsilon, dimension, sparsity, n)


def look(name: str) -> dict[str, Any]:
    """The plotting options of a method's line."""
    method = METHODS[name]
    return {
        "color": method.colour,
        "marker": method.marker,
        "label": method.name,
        "markersize": 5,
        "linewidth": 1.3,
        "markerfacecolor": "none" if name == "PCKV-AGRR" else method.colour,
    }
