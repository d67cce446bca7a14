"""The notebook of marginals runs from its first cell to its last, and is small enough to look at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "marginals.ipynb"


def test_what_is_stored_is_small_and_shows_heat_maps() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 120_000
    cells = json.loads(text)["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert all(output["output_type"] != "error" for output in outputs)
    assert "/home/" not in text
    assert str(NOTEBOOK.parent.parent) not in text


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    """Everything is seeded, so that what is stored as text comes out again."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = _texts(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert _texts(notebook) == stored


def _texts(notebook: dict) -> list[str]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return [output["data"]["text/plain"] for output in outputs if output["output_type"] == "execute_result"]
