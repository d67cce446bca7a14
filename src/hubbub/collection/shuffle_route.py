"""The route of a shuffled report: the shufflers between devices and collector, signed with the collection."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json, check_fields, integer, spec_id

if TYPE_CHECKING:
    from hubbub.protocols.ask import Ask
    from hubbub.shuffle.dgk import DGKPublic

LAYER_BYTES = 48
"""The bytes that a layer of encryption adds to a report: an ephemeral key and a tag (`hubbub.shuffle.onion`)."""
MOST_SHUFFLERS = 8
MOST_BATCH_BYTES = 64 << 20
"""The largest batch that goes from one party to the next."""
HOP_SECONDS = 1
"""The least time that a shuffler is given for each of its turns."""
LEAST_MODULUS_BITS = 2048
MOST_MODULUS_BITS = 8192
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class RouteShuffler:
    """One shuffler: its address, the X25519 key that layers are encrypted to, and the Ed25519 key that it signs with.

    Keys are 64 hexadecimal digits.
    """

    url: str
    encryption_key: str
    signing_key: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url) if isinstance(self.url, str) and len(self.url) <= 200 else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InvalidValue("url", self.url, "an http or https address")
        for name in ("encryption_key", "signing_key"):
            check_key(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class Route(ABC):
    """The shufflers of a collection's reports, and the rules that each of them follows.

    Parameters
    ----------
    shufflers
        All of them, in their order.
    collector_key
        The X25519 key to which everything is encrypted that is for the collector alone.
    delta
        The delta at which the central epsilon of a batch is stated.
    least
        How many people's reports a batch must have; a smaller one is dropped.
    fakes
        How many uniformly drawn reports are added to each batch: see `all_fakes`.
    """

    trust: ClassVar[str]
    fewest: ClassVar[int] = 1
    most: ClassVar[int] = MOST_SHUFFLERS

    shufflers: tuple[RouteShuffler, ...]
    collector_key: str
    delta: float
    least: int
    fakes: int = 0

    def __post_init__(self) -> None:
        if not self.fewest <= len(self.shufflers) <= self.most:
            raise InvalidValue("shufflers", len(self.shufflers), f"{self.fewest} to {self.most}")
        check_key("collector_key", self.collector_key)
        if isinstance(self.delta, bool) or not isinstance(self.delta, int | float) or not 1e-300 <= self.delta < 1:
            raise InvalidValue("delta", self.delta, "a number from 1e-300 to below 1")
        # The reports and fakes that a batch must have fit into it: no shuffler is made to draw fakes without end.
        most = MOST_BATCH_BYTES // self.sealed_bytes(1)
        check_integer("least", self.least, 2, most)
        check_integer("fakes", self.fakes, 0)
        if self.least + self.all_fakes > most:
            raise InvalidValue("fakes", self.fakes, f"fewer: a batch has room for {most - self.least:,} of them")
        keys = [self.collector_key, *(shuffler.encryption_key for shuffler in self.shufflers)]
        signing = [shuffler.signing_key for shuffler in self.shufflers]
        if len(set(keys)) < len(keys) or len(set(signing)) < len(signing):
            raise InvalidValue("shufflers", "a key that stands twice", "a key of its own for each of them")

    @property
    @abstractmethod
    def all_fakes(self) -> int:
        """How many fake reports a batch has at the end."""

    @property
    @abstractmethod
    def receivers(self) -> tuple[RouteShuffler, ...]:
        """The shufflers that devices send to: each has its piece of a sealed report."""

    @property
    @abstractmethod
    def turns(self) -> int:
        """How many times shufflers have to wait for each other before the collector has a batch."""

    @abstractmethod
    def sealed_bytes(self, report_bytes: int) -> int:
        """The size of what a shuffler takes of a report of a given size."""

    def room(self, report_bytes: int) -> int:
        """How many people's reports of a given size a batch has room for, in addition to the fakes."""
        return MOST_BATCH_BYTES // self.sealed_bytes(report_bytes) - self.all_fakes

    def place_of(self, encryption_key: bytes, signing_key: bytes) -> int:
        """The position of the shuffler that has these keys."""
        keys = (encryption_key.hex(), signing_key.hex())
        for place, shuffler in enumerate(self.shufflers):
            if (shuffler.encryption_key, shuffler.signing_key) == keys:
                return place
        raise InvalidValue("key", encryption_key.hex()[:16] + "...", "the keys of a shuffler of the collection")

    def spec(self) -> dict[str, Json]:
        return {
            "shufflers": [dict(vars(shuffler)) for shuffler in self.shufflers],
            "collector_key": self.collector_key,
            "delta": self.delta,
            "least": self.least,
            "fakes": self.fakes,
        }

    @classmethod
    def from_spec(cls, spec: Any) -> Self:
        """Read a route back; every field must be there, and no other."""
        check_fields("shuffle", spec, {part.name for part in fields(cls)})
        shuffler_specs = spec["shufflers"]
        if not isinstance(shuffler_specs, list | tuple):
            raise InvalidValue("shufflers", shuffler_specs, "a list of tables")
        for shuffler in shuffler_specs:
            check_fields("shufflers", shuffler, {part.name for part in fields(RouteShuffler)})
        numbers = {name: integer(name, spec[name]) for name in ("least", "fakes")}
        shufflers = tuple(RouteShuffler(**shuffler) for shuffler in shuffler_specs)
        return cls(**{**spec, **cls._read(spec), **numbers, "shufflers": shufflers})

    @classmethod
    def _read(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that only this kind of route has, read from JSON."""
        return {}


@dataclass(frozen=True, kw_only=True)
class ShuffleRoute(Route):
    """Reports in layers of encryption: devices send to the first shuffler, and each hands whole batches to the next.

    `fakes` is how many each shuffler adds.
    """

    trust: ClassVar[str] = "shuffle"

    @property
    def route(self) -> list[bytes]:
        """The public keys of the layers: the shufflers' in their order, and the collector's."""
        keys = (*(shuffler.encryption_key for shuffler in self.shufflers), self.collector_key)
        return [bytes.fromhex(key) for key in keys]

    @property
    def all_fakes(self) -> int:
        return self.fakes * len(self.shufflers)

    @property
    def receivers(self) -> tuple[RouteShuffler, ...]:
        return self.shufflers[:1]

    @property
    def turns(self) -> int:
        return len(self.shufflers)

    def sealed_bytes(self, report_bytes: int) -> int:
        return report_bytes + LAYER_BYTES * (len(self.shufflers) + 1)


@dataclass(frozen=True)
class HomomorphicKey:
    """The public key of the server's homomorphic encryption (DGK): texts of hexadecimal digits.

    `subgroup_bits`: the size of the two secret primes that divide the order of h.
    """

    modulus: str
    g: str
    h: str
    subgroup_bits: int

    def __post_init__(self) -> None:
        for name in ("modulus", "g", "h"):
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > MOST_MODULUS_BITS // 4 or not value or not set(value) <= _HEX:
                raise InvalidValue(name, value, f"at most {MOST_MODULUS_BITS // 4} hexadecimal digits")
        modulus = int(self.modulus, 16)
        if modulus.bit_length() < LEAST_MODULUS_BITS or modulus % 2 == 0:
            raise InvalidValue(
                "modulus", f"{modulus.bit_length()} bits", f"an odd one of {LEAST_MODULUS_BITS} bits or more"
            )
        for name in ("g", "h"):
            generator = int(getattr(self, name), 16)
            if not 1 < generator < modulus or math.gcd(generator, modulus) != 1:
                raise InvalidValue(name, "a number", "an element of the group other than 1")
        check_integer("subgroup_bits", self.subgroup_bits, 160, 1024)

    @staticmethod
    def of(key: DGKPublic) -> HomomorphicKey:
        """A key as it stands in a signed route."""
        return HomomorphicKey(f"{key.modulus:x}", f"{key.g:x}", f"{key.h:x}", key.subgroup_bits)

    @property
    def ciphertext_bytes(self) -> int:
        """The size of a ciphertext."""
        return -(-int(self.modulus, 16).bit_length() // 8)


@dataclass(frozen=True, kw_only=True)
class ObliviousRoute(Route):
    """Reports in shares: devices send a share to each shuffler, and the shufflers permute the shares together.

    `fakes` is how many a batch has: every shuffler draws a share of each, so that all are uniform if one is.

    `homomorphic_key`: the server's key, to which one share of every report is encrypted at any time.
    """

    trust: ClassVar[str] = "oblivious"
    fewest: ClassVar[int] = 3
    most: ClassVar[int] = 7

    homomorphic_key: HomomorphicKey

    @property
    def all_fakes(self) -> int:
        return self.fakes

    @property
    def receivers(self) -> tuple[RouteShuffler, ...]:
        return self.shufflers

    @property
    def turns(self) -> int:
        return 2 + 2 * math.comb(len(self.shufflers), len(self.shufflers) // 2 + 1)  # list, rounds of two, the result

    def sealed_bytes(self, report_bytes: int) -> int:
        return self.homomorphic_key.ciphertext_bytes + LAYER_BYTES

    def room(self, report_bytes: int) -> int:
        row = self.homomorphic_key.ciphertext_bytes + 64  # and a number of 8 bytes from each shuffler
        return MOST_BATCH_BYTES // row - self.all_fakes

    def spec(self) -> dict[str, Json]:
        return {**super().spec(), "homomorphic_key": dict(vars(self.homomorphic_key))}

    @classmethod
    def _read(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        key = spec["homomorphic_key"]
        check_fields("homomorphic_key", key, {part.name for part in fields(HomomorphicKey)})
        bits = integer("subgroup_bits", key["subgroup_bits"])
        return {"homomorphic_key": HomomorphicKey(**{**key, "subgroup_bits": bits})}


ROUTES: Mapping[str, type[Route]] = {route.trust: route for route in (ShuffleRoute, ObliviousRoute)}
"""The kind of route of each trust; collections of trust "local" have none."""
TRUSTS = ("local", *ROUTES)


def weaker_route(now: Route | None, was: Route | None) -> list[tuple[str, str]]:
    """Where a route protects less than the one before: fewer shufflers or fakes, smaller batches, a larger delta."""
    if was is None:
        return []
    if now is None:
        return [("trust", "reports passed shufflers, and no longer do")]
    if type(now) is not type(was):
        return [
            ("trust", f'it was "{was.trust}", and other groups of parties can trace reports where it is "{now.trust}"')
        ]
    numbers = {
        "shufflers": (len(was.shufflers), len(now.shufflers)),
        "least": (was.least, now.least),
        "fakes": (was.fakes, now.fakes),
    }
    less = [(f"shuffle.{name}", f"{old:,} became {new:,}") for name, (old, new) in numbers.items() if new < old]
    return less + ([("shuffle.delta", f"{was.delta:g} became {now.delta:g}")] if now.delta > was.delta else [])


def batch_name(collection: str, version: int, name: AnswerName) -> str:
    """The name of the batch that a report belongs to."""
    return f"{collection}:{version}:{name}"


def layer_name(batch: str, ask: Ask) -> str:
    """The text that the layers of a report are bound to: its batch, and the mechanism and view of its ask.

    A layer cannot be opened as part of another batch. Nor can a collector single out a device by giving it an ask with
    another mechanism or view: a shuffler opens the layers of one ask, and reports to any other ask are left out.
    """
    return f"{batch}:{spec_id({'mechanism': ask.mechanism.spec_id, 'view': ask.view.spec()})}"


def check_key(name: str, value: object) -> None:
    """Refuse what is not a public key."""
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= _HEX:
        raise InvalidValue(name, value, "64 hexadecimal digits")
