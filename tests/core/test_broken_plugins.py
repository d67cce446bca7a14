"""A broken package stops neither `plan` nor `audit`: it is named, and all other mechanisms go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.test_registry import install, run

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
    *planned, (audited, broken) = [*json.loads(done.stdout.splitlines()[0]), json.loads(done.stdout.splitlines()[1])]
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
    code = (
        "sound = hb.Sound(epsilon=1.0, domain=3, factor=2**60)\nimport json\nfrom hubbub.core.spec import canonical\n"
    )
    code += "print(hb.Mechanism.from_spec(json.loads(canonical(sound.spec()))) == sound)"
    done = run(tmp_path, code)
    assert (done.stdout, done.stderr) == ("True\n", "")
