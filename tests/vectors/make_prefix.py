"""Makes `prefix.json`: values, the codes of their prefixes, and the reports that every client must make of them.

    python -m tests.vectors.make_prefix

A case of "seen" is {"view", "values", "codes"}: texts as texts, numbers as numbers, codes as decimal strings. A case of
"reports" is {"view", "value", "random", "bytes"}, for the mechanism "spec".
"""

import json
from pathlib import Path
from typing import Any

from hubbub import OLH, Random
from hubbub.core.domain.texts import BitStrings
from hubbub.core.spec import canonical
from hubbub.protocols.views.basic import Prefix

PLACE = Path(__file__).with_name("prefix.json")
TEXTS = ["", "a", "hubbub", "caf\u00e9", "cafe\u0301", "\u65e5\u672c\u8a9e", "\U0001f602\u2764", "nul\0", "\ud800"]
TEXTS += ["x" * 40, "sixteen bytes, ok", "exactly sixteen.", "\u1e9b\u0323", "\uac00", "\u1100\u1161"]
NUMBERS = [0, 1, 77, 255, 256, 65535, 2**31, 2**32, 2**40, 2**53 - 1, -1]
OPEN = OLH(epsilon=2.0, domain=BitStrings(64))


def seen() -> list[dict[str, Any]]:
    """Prefixes of every length that matters: within a byte, at the ends of words, beyond them, and of odd totals."""
    views = [(bits, 128) for bits in (1, 7, 8, 9, 63, 64, 65, 72, 127, 128)]
    views += [(bits, 320) for bits in (129, 192, 256, 257, 320)] + [(5, 21), (21, 21), (64, 64)]
    cases: list[tuple[Prefix, list[Any]]] = [(Prefix(*view), TEXTS) for view in views]
    views = [(1, 8), (8, 8), (3, 17), (32, 33), (40, 53), (1, 64), (64, 64), (60, 80)]
    cases += [(Prefix(*view), NUMBERS) for view in views]
    return [
        {"view": view.spec(), "values": values, "codes": [str(view([value])[0]) for value in values]}
        for view, values in cases
    ]


def reports() -> list[dict[str, Any]]:
    """Reports of an open domain, from given randomness."""
    made = []
    for number, value in enumerate(TEXTS):
        for view in (Prefix(12, 128), Prefix(64, 64), Prefix(90, 128)):
            drawn = Random(seed=f"prefix {number} {view}").bytes(16)
            sent = OPEN.randomize(view([value]), Random(seed=f"prefix {number} {view}"))
            made.append({"view": view.spec(), "value": value, "random": drawn.hex(), "bytes": sent.to_bare().hex()})
    return made


def vectors() -> dict[str, Any]:
    spec = {"spec": json.loads(canonical(OPEN.spec())), "spec_id": OPEN.spec_id, "bytes": OPEN.report_bytes}
    return {**spec, "seen": seen(), "reports": reports()}


if __name__ == "__main__":
    PLACE.write_text(json.dumps(vectors(), indent=1) + "\n", encoding="utf-8")
