"""Figures 2 and 4 to 16 of the paper on Collision and CoCo, then real data. Importing registers them, in this order."""

from hubbub.reproduce.coco import figure_2, figure_4, figure_5, figures_6_to_11, figures_12_to_16, real  # isort: skip

__all__ = ["figure_2", "figure_4", "figure_5", "figures_6_to_11", "figures_12_to_16", "real"]
