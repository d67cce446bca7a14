"""The collection of the demonstration of shuffled reports, as its file (TOML)."""

from __future__ import annotations

import json

from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.demo.scene_files import emoji_file
from hubbub.demo.scenes import EMOJI


def collection_file(route: ShuffleRoute, step_seconds: int, origin: int) -> str:
    """The collection's file (TOML), with the shufflers of a route."""
    lateness = max(4, step_seconds // 2)
    lines = [emoji_file(EMOJI, step_seconds, epsilon=3.0, trust="shuffle", lateness=lateness, origin=origin)]
    lines += ["[shuffle]", *(f"{key} = {json.dumps(getattr(route, key))}" for key in ("collector_key", "delta"))]
    lines += [f"least = {route.least}", f"fakes = {route.fakes}"]
    for shuffler in route.shufflers:
        lines += ["[[shuffle.shufflers]]", *(f"{key} = {json.dumps(value)}" for key, value in vars(shuffler).items())]
    return "\n".join(lines) + "\n"
