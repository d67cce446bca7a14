"""Import time: what a device waits for, in fresh processes."""

import json
import pkgutil
import time
from collections.abc import Iterator
from importlib import import_module

from measure import Result, in_process


def startup(quick: bool) -> Iterator[Result]:
    """All of hubbub.core and every mechanism, beyond numpy."""
    runs = [in_process("startup.py") for _ in range(5 if quick else 15)]
    best = {step: min(run[step] for run in runs) for step in runs[0]}
    what = "import core, mechanisms"
    yield Result(
        what=f"{what}, beyond numpy",
        unit="s",
        ours=best["needs"] + best["hubbub"],
        versus="numpy itself",
        theirs=best["numpy"],
        most=0.2,
    )
    yield Result(what=f"{what}, beyond all needs", unit="s", ours=best["hubbub"])


def _import(*names: str) -> float:
    start = time.process_time()
    for name in names:
        import_module(name)
    return time.process_time() - start


def main() -> None:
    steps = {"numpy": _import("numpy")}
    steps["needs"] = _import("cryptography.hazmat.primitives.ciphers", "msgspec")
    steps["hubbub"] = _import("hubbub.mechanisms", "hubbub.core")
    core = import_module("hubbub.core")
    steps["hubbub"] += _import(*(f"hubbub.core.{module.name}" for module in pkgutil.iter_modules(core.__path__)))
    print(json.dumps(steps))


if __name__ == "__main__":
    main()
