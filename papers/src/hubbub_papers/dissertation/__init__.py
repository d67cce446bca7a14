"""The tables and figures of the dissertation, by chapter. Importing this package registers them."""

from hubbub_papers.harness import load_modules

MODULES = (
    "table_3_1",
    "table_3_2",
    "figure_3_1",
    "figure_3_2",
    "figure_3_3",
    "figure_3_4",
    "figure_3_5",
    "table_4_1",
    "tables_4_2_and_4_3",
    "figures_4_2_and_4_3",
    "figures_4_4_to_4_6",
    "section_4_4",
    "table_5_1",
    "figure_5_3",
    "figures_5_4_and_5_8",
    "table_5_2",
    "figures_5_6_and_5_7",
    "figure_6_3",
    "figures_6_4_and_6_5",
    "figure_6_6",
    "figures_6_7_and_6_9",
    "figure_6_8",
    "figures_7_3_and_7_4",
    "figures_7_5_to_7_7",
    "tables_7_2_and_7_3",
    "figures_7_8_and_7_9",
    "figure_7_10",
    "figures_8_1_to_8_3",
    "figure_8_4",
    "figure_8_5",
    "figures_8_6_and_8_7",
    "figures_8_8_and_8_9",
    "figure_8_10",
    "tables_9_1_and_9_2",
    "figure_9_3",
    "figure_9_4",
    "table_9_3",
)
"""In the order of the text."""

load_modules(__name__, MODULES)
