"""The tables and figures of the dissertation, by chapter. Importing this registers them, in the text's order."""

from hubbub.reproduce.dissertation import table_3_1, table_3_2  # isort: skip
from hubbub.reproduce.dissertation import figure_3_1, figure_3_2, figure_3_3, figure_3_4, figure_3_5  # isort: skip
from hubbub.reproduce.dissertation import table_4_1, tables_4_2_and_4_3  # isort: skip
from hubbub.reproduce.dissertation import figures_4_2_and_4_3, figures_4_4_to_4_6, section_4_4  # isort: skip
from hubbub.reproduce.dissertation import table_5_1, figure_5_3, figures_5_4_and_5_8, table_5_2, figures_5_6_and_5_7  # isort: skip
from hubbub.reproduce.dissertation import figure_6_3, figures_6_4_and_6_5, figure_6_6, figures_6_7_and_6_9, figure_6_8  # isort: skip
from hubbub.reproduce.dissertation import figures_7_3_and_7_4, figures_7_5_to_7_7, tables_7_2_and_7_3  # isort: skip
from hubbub.reproduce.dissertation import figures_7_8_and_7_9, figure_7_10  # isort: skip
from hubbub.reproduce.dissertation import figures_8_1_to_8_3, figure_8_4, figure_8_5  # isort: skip
from hubbub.reproduce.dissertation import figures_8_6_and_8_7, figures_8_8_and_8_9, figure_8_10  # isort: skip
from hubbub.reproduce.dissertation import tables_9_1_and_9_2, figure_9_3, figure_9_4, table_9_3  # isort: skip

__all__ = [
    "figure_3_1",
    "figure_3_2",
    "figure_3_3",
    "figure_3_4",
    "figure_3_5",
    "figure_5_3",
    "figure_6_3",
    "figure_6_6",
    "figure_6_8",
    "figure_7_10",
    "figure_8_4",
    "figure_8_5",
    "figure_8_10",
    "figure_9_3",
    "figure_9_4",
    "figures_4_2_and_4_3",
    "figures_4_4_to_4_6",
    "figures_5_4_and_5_8",
    "figures_5_6_and_5_7",
    "figures_6_4_and_6_5",
    "figures_6_7_and_6_9",
    "figures_7_3_and_7_4",
    "figures_7_5_to_7_7",
    "figures_7_8_and_7_9",
    "figures_8_1_to_8_3",
    "figures_8_6_and_8_7",
    "figures_8_8_and_8_9",
    "section_4_4",
    "table_3_1",
    "table_3_2",
    "table_4_1",
    "table_5_1",
    "table_5_2",
    "table_9_3",
    "tables_4_2_and_4_3",
    "tables_7_2_and_7_3",
    "tables_9_1_and_9_2",
]
