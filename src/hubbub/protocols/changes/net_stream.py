"""A stream of changes by the net rule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from hubbub.mechanisms.ternary.net_sub import NetSub
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.protocols.changes.stream import ChangeStream


@dataclass(frozen=True, kw_only=True)
class NetStream(ChangeStream):
    """A `ChangeStream` with NetSub instead of ExSub: the error is smaller, most of all where epsilon is small.

    `epsilon`, `dimension`, `steps`, `changes`, `one`, `fanout`, `sizes`, `lengths`: as of `ChangeStream`. `thresholds`:
    the t of each level's NetSub; chosen unless given.

    Example:
        >>> NetStream(epsilon=1.0, dimension=1, steps=8, changes=2).thresholds
        (1, 1, 1, 1)

    References
    ----------
    Ours: docs/net-rule.md. Levels and intervals: S. Wang, Li, Xin et al., 2023, section 4.
    """

    rule: ClassVar[type[SignedSets]] = NetSub
    level_fields: ClassVar[dict[str, str]] = {"sizes": "m", "thresholds": "t"}

    thresholds: tuple[int, ...] = ()

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=2, steps=4, changes=2)
        yield cls(epsilon=2.0, dimension=1, steps=3, changes=2, sizes=(2, 1), thresholds=(2, 1))
