"""Mean mechanisms: one file a mechanism."""

MECHANISMS = {"StochasticRounding": "rounding", "Piecewise": "piecewise", "Hybrid": "hybrid"}
"""Each, and the file that it is in."""
