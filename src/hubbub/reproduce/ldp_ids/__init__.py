"""Table 2 and figures 3 to 11 of LDP-IDS. Importing this registers them, in the text's order."""

from hubbub.reproduce.ldp_ids import figures_3_and_4, figure_5, figure_6, figure_7, table_2  # isort: skip
from hubbub.reproduce.ldp_ids import figure_8, figure_9, figure_10, figure_11  # isort: skip

__all__ = [
    "figure_5",
    "figure_6",
    "figure_7",
    "figure_8",
    "figure_9",
    "figure_10",
    "figure_11",
    "figures_3_and_4",
    "table_2",
]
