"""How much memory a stream takes while it makes and uses a tree of r = 2^20 without pruning; printed as JSON."""

import json
import tracemalloc

from hubbub import Random
from hubbub.curator.tops import ToPS

if __name__ == "__main__":
    tops = ToPS(epsilon=0.05, bound=2000.0, pruned=0)
    tops.start(Random(), theta=100.0).push(1.0)  # compiled
    tracemalloc.start()
    stream = tops.start(Random(), theta=100.0)
    for value in (1.0, 2.0, 3.0):
        stream.push(value)
    print(json.dumps(tracemalloc.get_traced_memory()[1]))
