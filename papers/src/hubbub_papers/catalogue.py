"""All reproductions. Importing this module loads every paper, in the order in which they are listed."""

from importlib import import_module

from hubbub_papers.harness import REPRODUCTIONS, Reproduction, reproduce
from hubbub_papers.result import Cell, Result

__all__ = ["REPRODUCTIONS", "Cell", "Reproduction", "Result", "reproduce"]

MODULES = [
    "dissertation.chapter_3_oracles",
    "dissertation.chapter_3_clicks",
    "dissertation.chapter_4_tables",
    "dissertation.chapter_4_figures",
    "dissertation.chapter_5_amplification",
    "dissertation.chapter_5_figures",
    "dissertation.chapter_6_errors",
    "dissertation.chapter_6_classifiers",
    "dissertation.chapter_6_plans",
    "dissertation.chapter_7_sums",
    "dissertation.chapter_7_queries",
    "dissertation.chapter_8_by_rank",
    "dissertation.chapter_8_errors",
    "dissertation.chapter_8_choices",
    "dissertation.chapter_9_histograms",
    "dissertation.chapter_9_strings_and_shufflers",
    "averaging",
    "coco.figures_2_to_5",
    "coco.figures_6_to_11",
    "coco.figures_12_to_16",
    "coco.real",
    "ldp_ids.figures_3_to_5",
    "ldp_ids.figures_6_and_7",
    "ldp_ids.figures_8_to_11",
    "sao2_exsub.calibrated",
    "sao2_exsub.destinations",
    "sao2_exsub.tables_2_and_4",
    "sao2_exsub.offline",
    "sao2_exsub.stock",
    "sao2_exsub.table_3",
    "tops_topl.figures_1_to_5",
    "tops_topl.figures_6_to_9",
]
"""The modules that register reproductions, in the order of the papers."""

for module in MODULES:
    import_module(f"hubbub_papers.{module}")
