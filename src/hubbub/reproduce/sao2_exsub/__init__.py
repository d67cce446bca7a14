"""The tables and figures of SaO2. Importing this registers them, in the text's order."""

from hubbub.reproduce.sao2_exsub import (
    calibrated,
    destinations,
    figure_1,
    figure_2,
    offline,
    stock,
    table_3,
    tables_2_and_4,
)  # isort: skip

__all__ = ["calibrated", "destinations", "figure_1", "figure_2", "offline", "stock", "table_3", "tables_2_and_4"]
