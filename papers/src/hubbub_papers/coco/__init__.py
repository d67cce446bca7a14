"""Figures 2 and 4 to 16 of the paper on Collision and CoCo, then real data."""
