"""The view of a study that trains a model together: a device's update of the model, as a sparse ternary vector."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.domain.vector import MOST_ENTRIES
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Floats
from hubbub.mechanisms.ternary.gradients import Gradients
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.protocols.views.basic import View
from hubbub.random.source import Random

_BLOCK = 1 << 22  # numbers in memory at a time
_LARGEST = 1e100  # sums of more entries than there are stay finite
_HASH = re.compile(r"[0-9a-f]{64}")


def model_hash(content: bytes) -> str:
    """The name of a model: the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()


def model_bytes(weights: Floats) -> bytes:
    """A model's weights as bytes: 32-bit floats, the least significant byte first."""
    return weights.astype("<f4").tobytes()


def model_weights(content: bytes) -> Floats:
    """The weights of a model from its bytes."""
    return np.frombuffer(content, dtype="<f4").astype(np.float64)


@dataclass(frozen=True)
class Update(View):
    """A device's vector, shrunk until it meets both bounds, and rounded without bias to -1, 0 and 1 times `clip`.

    How: `hubbub.mechanisms.ternary.gradients.Gradients`, with `clip` for its scale. A position that does not exist and
    a number that is not finite count as 0; a device without a vector answers with one of zeros.

    Parameters
    ----------
    model
        The hash of the public model of the round, which is the same for all devices. Its bytes, `content`, are not part
        of the view.
    dimension, sparsity
        How many entries a vector has, and how many of them are not 0 after rounding.
    clip
        The largest entry; entries together are at most `sparsity * clip`.
    """

    model: str
    dimension: int
    sparsity: int
    clip: float

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not _HASH.fullmatch(self.model):
            raise InvalidValue("model", self.model, "64 hexadecimal digits")
        check_integer("dimension", self.dimension, 1, MOST_ENTRIES)
        check_integer("sparsity", self.sparsity, 1, self.dimension)
        object.__setattr__(self, "clip", float(self._gradients.scale))

    @staticmethod
    def of(content: bytes, *, dimension: int, sparsity: int, clip: float) -> "Update":
        """The view of a round whose model has these bytes."""
        view = Update(model_hash(content), dimension, sparsity, clip)
        object.__setattr__(view, "content", content)
        return view

    @property
    def content_bytes(self) -> int:
        """How many bytes the model has."""
        return 4 * self.dimension

    @property
    def _gradients(self) -> Gradients:
        return Gradients(scale=self.clip, sparsity=self.sparsity)

    def __call__(self, values: Any) -> Floats:
        """The vectors, each shrunk until it meets both bounds; before they are rounded."""
        return self._gradients.clipped(self._rows(values))

    def look(self, values: Any, rng: Random) -> Ternary:
        entries = np.full((len(values), self.sparsity), -1, dtype=np.int64)
        step = max(1, _BLOCK // self.dimension)
        for start in range(0, len(values), step):
            rounded = self._gradients.ternary(self._rows(values[start : start + step]), rng).entries
            entries[start : start + step, : rounded.shape[1]] = rounded
        return Ternary(entries, self.dimension)

    def _rows(self, values: Any) -> Floats:
        """Vectors as rows; they come as rows, or as pairs of position and number."""
        if isinstance(values, np.ndarray):
            rows = values.astype(np.float64)
        else:
            rows = np.zeros((len(values), self.dimension))
            for row, pairs in zip(rows, values, strict=True):
                inside = [(place, number) for place, number in pairs if _is_place(place, self.dimension)]
                row[[place for place, _ in inside]] = [number for _, number in inside]
        return np.where(np.isfinite(rows), np.clip(rows, -_LARGEST, _LARGEST), 0.0)


def _is_place(place: object, dimension: int) -> bool:
    return isinstance(place, int) and 0 <= place < dimension
