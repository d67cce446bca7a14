"""The collection of the demonstration of shuffled reports, as its file (TOML)."""

from __future__ import annotations

import json

from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.demo.scenes import EMOJI

_TEXT = """
name = "emoji"
version = 1
title = "Which emoji people use"
trust = "shuffle"
[schedule]
step = "{step}s"
lateness = "{lateness}s"
origin = {origin}
retention = "1d"
[privacy]
event = 3.0
window = {{ epsilon = 21.0, steps = 7 }}
minimum_batch = 20
[fields.used]
kind = "categorical"
names = {names}
[questions.popular]
title = "Which emoji is used most?"
kind = "histogram"
field = "used"
epsilon = 3.0
"""


def collection_file(route: ShuffleRoute, step_seconds: int, origin: int) -> str:
    """The collection's file (TOML), with who shuffles.

    Example:
        >>> from hubbub.collection.shuffle_route import RouteShuffler
        >>> shuffler = RouteShuffler("https://first.example", "0a" * 32, "0b" * 32)
        >>> route = ShuffleRoute(shufflers=(shuffler,), collector_key="0c" * 32, delta=1e-6, least=1000)
        >>> "[[shuffle.shufflers]]" in collection_file(route, 8, 0)
        True
    """
    names = json.dumps(list(EMOJI), ensure_ascii=False)
    lines = [_TEXT.format(step=step_seconds, lateness=max(4, step_seconds // 2), origin=origin, names=names)]
    lines += ["[shuffle]", *(f"{key} = {json.dumps(getattr(route, key))}" for key in ("collector_key", "delta"))]
    lines += [f"least = {route.least}", f"fakes = {route.fakes}"]
    for each in route.shufflers:
        lines += ["[[shuffle.shufflers]]", *(f"{key} = {json.dumps(value)}" for key, value in vars(each).items())]
    return "\n".join(lines) + "\n"
