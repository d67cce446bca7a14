"""The trees of sqlglot, as far as types go."""

from __future__ import annotations

from typing import Any, TypeAlias

Tree: TypeAlias = Any
"""An expression of sqlglot, whose classes change from version to version; what a tree may be is checked as it runs."""
