"""Mechanisms for numbers, means and distributions: one file a mechanism."""

MECHANISMS = {
    "StochasticRounding": "rounding",
    "Piecewise": "piecewise",
    "Hybrid": "hybrid",
    "SquareWave": "square_wave",
}
"""Each, and the file that it is in."""
