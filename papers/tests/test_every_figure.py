"""Every figure of T. Wang, 2021, and S. Wang, 2023, at a small size; one of each paper is run by `make test`."""

import math
from pathlib import Path

import pytest

from hubbub_papers import REPRODUCTIONS, plots, reproduce, sparse
from hubbub_papers.baselines.mining_ladder import DEPLOYED
from hubbub_papers.coco import figures_6_to_11, figures_12_to_16, real
from hubbub_papers.dissertation.chapter_3_clicks import METHODS as CLICK_METHODS
from hubbub_papers.dissertation.chapter_3_oracles import ORACLES
from hubbub_papers.dissertation.chapter_5_figures import ITEM_METHODS, PUBLISHED
from hubbub_papers.dissertation.chapter_5_figures import METHODS as SET_METHODS
from hubbub_papers.dissertation.chapter_8_by_rank import KEYS
from hubbub_papers.sao2_exsub import destinations, offline, online, stock

COCO = [name for name in REPRODUCTIONS if name.startswith("wang-2023-vectors-")]
VECTORS = [f"wang-2023-sao2-figure-{number}" for number in (1, 3, 4, 5, 11, 6, 12)]
STREAMS = [f"wang-2023-sao2-figure-{number}" for number in (7, 8, 13, 14, 9, 10)]
SCALES = {name: 0.002 for name in REPRODUCTIONS if name.startswith("wang-2021-analyzing-figure-")}
SCALES |= dict.fromkeys(COCO, 0.001) | dict.fromkeys(VECTORS, 0.01) | dict.fromkeys(STREAMS, 0.02)
SHORT = ("wang-2021-analyzing-figure-3.1", "wang-2023-vectors-figure-4", "wang-2023-sao2-figure-1")
EACH = [pytest.param(name, marks=() if name in SHORT else pytest.mark.papers) for name in SCALES]


def test_the_names_are_in_the_order_of_the_text() -> None:
    assert [
        *(f"wang-2023-vectors-figure-{number}" for number in (2, *range(4, 17))),
        "wang-2023-vectors-movies",
        "wang-2023-vectors-retail",
    ] == COCO
    assert set(SHORT) < set(SCALES)


@pytest.mark.parametrize("name", EACH)
def test_every_figure_runs_and_saves(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations, "EPSILONS", (1.0,))
    progress: list[tuple[int, int, str]] = []
    result = reproduce(name, repeats=1, scale=SCALES[name], progress=lambda *step: progress.append(step))
    assert result.figure is not None
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in result.figure.axes)
    assert all(isinstance(cell.ours, float) and cell.row and cell.column for cell in result.cells)
    if not name.startswith("wang-2021-analyzing"):  # where a method found nothing, it has no error
        assert all(math.isfinite(cell.ours) for cell in result.cells)
    table, image = result.save(tmp_path)
    assert len(table.read_text(encoding="utf-8").splitlines()) == len(result.cells) + 1
    assert image.read_bytes().startswith(b"\x89PNG")
    assert [done for done, _, _ in progress] == list(range(len(progress)))
    assert not progress or progress[-1][0] == progress[-1][1]
    numbers = [cell for cell in result.cells if cell.column != "claim"]
    assert len(numbers) < len(result.cells) or not name.startswith("wang-2023-sao2")  # SaO2's claim something
    if name in STREAMS and name != "wang-2023-sao2-figure-10":
        assert all(destinations.NOT_TRAJECTORY in cell.note for cell in numbers)
        assert sum("4,043 devices, as it is" in cell.note for cell in numbers) == len(numbers) / 2
        assert sum("2,000 devices, resampled to 2,000" in cell.note for cell in numbers) == len(numbers) / 2


LEGENDS = [(plots, tuple(ORACLES)), (plots, CLICK_METHODS), (plots, tuple(KEYS)), (plots, tuple(SET_METHODS))]
LEGENDS += [(plots, (PUBLISHED, *ITEM_METHODS, DEPLOYED.name)), (online, destinations.METHODS)]
LEGENDS += [(sparse, module.METHODS) for module in (figures_6_to_11, figures_12_to_16, real, offline, stock)]


@pytest.mark.parametrize(("module", "methods"), LEGENDS)
def test_methods_of_one_legend_look_different(module, methods: tuple[str, ...]) -> None:
    looks = [module.look(method) for method in methods]
    assert len({look["color"] for look in looks}) == len({look["marker"] for look in looks}) == len(methods)
