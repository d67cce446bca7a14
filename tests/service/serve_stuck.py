"""`hubbub serve` with a mechanism whose estimates never return while the file `hang` is there.

    python serve_stuck.py MODE serve ...

MODE is "foreign" (a mechanism of another package sleeps), "own" (one of hubbub's own does), or "alone" (one of another
package lets no other thread run).
"""

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub import GRR
from hubbub.cli import main
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.unary import OUE


@dataclass(frozen=True, kw_only=True)
class HangingGRR(GRR):
    """GRR, of another package."""

    def _estimate(self, sketch: Any, candidates: Any = None) -> Any:
        hang()
        return super()._estimate(sketch, candidates)


def hang() -> None:
    if not Path("hang").exists():
        return
    if MODE == "alone":
        re.match(r"(a+)+$", "a" * 64 + "b")  # takes 2^64 steps, and lets no other thread run meanwhile
    time.sleep(1e6)


MODE = sys.argv.pop(1)
MECHANISMS["HangingGRR"] = HangingGRR
if MODE == "own":
    estimate = OUE._estimate

    def hanging(self: OUE, *given: Any) -> Any:
        hang()
        return estimate(self, *given)

    OUE._estimate = hanging  # type: ignore[assignment, method-assign]
main()
