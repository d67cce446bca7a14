"""Classes by name: each lookup loads one module, other packages add entry points, and errors name the package."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    program = f"import sys; import hubbub as hb\n{code}"  # of the folder that it is run in
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder)


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
    error = completed.stderr.splitlines()[-1]
    assert error.startswith("hubbub.core.plugins.PluginRefused: hubbub.mechanisms entry point")
    assert why in error


def test_a_program_may_set_its_own_but_take_no_name_that_is_taken(monkeypatch: pytest.MonkeyPatch):
    class Own(GRR):
        """A program's."""

    monkeypatch.setitem(MECHANISMS, "Own", Own)
    assert MECHANISMS["Own"] is Own
    wrong: dict[str, Any] = {"GRR": Own, "Another": Own, "int": int}
    for name, kind in wrong.items():
        with pytest.raises(PluginRefused):
            MECHANISMS[name] = kind
    with pytest.raises(KeyError):
        MECHANISMS["nothing"]


def test_only_what_is_asked_for_is_loaded(tmp_path: Path):
    loaded = run(tmp_path, "hb.GRR; print([name for name in sys.modules if name.startswith('hubbub.mechanisms.')])")
    assert "hubbub.mechanisms.frequency.grr" in loaded.stdout
    for other in ("succinct", "rappor", "hybrid", "exsub"):
        assert other not in loaded.stdout


# -- a broken package stops neither `plan` nor `audit` -----------------------------------------------------------------

BOOM = """
from dataclasses import dataclass
from hubbub import GRR

@dataclass(frozen=True, kw_only=True)
class Theirs(GRR):
    "Another package's."
    factor: int = 1
    METHOD
        raise RuntimeError("boom")

@dataclass(frozen=True, kw_only=True)
class Sound(GRR):
    "One that works."
    factor: int = 1
"""
POINTS = "Theirs = their_package:Theirs\nSound = their_package:Sound"
METHODS = [
    "def _resolve(self):",
    "def ratio(self):",
    "def noise(self, n):",
    "@property\n    def columns(self):",
    "def prob(self, reports, values):",
    "@classmethod\n    def examples(cls):",
]
PLANS = """
import json
settings = {"n": 1000, "epsilon": 1.0}, {"n": 1000, "stderr": 0.05}, {"epsilon": 1.0, "stderr": 0.05}
plans = [hb.plan(domain=4, **setting) for setting in settings]
print(json.dumps([{row.mechanism: row.why for row in plan.rows} for plan in plans]))
"""
AUDIT = """
import json
from hubbub.privacy.audit import audit_all
audits = audit_all(epsilons=[1.0], domains=[2])
print(json.dumps([sorted({audit.mechanism for audit in audits if audit.ok}), dict(audits.broken)]))
"""


@pytest.mark.parametrize("method", METHODS, ids=lambda text: text.split("def ")[1].split("(")[0])
def test_a_method_that_raises_is_named(tmp_path: Path, method: str):
    install(tmp_path, POINTS, BOOM.replace("METHOD", method))
    done = run(tmp_path, PLANS + AUDIT)
    assert done.returncode == 0, done.stderr
    planned, (audited, broken) = map(json.loads, done.stdout.splitlines())
    assert {"GRR", "OLH", "Sound"} <= {*audited}
    assert "Theirs" in broken or method.startswith("def noise")  # an audit asks for no variance
    for rows in planned:
        assert "their_package" not in rows["Sound"]
        assert "raised RuntimeError: boom" in rows["Theirs"] or "prob" in method or "examples" in method


@pytest.mark.parametrize(
    ("points", "code", "why"),
    [
        (f"{POINTS}\nGRR = their_package:Sound", BOOM.replace("METHOD", "def their(self):"), "one of hubbub's own"),
        ("Theirs = no_such_module:Theirs", "", "their-package: ModuleNotFoundError"),
        ("Theirs = their_package:Theirs", "raise SystemExit(0)", "their-package: SystemExit: 0"),
    ],
)
def test_a_package_that_does_not_load_is_named(tmp_path: Path, points: str, code: str, why: str):
    install(tmp_path, points, code)
    done = run(tmp_path, PLANS + AUDIT)
    assert done.returncode == 0, done.stderr
    planned, (audited, broken) = map(json.loads, done.stdout.splitlines())
    assert {"GRR", "OLH"} <= {*audited}
    assert any(why in reason for reason in broken.values())
    assert all(any(why in reason for reason in rows.values()) for rows in planned)
    assert ("Sound" in audited) == ("Sound" in points)


def test_the_commands_go_on(tmp_path: Path):
    install(tmp_path, POINTS, BOOM.replace("METHOD", "def ratio(self):"))
    command = "import sys; sys.argv[1:] = {}\nfrom hubbub.cli import main\nmain()"
    for arguments, code in (
        (["audit", "GRR"], 0),
        (["audit", "--all", "-e", "1", "-d", "2"], 0),
        (["audit", "Theirs"], 2),
    ):
        done = run(tmp_path, command.format(arguments))
        assert done.returncode == code, done.stderr
        assert ("their_package.Theirs.ratio raised RuntimeError: boom" in done.stderr) == (arguments[1] != "GRR")


def test_integer_fields_are_read_whatever_form_their_annotations_have(tmp_path: Path):
    """Above 2^53 integers are strings in specs; the plug-in has no `from __future__ import annotations`."""
    install(tmp_path, POINTS, BOOM.replace("METHOD", "def their(self):"))
    code = """
import json
from hubbub.core.spec import canonical
sound = hb.Sound(epsilon=1.0, domain=3, factor=2**60)
print(hb.Mechanism.from_spec(json.loads(canonical(sound.spec()))) == sound)
"""
    done = run(tmp_path, code)
    assert (done.stdout, done.stderr) == ("True\n", "")
