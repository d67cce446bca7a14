"""The two ways of a release: by a curator who has the values (ToPS), and by devices that randomise them (ToPL)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hubbub.core.random import Random
    from hubbub.curator.steps import Step
    from hubbub.curator.tops import ToPS
    from hubbub.protocols.topl.server import ToPL

__all__ = ["ByCurator", "ByDevices", "Way"]

Follow = Callable[[int, int], None]
_PART = 1 << 18  # values between two moves of the progress bar


class Way(Protocol):
    """Values in, steps out. `earlier` are the steps that a state file has still to show."""

    earlier: list[Step]
    holdout: int
    every: int
    paid: float

    @property
    def theta(self) -> float | None: ...
    @property
    def position(self) -> int: ...
    def whole(self, values: NDArray[np.float64], follow: Follow) -> list[Step]:
        """The steps of a file that the way has not shown; all of its values are checked first."""
        ...

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        """The steps that values of a pipe complete; they are on disk if there is a state file."""
        ...

    def settle(self) -> None:
        """All is written: the state file may go on."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ByCurator:
    """ToPS, through a stream or through its state file."""

    def __init__(self, tops: ToPS, every: int, rng: Random, state: Path | None, source: str) -> None:
        from hubbub.curator.release_file import ReleaseFile
        from hubbub.curator.steps import StepMaker

        self._file = None if state is None else ReleaseFile(state, tops, source=source)
        self._stream = tops.start(rng) if self._file is None else self._file.stream
        try:
            self._maker = StepMaker(self._stream, every, first=self._file.pending.first if self._file else 0)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.earlier: list[Step] = [] if self._file is None else self._maker.take(self._file.pending.published)
        self.holdout, self.every, self.paid = tops.holdout, self._maker.every, tops.effective_epsilon

    @property
    def theta(self) -> float | None:
        return self._stream.theta

    @property
    def position(self) -> int:
        return self._stream.position

    def whole(self, values: NDArray[np.float64], follow: Follow) -> list[Step]:
        if self._file is not None:
            return self._maker.take(self._file.replay(values))
        self._stream.checked(values)
        steps: list[Step] = []
        for start in range(0, values.size, _PART):
            follow(start, values.size)
            steps += self._maker.take(self._stream.push_many(values[start : start + _PART]))
        return steps

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        if self._file is None:
            return self._maker.take(self._stream.push_many(values))
        return self._maker.take(self._file.push_many(values, carry=self._maker.open))

    def settle(self) -> None:
        if self._file is not None:
            self._file.settle(carry=self._maker.open)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class ByDevices:
    """ToPL: every value is one device's. A state file has what the server heard, and no value."""

    def __init__(self, settings: ToPL, rng: Random, state: Path | None, source: str) -> None:
        from hubbub.protocols.topl.server import ToPLServer
        from hubbub.simulate.local_release_file import LocalReleaseFile

        self._rng = rng
        self._file = None if state is None else LocalReleaseFile(state, settings, source=source)
        self._server = ToPLServer(settings) if self._file is None else self._file.server
        self.earlier: list[Step] = [] if self._file is None else list(self._file.steps)
        self.holdout, self.every, self.paid = settings.holdout, settings.every, settings.effective_epsilon

    @property
    def theta(self) -> float | None:
        return self._server.theta

    @property
    def position(self) -> int:
        return self._server.position

    def whole(self, values: NDArray[np.float64], follow: Follow) -> list[Step]:
        from hubbub.curator.stream import checked_values
        from hubbub.simulate.local_release import tell

        done, bound = self.position, self._server.settings.bound
        if values.size < done:
            raise InvalidValue("values", f"{values.size:,} values", f"the {done:,} that have reported, and more")
        rest = checked_values(values[done:], bound, done)
        if self._file is not None:
            return self._file.tell(rest, self._rng) if rest.size else []
        steps: list[Step] = []
        for start in range(0, rest.size, _PART):
            follow(start, rest.size)
            steps += tell(self._server, rest[start : start + _PART], self._rng)
        return steps

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        from hubbub.simulate.local_release import tell

        return tell(self._server, values, self._rng) if self._file is None else self._file.tell(values, self._rng)

    def settle(self) -> None:
        """Nothing to do: what is on disk was, before it was shown."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
