"""The papers' tables and figures, reproduced: a package a paper, the harness that runs them, and their baselines.

The papers are loaded when they are asked for: a baseline that is named loads its own file alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub_papers.catalogue import REPRODUCTIONS, Cell, Reproduction, Result, reproduce

__all__ = ["REPRODUCTIONS", "Cell", "Reproduction", "Result", "reproduce"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("hubbub_papers.catalogue"), name)
    raise AttributeError(f"module 'hubbub_papers' has no attribute {name!r}")
