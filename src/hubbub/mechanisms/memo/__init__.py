"""Memoised mechanisms: a permanent answer, made once a value, and reports that are made from it."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.memo.loloha import Loloha

MECHANISMS: tuple[type[Mechanism], ...] = (Loloha,)
