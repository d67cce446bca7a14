"""The two ways of a release: by a curator who has the values (ToPS), and by devices that randomise them (ToPL)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hubbub.core.estimate import Estimate
    from hubbub.core.random import Random
    from hubbub.curator.release_file import ReleaseFile
    from hubbub.curator.steps import Step
    from hubbub.curator.stream import ToPSStream
    from hubbub.curator.tops import ToPS
    from hubbub.protocols.topl.server import ToPL, ToPLServer
    from hubbub.simulate.local_release_file import LocalReleaseFile

Follow = Callable[[int, int], None]
_PART = 1 << 18  # values between two moves of the progress bar


class Way(ABC):
    """Values in, steps out. `earlier` are the steps that a state file has still to show."""

    earlier: list[Step]
    holdout: int
    every: int
    paid: float
    _file: ReleaseFile | LocalReleaseFile | None

    @property
    @abstractmethod
    def _stream(self) -> ToPSStream | ToPLServer:
        """What takes the values."""

    @property
    def theta(self) -> float | None:
        return self._stream.theta

    @property
    def position(self) -> int:
        return self._stream.position

    @property
    def clipping(self) -> dict[str, Estimate]:
        """What clipping to theta hides, by name, where it is estimated."""
        return {}

    def whole(self, values: NDArray[np.float64], follow: Follow) -> list[Step]:
        """The steps of a file that the way has not shown."""
        steps: list[Step] = []
        done = self.position
        for start in range(done, values.size, _PART):
            follow(start - done, values.size - done)
            steps += self.more(values[start : start + _PART])
        return steps

    @abstractmethod
    def more(self, values: NDArray[np.float64]) -> list[Step]:
        """The steps that values of a pipe complete; they are on disk if there is a state file."""

    def settle(self) -> None:  # noqa: B027 # nothing, where what is on disk was there before it was shown
        """All is written: the state file may go on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class ByCurator(Way):
    """ToPS, through a stream or through its state file."""

    _file: ReleaseFile | None

    def __init__(self, tops: ToPS, every: int, rng: Random, state: Path | None, source: str) -> None:
        from hubbub.curator.release_file import ReleaseFile
        from hubbub.curator.steps import StepMaker, step_length

        self.holdout, self.every, self.paid = tops.holdout, step_length(tops, every), tops.effective_epsilon
        self._file = None if state is None else ReleaseFile(state, tops, source=source, every=self.every)
        self._own = tops.start(rng) if self._file is None else None
        self._maker = StepMaker(tops, self.every, first=self._file.pending.first if self._file else 0)
        self.earlier = [] if self._file is None else self._steps(self._file.pending.published)

    @property
    def _stream(self) -> ToPSStream:
        return self._own or self._file.stream  # type: ignore[union-attr] # there is either

    def _steps(self, published: NDArray[np.float64]) -> list[Step]:
        return self._maker.take(published, self._stream.segments)

    def whole(self, values: NDArray[np.float64], follow: Follow) -> list[Step]:
        if self._file is None:
            return super().whole(values, follow)
        return self._steps(self._file.replay(values, follow=follow))

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        if self._file is None:
            return self._steps(self._stream.push_many(values))
        return self._steps(self._file.push_many(values, carry=self._maker.open))

    def settle(self) -> None:
        if self._file is not None:
            self._file.settle(carry=self._maker.open)


class ByDevices(Way):
    """ToPL: every value is one device's. A state file has what the server heard, and no value."""

    _file: LocalReleaseFile | None

    def __init__(self, settings: ToPL, rng: Random, state: Path | None, source: str) -> None:
        from hubbub.protocols.topl.server import ToPLServer
        from hubbub.simulate.local_release_file import LocalReleaseFile

        self.holdout, self.every, self.paid = settings.holdout, settings.every, settings.effective_epsilon
        self._rng = rng
        self._file = None if state is None else LocalReleaseFile(state, settings, source=source)
        self._own = ToPLServer(settings) if self._file is None else None
        self.earlier = [] if self._file is None else list(self._file.steps)

    @property
    def _stream(self) -> ToPLServer:
        return self._own or self._file.server  # type: ignore[union-attr] # there is either

    @property
    def clipping(self) -> dict[str, Estimate]:
        return self._stream.clipping

    def whole(self, values: NDArray[np.float64], follow: Follow) -> list[Step]:
        if values.size < self.position:
            allowed = f"the {self.position:,} that have reported, and more"
            raise InvalidValue("values", f"{values.size:,} values", allowed)
        return super().whole(values, follow)

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        from hubbub.simulate.local_release import report_values

        if self._file is not None:
            return self._file.report(values, self._rng)
        return report_values(self._stream, values, self._rng)
