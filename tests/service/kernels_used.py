"""How many kernels are compiled by warming up, and how many more by real reports.

python kernels_used.py warm|cold FILE.toml...
"""

import sys
from typing import Any

from hubbub import Random, Sketch
from hubbub.authoring import load_collection
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.service.ingest.open_asks import ReportOpener
from hubbub.service.ingest.warm_up import warm_up


def compiled() -> int:
    """The kernels of this process, each counted once for every signature."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("hubbub.kernels.")]
    kernels: dict[int, Any] = {id(value): value for module in modules for value in vars(module).values()}
    return sum(len(getattr(kernel, "nopython_signatures", ())) for kernel in kernels.values())


def main() -> None:
    collections = [load_collection(path) for path in sys.argv[2:]]
    if sys.argv[1] == "warm":
        warm_up(collections)
    before = compiled()
    for collection in collections:
        for question in collection.questions:

            def answer(ask: Ask) -> Sketch:
                mechanism = ask.mechanism
                assert isinstance(mechanism, Mechanism)
                reports = mechanism.randomize(mechanism.example_values(2) * 200, Random(seed=1))
                read, good = ReportOpener(mechanism).open_each([reports[row : row + 1].to_bare() for row in range(50)])
                assert good.all()
                return mechanism.accumulate(reports) + mechanism.accumulate(read)

            list(converse(collection.protocol(question), answer, steps=1))
    print(before, compiled() - before)


if __name__ == "__main__":
    main()
