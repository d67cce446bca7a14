"""Wang et al., Continuous Release of Data Streams under both Centralized and Local Differential Privacy (CCS 2021)."""

from hubbub_papers.harness import load_modules

MODULES = (
    "table_1",
    "figure_1",
    "figure_2",
    "figures_3_and_10",
    "figures_4_and_5",
    "figures_6_and_7",
    "figures_8_and_9",
    "section_7",
    "counters",
)
"""In the order of the text."""

load_modules(__name__, MODULES)
