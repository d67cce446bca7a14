"""Classes by name: each lookup loads one module, other packages add entry points, and errors name the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hubbub import GRR
from hubbub.core.plugins import PluginRefused
from hubbub.mechanisms import MECHANISMS

PLUGIN = """
from hubbub import GRR

class Theirs(GRR):
    "Another package's."
"""


def install(folder: Path, entry_points: str, code: str = PLUGIN) -> Path:
    """A package as an installer leaves it: a module, and its metadata."""
    (folder / "their_package.py").write_text(code)
    metadata = folder / "their_package-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[hubbub.mechanisms]\n{entry_points}\n")
    return folder


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(0, {str(folder)!r}); import hubbub as hb\n{code}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_a_mechanism_of_another_package_is_one_of_ours(tmp_path: Path):
    install(tmp_path, "Theirs = their_package:Theirs")
    code = """
from hubbub.mechanisms import MECHANISMS
theirs = hb.Theirs(epsilon=1.0, domain=3)
print(hb.Mechanism.from_spec(theirs.spec()) == theirs, "Theirs" in MECHANISMS, "Theirs" in dir(hb))
print("Theirs" in {row.mechanism for row in hb.plan(domain=3, n=1000, epsilon=1.0).rows})
"""
    completed = run(tmp_path, code)
    assert (completed.stdout, completed.stderr) == ("True True True\nTrue\n", "")


@pytest.mark.parametrize(
    ("entry_points", "code", "why"),
    [
        ("GRR = their_package:Theirs", PLUGIN, "their-package: GRR is one of hubbub's own"),
        ("Theirs = their_package:Theirs", "raise OSError('no disk')", "their-package: OSError: no disk"),
        ("Theirs = their_package:Theirs", "raise SystemExit(0)", "their-package: SystemExit: 0"),
        ("Theirs = their_package:Theirs", "Theirs = 5", "their-package: not a ReportFormat called Theirs"),
        ("Other = their_package:Theirs", PLUGIN, "their-package: not a ReportFormat called Other"),
        ("Theirs = their_package:missing", PLUGIN, "their-package: AttributeError"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_and_ours_go_on(tmp_path: Path, entry_points: str, code: str, why: str):
    install(tmp_path, entry_points, code)
    completed = run(tmp_path, "print(hb.GRR.__name__); from hubbub.mechanisms import MECHANISMS; dict(MECHANISMS)")
    assert completed.stdout == "GRR\n"
    assert why in completed.stderr.splitlines()[-1]
    assert completed.stderr.splitlines()[-1].startswith(
        "hubbub.core.plugins.PluginRefused: hubbub.mechanisms entry point"
    )


def test_a_program_may_set_its_own_but_take_no_name_that_is_taken(monkeypatch: pytest.MonkeyPatch):
    class Own(GRR):
        """A program's."""

    monkeypatch.setitem(MECHANISMS, "Own", Own)
    assert MECHANISMS["Own"] is Own
    for name, kind in (("GRR", Own), ("Another", Own), ("int", int)):
        with pytest.raises(PluginRefused):
            MECHANISMS[name] = kind
    with pytest.raises(KeyError):
        MECHANISMS["nothing"]


def test_only_what_is_asked_for_is_loaded():
    code = (
        "import sys, hubbub; hubbub.GRR; print([name for name in sys.modules if name.startswith('hubbub.mechanisms.')])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "hubbub.mechanisms.frequency.grr" in completed.stdout
    for other in ("succinct", "rappor", "hybrid", "exsub"):
        assert other not in completed.stdout
