"""Figures 2 and 4 to 16 of the paper on Collision and CoCo, then real data. Importing this package registers them."""

from hubbub_papers.harness import load_modules

MODULES = (
    "figure_2",
    "figure_4",
    "figure_5",
    "figures_6_to_11",
    "figures_12_to_16",
    "real",
)
"""In the order of the text."""

load_modules(__name__, MODULES)
