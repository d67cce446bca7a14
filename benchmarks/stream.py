"""Randomise, accumulate and merge n OLH reports in chunks; print peak memory and CPU time as JSON."""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

import hubbub as hb


def main(n: int, chunk: int, d: int) -> None:
    oracle, rng = hb.OLH(epsilon=1.0, domain=d), hb.Random()
    values = np.arange(chunk) % d
    sketch = oracle.empty()
    for _ in range(n // chunk):
        sketch = sketch + oracle.accumulate(oracle.randomize(values, rng))
    worst = float(np.max(np.abs(oracle.estimate(sketch).value - np.bincount(values, minlength=d) / chunk)))
    assert sketch.n == n
    assert worst < 6 * oracle.variance(n, 1 / d) ** 0.5, worst
    print(json.dumps({"n": n, "peak": peak(), "cpu": time.process_time()}))


def peak() -> int:
    """The most memory this process has held. Linux's getrusage would count its parent's from before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
