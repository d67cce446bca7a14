"""Sparse ternary vectors and key-value data: one file a mechanism."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.ternary.coco import CoCo
from hubbub.mechanisms.ternary.collision import Collision
from hubbub.mechanisms.ternary.exsub import ExSub

MECHANISMS: tuple[type[Mechanism], ...] = (Collision, CoCo, ExSub)
