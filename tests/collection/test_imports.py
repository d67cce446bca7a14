"""A device loads a collection with numpy, cryptography and msgspec alone."""

import subprocess
import sys

HEAVY = {"numba", "scipy", "starlette", "uvicorn", "pyarrow", "duckdb", "matplotlib", "rich", "typer", "pandas"}
SCRIPT = """
import importlib, pkgutil, sys
import hubbub.collection
for module in pkgutil.iter_modules(hubbub.collection.__path__, "hubbub.collection."):
    importlib.import_module(module.name)
from hubbub import Random
from hubbub.authoring import check, forecast, load_collection, open_collection, promise
from hubbub.collection import Keys, seal
from hubbub.authoring.toml import EXAMPLE
from hubbub.wire.upload import Entry, decode_upload, encode_upload
collection = load_collection(EXAMPLE)
keys = Keys.new()
assert open_collection(seal(collection.spec(), keys.private), keys.public) == collection
assert check(collection) and promise(collection) and forecast(collection)
ask = next(collection.protocol("popular"))
report = ask.mechanism.randomize(ask.view([collection.encode("theme", "dark")]), Random())
entry = Entry("popular", 0, 7, 1, 0, b"i" * 16, report.to_bare())
frame = encode_upload(collection.name, collection.version, [entry], 1024)
assert decode_upload(frame).entries[0].reports(ask.mechanism) == report
print(" ".join(sys.modules))
"""


def test_a_collection_is_light() -> None:
    completed = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120)
    modules = completed.stdout.split()
    assert not {name.partition(".")[0] for name in modules} & HEAVY
    parts = {".".join(name.split(".")[:2]) for name in modules if name.startswith("hubbub.")}
    rooms = "alarms authoring collection consistency core ledger mechanisms planning privacy protocols questions random"
    assert parts == {f"hubbub.{room}" for room in (*rooms.split(), "statistics", "wire")}
