"""Each notebook runs from its first cell to its last, and is small enough to look at."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(("name", "pictures"), [("marginals", 2), ("emoji", 1)])
def test_what_is_stored_is_small_and_shows_pictures(name: str, pictures: int) -> None:
    text = (EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text) < 120_000
    cells = json.loads(text)["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == pictures
    assert all(output["output_type"] != "error" for output in outputs)
    assert "/home/" not in text
    assert str(EXAMPLES.parent) not in text


@pytest.mark.parametrize("name", [pytest.param("marginals", marks=pytest.mark.slow), "emoji"])
def test_the_notebook_runs(name: str, tmp_path: Path) -> None:
    """Everything is seeded, so that what is stored as text comes out again."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    stored = _texts(notebook)
    assert stored
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert _texts(notebook) == stored


def _texts(notebook: dict) -> list[str]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    results = [output["data"]["text/plain"] for output in outputs if output["output_type"] == "execute_result"]
    return results + [output["text"] for output in outputs if output["output_type"] == "stream"]
