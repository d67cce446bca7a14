"""The tables and figures of SaO2. Importing this package registers them."""

from hubbub_papers.harness import load_modules

MODULES = (
    "calibrated",
    "destinations",
    "figure_1",
    "figure_2",
    "offline",
    "stock",
    "table_3",
    "tables_2_and_4",
)
"""In the order of the text."""

load_modules(__name__, MODULES)
