"""`hubbub client status`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.collection import ManualClock
from tests.client.device import MEMO, begin, device, live
from tests.client.local_server import LocalServer, survey

TEXT = MEMO.replace("user = 7.0", "user = 8.0\nevent = 4.0") + (
    '\n[fields.theme]\nkind = "categorical"\nnames = ["light", "dark"]\n'
    '\n[questions.popular]\nkind = "histogram"\nfield = "theme"\nepsilon = 0.5\n'
)


def test_the_status_of_a_device(folder: Path) -> None:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    with device(folder, server, clock) as client:
        live(client, server, clock, 5, 3)
        begin(server, clock, 6)
        client.tick()
    result = CliRunner().invoke(app, ["client", "status", str(folder)])
    assert result.exit_code == 0, result.output
    lines = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines() if line}
    assert lines["for life"][-3:] == ["3", "5", "8"]  # a memo of 2, two histograms of 0.5
    assert lines["waiting to be sent"][-1] == "2"
    assert lines["permanent answers"][-2:] == ["page", "1"]
    assert lines["sent"][-1] == "2"
    answer = json.loads(CliRunner().invoke(app, ["client", "status", str(folder), "--json"]).stdout)
    assert answer["collection"] == "survey"
    assert answer["user"] == {"spent": answer["spent"], "remaining": 8 - answer["spent"], "limit": 8.0}
    assert answer["window"] is None
    assert answer["queued"] == 2


def test_what_is_not_a_clients_folder_is_refused(folder: Path) -> None:
    result = CliRunner().invoke(app, ["client", "status", str(folder)])
    assert result.exit_code == 2
    assert result.stderr.startswith("hubbub: folder: ")
    assert not any(folder.iterdir())  # and nothing was made there
