"""Table 2 and figures 3 to 11 of LDP-IDS. Importing this package registers them."""

from hubbub_papers.harness import load_modules

MODULES = (
    "figures_3_and_4",
    "figure_5",
    "figure_6",
    "figure_7",
    "table_2",
    "figure_8",
    "figure_9",
    "figure_10",
    "figure_11",
)
"""In the order of the text."""

load_modules(__name__, MODULES)
