"""A device loads nothing it does not need."""

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import hubbub
from hubbub.mechanisms import MECHANISMS

HEAVY = {"numba", "scipy", "pyarrow", "duckdb", "sqlglot", "matplotlib", "rich", "typer", "pandas"}
CLIENT = """
import importlib, pkgutil
import hubbub, hubbub.core, hubbub.mechanisms
for module in pkgutil.iter_modules(hubbub.core.__path__, "hubbub.core."):
    importlib.import_module(module.name)
for module in pkgutil.walk_packages(hubbub.mechanisms.__path__, "hubbub.mechanisms."):
    importlib.import_module(module.name)
"""
REPORT = """
from hubbub import OLH, Random
olh = OLH.from_spec(OLH(epsilon=1.0, domain=64).spec())
assert len(olh.randomize([3], Random()).to_bytes()) > 9 and olh.event().spent > 0
from hubbub import ExSub, OnlineExSub
rng, exsub = Random(), ExSub(epsilon=1.0, dimension=9_000, sparsity=3)
assert len(exsub.randomize([{3: 1}], rng)) == 1
online = OnlineExSub(exsub)
assert len(online.step(online.start(1, rng), [0] * 9_000, rng)[1]) == 1
"""


PLANS = """
import hubbub as hb
hb.plan(domain=16, n=100, epsilon=1.0)
hb.audit(hb.GRR(epsilon=1.0, domain=2))
"""


def loaded(code: str) -> set[str]:
    """The modules that a program loads."""
    script = code + "\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


@pytest.mark.parametrize("code", [CLIENT, REPORT, PLANS], ids=["import", "report", "plan and audit"])
def test_a_client_a_plan_and_an_audit_load_no_analytics(code: str):
    assert not loaded(code) & HEAVY


def test_the_probe_sees_what_is_loaded():
    assert "scipy" in loaded("import scipy.stats")


def test_a_client_loads_no_analytics_and_no_server_side_package():
    modules = loaded(CLIENT + REPORT)
    assert not modules & HEAVY
    parts = {".".join(name.split(".")[:2]) for name in modules if name.startswith("hubbub.")}
    assert parts == {"hubbub.core", "hubbub.mechanisms", "hubbub.random", "hubbub.statistics"}


def test_names_resolve_on_first_use():
    assert hubbub.Random(seed=1).secure is False
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = hubbub.Nothing


def test_every_name_is_typed():
    """The names that resolve on first use are all in the block that a type checker reads."""
    tree = ast.parse(Path(hubbub.__file__).read_text())
    typed = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for imported in node.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
    }
    ours = {name for name, kind in MECHANISMS.items() if kind.__module__.startswith("hubbub.")}
    assert typed == {*hubbub._HOMES, *ours}
    assert Path(hubbub.__file__).with_name("py.typed").exists()


def exists(module: str, name: str) -> bool:
    """Whether a module has a name, or a package a module of this name."""
    home = importlib.import_module(module)
    return hasattr(home, name) or (hasattr(home, "__path__") and find_spec(f"{module}.{name}") is not None)


def missing_imports(path: Path) -> list[str]:
    """The names that a program imports from hubbub, anywhere in it, and that do not exist."""
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    names = [(node.module or "", alias.name) for node in imports for alias in node.names]
    return [
        f"{module}.{name}" for module, name in names if module.split(".")[0] == "hubbub" and not exists(module, name)
    ]


BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_import_names_that_exist(path: Path) -> None:
    """No test runs the benchmarks: a renamed function would be noticed only when somebody measures."""
    assert missing_imports(path) == []
