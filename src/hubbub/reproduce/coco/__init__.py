"""Figures 4 to 16 of the paper on Collision and CoCo, then real data. Importing this registers them, in this order."""

from hubbub.reproduce.coco import figure_4, figure_5, figures_6_to_11, figures_12_to_16, real  # isort: skip

__all__ = ["figure_4", "figure_5", "figures_6_to_11", "figures_12_to_16", "real"]
