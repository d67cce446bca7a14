"""Sparse ternary vectors and key-value data: one file a mechanism."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.ternary.collision import Collision

MECHANISMS: tuple[type[Mechanism], ...] = (Collision,)
