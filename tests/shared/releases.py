"""Releases as the API answers them."""

import json
from typing import Any

import msgspec

from hubbub.service.rounds.releases import told_release
from hubbub.service.store.base import ReleaseRow


def release_json(row: ReleaseRow, *, level: float = 0.95) -> dict[str, Any]:
    """The JSON of a stored release."""
    told: dict[str, Any] = msgspec.to_builtins(told_release(row, level=level))
    return told


def stored_payload(numbers: str) -> str:
    """The payload of a release with these numbers, and nothing else that is of interest."""
    plain = {"published": True, "spent": 0.0, "population": None, "bias": "none", "kind": "share"}
    return json.dumps({**plain, **json.loads(numbers)})
