"""The way of a report from a device to the collector, where shufflers stand between: signed with the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json, integer, spec_id

if TYPE_CHECKING:
    from hubbub.protocols.ask import Ask

LAYER_BYTES = 48
"""What a layer of encryption adds to a report: an ephemeral key and a tag (`hubbub.shuffle.onion`)."""
MOST_SHUFFLERS = 8
MOST_BATCH_BYTES = 64 << 20
"""The largest batch that goes from one party to the next."""
HOP_SECONDS = 1
"""The least time that each shuffler is given to hand a batch on."""
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class RouteShuffler:
    """One shuffler: where it is, the X25519 key that its layers are encrypted to, the Ed25519 key that it signs with.

    Both keys are 64 hexadecimal digits.

    Example:
        >>> RouteShuffler("https://first.example", "0a" * 32, "0b" * 32).url
        'https://first.example'
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
class ShuffleRoute:
    """Who shuffles the reports of a collection, and what every one of them keeps to.

    Parameters
    ----------
    shufflers
        In the order in which reports pass them; devices send to the first.
    collector_key
        The X25519 key of the innermost layer, which the collector opens.
    delta
        The delta at which the central epsilon of a batch is told.
    least
        How many people's reports a batch must have: nobody hands on a smaller one.
    fakes
        How many reports, drawn uniformly, every shuffler adds to every batch.

    Example:
        >>> first = RouteShuffler("https://first.example", "0a" * 32, "0b" * 32)
        >>> route = ShuffleRoute(shufflers=(first,), collector_key="0c" * 32, delta=1e-6, least=1000)
        >>> ShuffleRoute.from_spec(route.spec()) == route, route.layer_bytes
        (True, 96)
    """

    shufflers: tuple[RouteShuffler, ...]
    collector_key: str
    delta: float
    least: int
    fakes: int = 0

    def __post_init__(self) -> None:
        if not 1 <= len(self.shufflers) <= MOST_SHUFFLERS:
            raise InvalidValue("shufflers", len(self.shufflers), f"1 to {MOST_SHUFFLERS}")
        check_key("collector_key", self.collector_key)
        if isinstance(self.delta, bool) or not isinstance(self.delta, int | float) or not 1e-300 <= self.delta < 1:
            raise InvalidValue("delta", self.delta, "a number from 1e-300 to below 1")
        # Whatever a batch must have fits into it: nobody is made to draw fakes without end.
        most = MOST_BATCH_BYTES // (self.layer_bytes + 1)
        check_integer("least", self.least, 2, most)
        check_integer("fakes", self.fakes, 0, (most - self.least) // len(self.shufflers))
        keys = [self.collector_key, *(each.encryption_key for each in self.shufflers)]
        signing = [each.signing_key for each in self.shufflers]
        if len(set(keys)) < len(keys) or len(set(signing)) < len(signing):
            raise InvalidValue("shufflers", "a key that stands twice", "a key of its own for each of them")

    @property
    def route(self) -> list[bytes]:
        """The public keys of the layers: the shufflers' in their order, and the collector's."""
        return [bytes.fromhex(key) for key in (*(each.encryption_key for each in self.shufflers), self.collector_key)]

    @property
    def layer_bytes(self) -> int:
        """What all layers add to a report."""
        return LAYER_BYTES * (len(self.shufflers) + 1)

    @property
    def all_fakes(self) -> int:
        """How many fake reports a batch has at the end."""
        return self.fakes * len(self.shufflers)

    def place_of(self, encryption_key: bytes, signing_key: bytes) -> int:
        """Which of the shufflers has these keys."""
        mine = (encryption_key.hex(), signing_key.hex())
        for place, each in enumerate(self.shufflers):
            if (each.encryption_key, each.signing_key) == mine:
                return place
        raise InvalidValue("key", encryption_key.hex()[:16] + "...", "the keys of a shuffler of the collection")

    def spec(self) -> dict[str, Json]:
        """The route as JSON."""
        return {
            "shufflers": [dict(vars(each)) for each in self.shufflers],
            "collector_key": self.collector_key,
            "delta": self.delta,
            "least": self.least,
            "fakes": self.fakes,
        }

    @staticmethod
    def from_spec(spec: Any) -> ShuffleRoute:
        """Read a route back; every field must be there, and no other."""
        _exactly("shuffle", spec, {part.name for part in fields(ShuffleRoute)})
        several = spec["shufflers"]
        if not isinstance(several, list | tuple):
            raise InvalidValue("shufflers", several, "a list of tables")
        for each in several:
            _exactly("shufflers", each, {part.name for part in fields(RouteShuffler)})
        numbers = {name: integer(name, spec[name]) for name in ("least", "fakes")}
        shufflers = tuple(RouteShuffler(**each) for each in several)
        return ShuffleRoute(shufflers=shufflers, collector_key=spec["collector_key"], delta=spec["delta"], **numbers)


def weaker_route(now: ShuffleRoute | None, was: ShuffleRoute | None) -> list[tuple[str, str]]:
    """What protects less than it did, by the field: fewer shufflers, smaller batches, fewer fakes, a larger delta.

    Example:
        >>> first = RouteShuffler("https://first.example", "0a" * 32, "0b" * 32)
        >>> route = ShuffleRoute(shufflers=(first,), collector_key="0c" * 32, delta=1e-6, least=1000)
        >>> from dataclasses import replace
        >>> weaker_route(None, route), weaker_route(route, None), weaker_route(replace(route, least=99), route)
        ([('trust', 'reports passed shufflers, and no longer do')], [], [('shuffle.least', '1,000 became 99')])
    """
    if was is None:
        return []
    if now is None:
        return [("trust", "reports passed shufflers, and no longer do")]
    several = {
        "shufflers": (len(was.shufflers), len(now.shufflers)),
        "least": (was.least, now.least),
        "fakes": (was.fakes, now.fakes),
    }
    less = [(f"shuffle.{name}", f"{old:,} became {new:,}") for name, (old, new) in several.items() if new < old]
    return less + ([("shuffle.delta", f"{was.delta:g} became {now.delta:g}")] if now.delta > was.delta else [])


def batch_name(collection: str, version: int, name: AnswerName) -> str:
    """Which batch a report is of.

    Example:
        >>> batch_name("themes", 2, AnswerName("popular", 0, 7, 1, 0))
        'themes:2:popular:0:7:1:0'
    """
    return f"{collection}:{version}:{name}"


def layer_name(batch: str, ask: Ask) -> str:
    """What the layers of a report are bound to: its batch, and what was asked of the device.

    A layer cannot be opened as a part of another batch. Nor can a collector ask one device otherwise than all others,
    by another mechanism or view that the terms allow, so that its report stands out: a shuffler goes by one ask, and
    whoever answered another one is left out.

    Example:
        >>> from hubbub import GRR
        >>> from hubbub.protocols.ask import Ask
        >>> layer_name("themes:2:popular:0:7:1:0", Ask(mechanism=GRR(epsilon=1.0, domain=2), step=7))
        'themes:2:popular:0:7:1:0:311477b596083c81cbd2766728b446d2'
    """
    return f"{batch}:{spec_id({'mechanism': ask.mechanism.spec_id, 'view': ask.view.spec()})}"


def check_key(name: str, value: object) -> None:
    """Refuse what is not a public key.

    Example:
        >>> check_key("key", "0a" * 32)
    """
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= _HEX:
        raise InvalidValue(name, value, "64 hexadecimal digits")


def _exactly(name: str, spec: Any, wanted: set[str]) -> None:
    if not isinstance(spec, Mapping) or set(spec) != wanted:
        raise InvalidValue(name, spec, f"exactly the fields {', '.join(sorted(wanted))}")
