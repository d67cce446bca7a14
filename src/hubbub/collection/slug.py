"""Short names: of collections, fields and questions, in files, in addresses and on the wire."""

from __future__ import annotations

import re

LONGEST_NAME = 64
_SLUG = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def is_slug(value: object) -> bool:
    """Whether a value is at most 64 letters a-z, digits, - and _, and begins with a letter.

    Example:
        >>> is_slug("screen-time_2"), is_slug("Screen time"), is_slug("a\\n")
        (True, False, False)
    """
    return isinstance(value, str) and _SLUG.fullmatch(value) is not None
