"""The route of a shuffled report: the shufflers between devices and collector, signed with the collection."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json, check_fields, integer, spec_id

if TYPE_CHECKING:
    from hubbub.protocols.ask import Ask

LAYER_BYTES = 48
"""The bytes that a layer of encryption adds to a report: an ephemeral key and a tag (`hubbub.shuffle.onion`)."""
MOST_SHUFFLERS = 8
MOST_BATCH_BYTES = 64 << 20
"""The largest batch that goes from one party to the next."""
HOP_SECONDS = 1
"""The least time that each shuffler is given to hand a batch on."""
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
class ShuffleRoute:
    """The shufflers of a collection's reports, and the rules that each of them follows.

    Parameters
    ----------
    shufflers
        In the order in which reports pass them; devices send to the first.
    collector_key
        The X25519 key of the innermost layer, which the collector opens.
    delta
        The delta at which the central epsilon of a batch is stated.
    least
        How many people's reports a batch must have; a shuffler drops a smaller one.
    fakes
        How many uniformly drawn reports each shuffler adds to each batch.
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
        # The reports and fakes that a batch must have fit into it: no shuffler is made to draw fakes without end.
        most = MOST_BATCH_BYTES // (self.layer_bytes + 1)
        check_integer("least", self.least, 2, most)
        check_integer("fakes", self.fakes, 0, (most - self.least) // len(self.shufflers))
        keys = [self.collector_key, *(shuffler.encryption_key for shuffler in self.shufflers)]
        signing = [shuffler.signing_key for shuffler in self.shufflers]
        if len(set(keys)) < len(keys) or len(set(signing)) < len(signing):
            raise InvalidValue("shufflers", "a key that stands twice", "a key of its own for each of them")

    @property
    def route(self) -> list[bytes]:
        """The public keys of the layers: the shufflers' in their order, and the collector's."""
        keys = (*(shuffler.encryption_key for shuffler in self.shufflers), self.collector_key)
        return [bytes.fromhex(key) for key in keys]

    @property
    def layer_bytes(self) -> int:
        """The bytes that all layers add to a report."""
        return LAYER_BYTES * (len(self.shufflers) + 1)

    @property
    def all_fakes(self) -> int:
        """How many fake reports a batch has at the end."""
        return self.fakes * len(self.shufflers)

    def place_of(self, encryption_key: bytes, signing_key: bytes) -> int:
        """The position of the shuffler that has these keys."""
        keys = (encryption_key.hex(), signing_key.hex())
        for place, shuffler in enumerate(self.shufflers):
            if (shuffler.encryption_key, shuffler.signing_key) == keys:
                return place
        raise InvalidValue("key", encryption_key.hex()[:16] + "...", "the keys of a shuffler of the collection")

    def spec(self) -> dict[str, Json]:
        """The route as JSON."""
        return {
            "shufflers": [dict(vars(shuffler)) for shuffler in self.shufflers],
            "collector_key": self.collector_key,
            "delta": self.delta,
            "least": self.least,
            "fakes": self.fakes,
        }

    @staticmethod
    def from_spec(spec: Any) -> ShuffleRoute:
        """Read a route back; every field must be there, and no other."""
        check_fields("shuffle", spec, {part.name for part in fields(ShuffleRoute)})
        shuffler_specs = spec["shufflers"]
        if not isinstance(shuffler_specs, list | tuple):
            raise InvalidValue("shufflers", shuffler_specs, "a list of tables")
        for shuffler in shuffler_specs:
            check_fields("shufflers", shuffler, {part.name for part in fields(RouteShuffler)})
        numbers = {name: integer(name, spec[name]) for name in ("least", "fakes")}
        shufflers = tuple(RouteShuffler(**shuffler) for shuffler in shuffler_specs)
        return ShuffleRoute(shufflers=shufflers, collector_key=spec["collector_key"], delta=spec["delta"], **numbers)


def weaker_route(now: ShuffleRoute | None, was: ShuffleRoute | None) -> list[tuple[str, str]]:
    """Where a route protects less than the one before: fewer shufflers or fakes, smaller batches, a larger delta."""
    if was is None:
        return []
    if now is None:
        return [("trust", "reports passed shufflers, and no longer do")]
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
