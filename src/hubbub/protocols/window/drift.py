"""How fast a stream moves, learned from the distances between estimates."""

from __future__ import annotations

__all__ = ["Drift"]

MEMORY = 0.9
"""How much of what was known is kept at each observation."""


class Drift:
    """The mean squared movement a step, as of a random walk.

    Each observation is the squared distance between two estimates less their noise, unbiased and so sometimes negative,
    and the steps between them.

    Example:
        >>> drift = Drift()
        >>> drift.observe(4.0, steps=2)
        >>> drift.per_step
        2.0
    """

    remembered = ("_moved", "_steps")

    def __init__(self) -> None:
        self._moved = self._steps = 0.0

    def observe(self, moved: float, *, steps: int) -> None:
        """Learn from one distance.

        Example:
            >>> drift = Drift()
            >>> drift.observe(-1.0, steps=1)
            >>> drift.per_step
            0.0
        """
        self._moved = MEMORY * self._moved + moved
        self._steps = MEMORY * self._steps + steps

    @property
    def per_step(self) -> float:
        """What is known now; 0 before anything is."""
        return max(self._moved / self._steps, 0.0) if self._steps else 0.0
