"""The device's half: it follows its own value, and says at the end of each node what its mechanism has it say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.event import Event
from hubbub.core.random import Random
from hubbub.mechanisms.ternary.online import Online, OnlineExSub
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.protocols.changes import Bits, Changes

__all__ = ["Following", "OnlineDevice"]

_KIND = "sao2 device"


@dataclass(frozen=True, eq=False)
class Following:
    """What devices of one level keep between steps. It tells of their values, and stays with them.

    Parameters
    ----------
    node
        The last node they took part in, or passed.
    held
        The value that they hold, as far as it was told.
    used
        How many changes were told.
    online
        The mechanism's own counters.

    Example:
        >>> from hubbub import ExSub
        >>> exsub = ExSub(epsilon=1.0, dimension=4, sparsity=2)
        >>> state = OnlineDevice(Changes(span=1, steps=4, dimension=1, changes=2), exsub).enroll(1, Random(seed=1))
        >>> Following.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()
        True
    """

    node: int
    held: Bits
    used: NDArray[np.int32]
    online: Online

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, devices: slice | NDArray[Any]) -> Following:
        return Following(self.node, self.held[devices], self.used[devices], self.online[devices])

    def to_bytes(self) -> bytes:
        """The state as a device stores it."""
        held, used = self.held.tobytes(), self.used.astype("<i4").tobytes()
        return msgspec.msgpack.encode((_KIND, self.node, self.held.shape[1], held, used, self.online.to_bytes()))

    @staticmethod
    def from_bytes(data: bytes) -> Following:
        """Read a state back; anything else is refused.

        Example:
            >>> Following.from_bytes(b"other")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: state: got b'other'; allowed: the bytes of a device's state
        """
        try:
            kind, node, width, held, used, online = msgspec.msgpack.decode(
                data, type=tuple[str, int, int, bytes, bytes, bytes]
            )
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind, node, width, held, used, online = "", 0, 1, b"", b"", b""
        sound = kind == _KIND and node >= 0 and width >= 1 and len(used) % 4 == 0
        if not sound or len(held) != width * (len(used) // 4) or set(held) - {0, 1}:
            raise DecodeError("state", data[:40], "the bytes of a device's state")
        told = np.frombuffer(used, dtype="<i4").astype(np.int32)
        counters = Online.from_bytes(online)
        if len(counters) != told.size or (told < 0).any():
            raise DecodeError("state", data[:40], "the bytes of a device's state")
        return Following(node, np.frombuffer(held, dtype=np.int8).reshape(-1, width), told, counters)


@dataclass(frozen=True)
class OnlineDevice:
    """Devices of one level, a step at a time: one device is a batch of one.

    A device enrols before it says anything, which costs it `event()` and nothing more, ever: all it will say, over all
    steps together, tells at most epsilon (the ledger's unit is the user). Nodes that it misses, before it joined or
    while it was away, are passed in silence, and what changed in them is told with the next one it takes part in.

    Parameters
    ----------
    view
        What its level tells.
    mechanism
        How it is said: for vectors of the view's length, of which as many entries may differ from 0.

    Example:
        >>> from hubbub import NetSub
        >>> view = Changes(span=2, steps=4, dimension=1, changes=1)
        >>> device = OnlineDevice(view, NetSub(epsilon=3.0, dimension=view.entries, sparsity=view.sparsity))
        >>> rng, heard = Random(seed=1), device.client.enrolled(20_000)
        >>> state = device.enroll(20_000, rng)
        >>> for step in (1, 2, 3, 4):  # all turn on in step 2
        ...     state, said = device.step(state, step, np.full(20_000, step >= 2), rng)
        ...     if said is not None:
        ...         heard = heard + device.client.heard(said, step // 2 - 1)
        >>> device.mechanism.estimate(heard).value.round(1).tolist()[0]
        1.0
    """

    view: Changes
    mechanism: SignedSets

    def __post_init__(self) -> None:
        given, view = self.mechanism, self.view
        if not isinstance(view, Changes):
            raise InvalidValue("view", view, "the changes of a level")
        if not isinstance(given, SignedSets):
            raise InvalidValue(
                "mechanism", type(given).__name__, "one whose signs are said as the entries come: NetSub or ExSub"
            )
        if given.dimension != view.entries or given.sparsity < view.sparsity:
            raise InvalidValue(
                "mechanism", (given.dimension, given.sparsity), f"{view.entries} entries, {view.sparsity} of them not 0"
            )

    @property
    def client(self) -> OnlineExSub:
        """The mechanism, an entry at a time."""
        return OnlineExSub(self.mechanism)

    def event(self, step: int | None = None) -> Event:
        """What enrolling spends: all that will ever be spent.

        Example:
            >>> from hubbub import NetSub
            >>> view = Changes(span=2, steps=4, dimension=1, changes=1)
            >>> OnlineDevice(view, NetSub(epsilon=3.0, dimension=2, sparsity=1)).event(step=7).step
            7
        """
        spent = self.mechanism.event()
        return Event(spent.mechanism, spent.spec_id, spent.spent, step)

    def enroll(self, n: int, rng: Random) -> Following:
        """The state of n devices that have said nothing: drawn without looking at any value."""
        held = np.zeros((n, self.view.dimension), dtype=np.int8)
        return Following(0, held, np.zeros(n, dtype=np.int32), self.client.start(n, rng))

    def step(
        self, state: Following, step: int, values: ArrayLike, rng: Random
    ) -> tuple[Following, NDArray[np.int8] | None]:
        """The state after a step, and what each device says: a sign or nothing (0) an entry; None between nodes.

        A step that is not the next one means that those in between were missed; one of the past is refused.
        """
        view = self.view
        if isinstance(step, bool) or not isinstance(step, int | np.integer) or not 1 <= step <= view.steps:
            raise InvalidValue("step", step, f"a step from 1 to {view.steps}")
        node, within = divmod(int(step), view.span)
        if node <= state.node and not (within and node == state.node):
            raise InvalidValue("step", step, f"a step after the {state.node * view.span} that are told")
        if state.online.spec_id != self.mechanism.spec_id:
            raise SpecMismatch("spec_id", state.online.spec_id, f"a state of {self.mechanism.spec_id}")
        bits = view.bits(values)
        if len(bits) != len(state):
            raise InvalidValue("values", len(bits), f"{len(state)} values, one a device")
        if within:
            return state, None
        missed = view.dimension * (node - state.node - 1)
        online = self.client.skip(state.online, missed, rng) if missed else state.online
        held, used = view.follow(state.held, state.used, bits)
        online, said = self.client.step(online, held - state.held, rng)
        return Following(node, held, used, online), said
