"""The contract of mechanisms whose devices remember: each draws a state once, and makes its reports from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.domain.base import Values
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Array, Bools, Columns, Ints, Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.random.source import Random

VERSION = 1
_KIND = "state"
Transcript = tuple[bytes, ...]
"""What a device sends over some steps: the bare bytes of each report, empty where it sends none."""


@dataclass(frozen=True, eq=False)
class States:
    """What devices remember between steps, one row per device. It reveals their values, and never leaves the devices.

    Parameters
    ----------
    spec_id
        The mechanism of the states.
    columns
        Arrays with a row for each device, whose content the mechanism defines.
    """

    spec_id: str
    columns: Columns

    def __post_init__(self) -> None:
        for column in self.columns.values():
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def take(self, rows: slice | ArrayLike) -> States:
        """The states of some devices."""
        at = rows if isinstance(rows, slice) else np.asarray(rows)
        return States(self.spec_id, {name: column[at] for name, column in self.columns.items()})

    @staticmethod
    def concat(batches: Sequence[States]) -> States:
        """The states of several batches of devices together; shorter rows are filled up with 0."""
        if len({states.spec_id for states in batches}) != 1:
            raise SpecMismatch("spec_id", [states.spec_id for states in batches], "states of one mechanism")
        return States(
            batches[0].spec_id, {name: _stacked([states[name] for states in batches]) for name in batches[0].columns}
        )

    def to_bytes(self, row: int = 0) -> bytes:
        """The state of one device, as the device stores it."""
        columns = {
            name: (column.shape[1:], column[row].astype(column.dtype.newbyteorder("<")).tobytes())
            for name, column in self.columns.items()
        }
        return msgspec.msgpack.encode((_KIND, VERSION, self.spec_id, columns))

    @staticmethod
    def from_bytes(mechanism: Stateful, data: bytes) -> States:
        """Read the state of one device back; refuse other mechanisms' states, damaged ones and impossible ones."""
        try:
            kind, version, spec_id, columns = msgspec.msgpack.decode(
                data, type=tuple[str, int, str, dict[str, tuple[tuple[int, ...], bytes]]]
            )
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind, version, spec_id, columns = "", 0, "", {}
        if kind != _KIND:
            raise DecodeError("state", data[:40], "the bytes of a device's state")
        if version != VERSION:
            raise DecodeError("state", f"version {version}", f"version {VERSION}")
        if spec_id != mechanism.spec_id:
            raise DecodeError("state", spec_id, f"a state of {mechanism.spec_id}")
        if columns.keys() != mechanism.state_types.keys():
            raise DecodeError("state", sorted(columns), f"exactly {sorted(mechanism.state_types)}")
        try:
            read = {name: _read(mechanism.state_types[name], *columns[name]) for name in columns}
            mechanism.check_states(states := States(spec_id, read))
        except (ValueError, InvalidValue) as error:
            raise DecodeError("state", data[:40], f"a state that a device can reach ({error})") from error
        return states


@dataclass(frozen=True, kw_only=True)
class Stateful(ReportFormat):
    """A mechanism of devices that remember, vectorised over devices: a device is a batch of one.

    A device enrols without looking at a value. Before each step it computes the step's cost (`price`), pays it or not,
    and then takes the step (`step`). All its reports together reveal no more of its values than it paid for, except
    what `unhidden` states.
    """

    state_types: ClassVar[Mapping[str, str]]
    """The name and the type of every column of a state."""
    enrols: ClassVar[bool] = False
    """Whether devices must tell the server that they take part (`with_enrolment`)."""

    # -- devices ----------------------------------------------------------------------------------------------

    @abstractmethod
    def enroll(self, n: int, rng: Random) -> States:
        """The states of n devices before their first report: drawn without looking at any value."""

    @abstractmethod
    def price(self, states: States, step: int, values: Values) -> Ints:
        """What each device must pay before it takes a step with its value, in units of 1e-12 epsilon; often 0."""

    @abstractmethod
    def step(
        self, states: States, step: int, values: Values, rng: Random, paid: Bools
    ) -> tuple[States, Reports, Bools]:
        """The states after a step, the reports of the devices that send one, and which devices do.

        A device that did not pay its price reports from the state it has, or sends nothing.
        """

    def state_key(self, step: int) -> str:
        """The key of a step's state: where it differs from the key of the step before, devices enrol anew."""
        return ""

    def with_enrolment(self, states: States, reports: Reports, speaks: Bools, new: Bools) -> tuple[Reports, Bools]:
        """The reports of a step, and which devices send one, where `new` devices also tell that they take part.

        A new device sends a report even if it has nothing to say. Whether the server knows a device is not part of the
        device's state.
        """
        return reports, speaks

    @abstractmethod
    def check_states(self, states: States) -> None:
        """Refuse states that no device can reach."""

    # -- for the contract suite ------------------------------------------------------------------------------

    @abstractmethod
    def publics(self) -> dict[int, Fraction]:
        """What a device may draw as it enrols, and then sends with every report, with exact probabilities."""

    @abstractmethod
    def public_of(self, states: States) -> Ints:
        """The public part that each device drew."""

    @abstractmethod
    def transcripts(self, public: int, values: Sequence[object]) -> dict[Transcript, Fraction] | None:
        """Every transcript that a device may send of its values at the steps 0, 1, 2, ..., with its exact probability.

        The device drew this `public` and pays every price. None where the transcripts are too many.
        """

    def unhidden(self, public: int, values: Sequence[object]) -> Hashable:
        """What a device does not hide of its values: only histories that agree in it are protected from each other."""
        return ()

    def _check_batch(self, states: States, values: Values) -> None:
        if states.spec_id != self.spec_id:
            raise SpecMismatch("spec_id", states.spec_id, f"states of {self.spec_id}")
        if len(values) != len(states):
            raise InvalidValue("values", len(values), f"{len(states)} values, one per device")


def _stacked(arrays: Sequence[Array]) -> Array:
    shape = np.max([array.shape[1:] for array in arrays], axis=0).astype(int).tolist()
    stacked = np.zeros((sum(map(len, arrays)), *shape), dtype=arrays[0].dtype)
    start = 0
    for array in arrays:
        stacked[(slice(start, start + len(array)), *(slice(size) for size in array.shape[1:]))] = array
        start += len(array)
    return stacked


def _read(dtype: str, shape: tuple[int, ...], data: bytes) -> Array:
    if min(shape, default=0) < 0:
        raise ValueError("a negative length")
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(1, *shape)
