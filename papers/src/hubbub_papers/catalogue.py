"""All reproductions. Importing this module loads every paper, in the order in which they are listed."""

from importlib import import_module

from hubbub_papers.harness import REPRODUCTIONS, Reproduction, reproduce
from hubbub_papers.result import Cell, Result

__all__ = ["REPRODUCTIONS", "Cell", "Reproduction", "Result", "reproduce"]

MODULES = {
    "dissertation.chapter_3_": ("oracles", "clicks"),
    "dissertation.chapter_4_": ("tables", "figures"),
    "dissertation.chapter_5_": ("amplification", "figures"),
    "dissertation.chapter_6_": ("errors", "classifiers", "plans"),
    "dissertation.chapter_7_": ("sums", "queries"),
    "dissertation.chapter_8_": ("by_rank", "errors", "choices"),
    "dissertation.chapter_9_": ("histograms", "strings_and_shufflers"),
    "averaging": ("",),
    "coco.": ("figures_2_to_5", "figures_6_to_11", "figures_12_to_16", "real"),
    "ldp_ids.": ("figures_3_to_5", "figures_6_and_7", "figures_8_to_11"),
    "sao2_exsub.": ("calibrated", "destinations", "tables_2_and_4", "offline", "stock", "table_3"),
    "tops_topl.": ("figures_1_to_5", "figures_6_to_9"),
}
"""The modules that register reproductions, in the order of the papers: how several names begin, and how they end."""

for beginning, ends in MODULES.items():
    for end in ends:
        import_module(f"hubbub_papers.{beginning}{end}")
